package app

import (
	"bytes"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/smartfeed/smartfeed/internal/config"
	"github.com/smartfeed/smartfeed/internal/testkit/expect"
	"github.com/smartfeed/smartfeed/internal/testkit/must"
	"github.com/smartfeed/smartfeed/processors/actors"
	"github.com/smartfeed/smartfeed/processors/pools"
)

const exampleFile = "../deploy/smartfeed.example.yaml"

// The example file contains every value with its default. UPDATE=1 rewrites it.
func TestExampleConfig_ContainsEveryDefault(t *testing.T) {
	want := DefaultConfig()
	var text bytes.Buffer
	text.WriteString("# Every value with its default. Keep what you change; `smartfeed config check` reports mistakes with their line.\n")
	must.OK(t, want.Write(&text, config.Options{Docs: true}))
	if os.Getenv("UPDATE") != "" {
		must.OK(t, os.WriteFile(exampleFile, text.Bytes(), 0o644))
	}
	file := must.Get(os.ReadFile(exampleFile))(t)
	if diff := cmp.Diff(text.String(), string(file)); diff != "" {
		t.Errorf("%s differs from the output of `smartfeed config show --docs` (UPDATE=1 go test ./app -run ExampleConfig rewrites it):\n%s", exampleFile, diff)
	}
	got := Config{}
	must.OK(t, config.Load(&got, config.Source{File: exampleFile}))
	must.OK(t, want.Validate())
	constant := cmp.Options{ // not in a file
		cmpopts.IgnoreFields(pools.Config{}, "MaxFollowees"),
		cmpopts.IgnoreFields(actors.Config{}, "EdgeWeightSteps", "EdgeWeightHysteresis"),
	}
	expect.NoDiffBut(t, cmp.Options{cmpopts.EquateEmpty(), constant}, got, want, "loaded example (-default +example)")
}
