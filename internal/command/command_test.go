package command

import (
	"bytes"
	"errors"
	"io/fs"
	"testing"

	"github.com/smartfeed/smartfeed/internal/testkit/expect"
)

func TestUsagef_WrapsError(t *testing.T) {
	if err := Usagef("--file %q: %w", "x", fs.ErrNotExist); !errors.Is(err, fs.ErrNotExist) || err.Error() != `--file "x": file does not exist` {
		t.Errorf("got %v", err)
	}
}

func TestPrintJSON(t *testing.T) {
	var out bytes.Buffer
	if err := PrintJSON(&out, map[string]int{"a": 1}); err != nil || out.String() != "{\n  \"a\": 1\n}\n" {
		t.Errorf("got %q, %v", out.String(), err)
	}
}

func TestCount_UsesPluralExceptForOne(t *testing.T) {
	for n, want := range map[int]string{0: "0 events", 1: "1 event", 2: "2 events"} {
		expect.Equal(t, Count(n, "event"), want, "Count(%d)", n)
	}
}
