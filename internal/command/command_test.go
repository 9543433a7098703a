package command

import (
	"bytes"
	"errors"
	"io/fs"
	"testing"

	"github.com/smartfeed/smartfeed/internal/testkit/expect"
	"github.com/smartfeed/smartfeed/internal/testkit/must"
)

func TestUsagef_WrapsError(t *testing.T) {
	if err := Usagef("--file %q: %w", "x", fs.ErrNotExist); !errors.Is(err, fs.ErrNotExist) || err.Error() != `--file "x": file does not exist` {
		t.Errorf("got %v", err)
	}
}

func TestPrintJSON(t *testing.T) {
	var out bytes.Buffer
	must.OK(t, PrintJSON(&out, map[string]int{"a": 1}))
	expect.Equal(t, out.String(), "{\n  \"a\": 1\n}\n", "JSON")
}

func TestCount_UsesPluralExceptForOne(t *testing.T) {
	for n, want := range map[int]string{0: "0 events", 1: "1 event", 2: "2 events"} {
		expect.Equal(t, Count(n, "event"), want, "Count(%d)", n)
	}
}
