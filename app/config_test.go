package app

import (
	"bytes"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/smartfeed/smartfeed/internal/config"
	"github.com/smartfeed/smartfeed/internal/testkit/expect"
	"github.com/smartfeed/smartfeed/internal/testkit/must"
	"github.com/smartfeed/smartfeed/processors/actors"
	"github.com/smartfeed/smartfeed/processors/pools"
	"github.com/smartfeed/smartfeed/processors/rows"
	"github.com/smartfeed/smartfeed/serving/api"
	"github.com/smartfeed/smartfeed/topics/embedded"
)

func TestConfig_Validate(t *testing.T) {
	for want, change := range map[string]func(*Config){
		"": func(c *Config) { c.API.ShutdownTimeout = api.MaxShutdownTimeout },
		"rows.max_record_writes: 3999: want at least 4 times fanout.step_followers, 1000": func(c *Config) {
			c.Fanout.StepFollowers, c.Rows.MaxRecordWrites = 1000, 3999
		},
		"shutdown_timeout: 20.000000001s: want 100ms to 20s": func(c *Config) { c.API.ShutdownTimeout = api.MaxShutdownTimeout + 1 },
	} {
		cfg := DefaultConfig()
		change(&cfg)
		expect.Error(t, cfg.Validate(), want, "Validate")
	}
}

// Every part checks the ranges of its keys. Package settings tests bounds that are other keys, and package embedded its own.
func TestConfig_ReportsEveryNumberOutOfRange(t *testing.T) {
	cfg := DefaultConfig()
	low := map[string]string{"int": "-2000000000", "number": "-1e18", "duration": "-999999h", "size": "-1"}
	other := regexp.MustCompile(`^([a-z_]+ to|at most) |^$`)
	environ, paths := []string{"SMARTFEED_TRACING_ENDPOINT=http://127.0.0.1:1", "SMARTFEED_GENERATOR_MODEL_URL=http://127.0.0.1:1"}, []string{}
	for _, key := range config.Keys(&cfg) {
		unused := strings.HasPrefix(key.Path, "generator.embeddings.") || strings.HasPrefix(key.Path, "embedded.")
		if value := low[key.Type]; value != "" && !other.MatchString(key.Range) && !unused {
			environ, paths = append(environ, key.Env+"="+value), append(paths, key.Path)
		}
	}
	err := config.Load(&cfg, config.Source{Environ: environ})
	for _, path := range paths {
		expect.Error(t, err, path+": -", "%s: problem", path)
	}
	expect.AtLeast(t, len(paths), 100, "numbers")
}

func TestConfig_PassesRetentionsToClients(t *testing.T) {
	cfg := DefaultConfig()
	cfg.Actions.Retention, cfg.VisitLog.Retention = 30*24*time.Hour, 90*24*time.Hour
	if k, err := cfg.kafka(); err != nil || k.Actions != cfg.Actions.Retention || k.VisitLog != cfg.VisitLog.Retention {
		t.Errorf("clients have retentions %s and %s, %v", k.Actions, k.VisitLog, err)
	}
}

// The generator waits until visits of a previous owner have ended. With an embedded broker, there is no other process.
func TestGeneratorConfig_WaitsForVisitsOfOtherProcesses(t *testing.T) {
	cfg := DefaultConfig()
	cfg.Feed.GeneratorTimeout, cfg.Feed.ReadTimeout, cfg.Feed.AckTimeout = time.Second, 2*time.Second, 4*time.Second
	cfg.settle()
	expect.Equal(t, (&App{cfg: cfg}).generatorConfig().HandoverWait, 7*time.Second, "external brokers")
	expect.Equal(t, (&App{cfg: cfg, broker: new(embedded.Server)}).generatorConfig().HandoverWait, 0, "embedded broker")
}

// Before the cut-over, another process may have owned the partition of the previous generation.
func TestCutOverSnapshot_IsOwnedSinceCutOver(t *testing.T) {
	early, late := time.Unix(1, 0), time.Unix(2, 0)
	for _, c := range []struct{ owned, cutOver, want time.Time }{{early, late, late}, {late, early, late}} {
		if got := (cutOverSnapshot{ownedSince{at: c.owned}, c.cutOver}).Since(); !got.Equal(c.want) {
			t.Errorf("owned since %s, cut over at %s: got %s", c.owned, c.cutOver, got)
		}
	}
}

// ownedSince is a snapshot that only implements Since.
type ownedSince struct {
	rows.Snapshot
	at time.Time
}

func (s ownedSince) Since() time.Time { return s.at }

// stacked is an error that formats with a stack.
type stacked struct{}

func (stacked) Error() string              { return "disk full" }
func (stacked) Format(f fmt.State, _ rune) { fmt.Fprint(f, "disk full (stack)") }

func TestLogger_LogsTextOfErrors(t *testing.T) {
	for _, format := range []string{"text", "json"} {
		var out strings.Builder
		LogConfig{Format: format}.Logger(&out).Info("x", "error", stacked{})
		if got := out.String(); !strings.Contains(got, "disk full") || strings.Contains(got, "stack") {
			t.Errorf("%s: %q, want only the error's text", format, got)
		}
	}
}

// The reference of the configuration is generated from the tags. The configuration must not read variables that Kubernetes
// sets for a Service.
func TestKeys_HaveHelpAndBounds(t *testing.T) {
	cfg := DefaultConfig()
	for _, key := range config.Keys(&cfg) {
		expect.Empty(t, config.ServiceLinks([]string{key.Env + "=8080", key.Env + "=tcp://10.96.0.10:8080"}), "%s as that of a Service", key.Path)
		expect.True(t, key.Help != "", "%s has a help text", key.Path)
		expect.False(t, key.Range == "" && slices.Contains([]string{"int", "number", "duration"}, key.Type), "%s has no range", key.Path)
	}
}

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
