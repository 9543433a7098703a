package command

import (
	"bytes"
	"errors"
	"io/fs"
	"testing"

	"github.com/spf13/cobra"
)

// tree returns a program with a group of two commands and a hidden one.
func tree() *cobra.Command {
	child := func(use string, hidden bool) *cobra.Command {
		return &cobra.Command{Use: use, Hidden: hidden, RunE: func(*cobra.Command, []string) error { return nil }}
	}
	root := &cobra.Command{Use: "prog", SilenceErrors: true, SilenceUsage: true}
	root.AddCommand(Group("things", "look at things", "  prog things list", child("list", false), child("drop", false), child("old", true)))
	return root
}

func TestGroupNamesItsCommands(t *testing.T) {
	tests := map[string]struct {
		args []string
		want string // "": none
	}{
		"one of them": {[]string{"things", "list"}, ""},
		"none":        {[]string{"things"}, "prog things needs one of its commands: drop, list"},
		"another":     {[]string{"things", "lits"}, `prog things needs one of its commands: drop, list, not ["lits"]`},
	}
	for name, tt := range tests {
		root := tree()
		root.SetArgs(tt.args)
		err, usage := root.Execute(), new(UsageError)
		switch {
		case tt.want == "" && err != nil:
			t.Errorf("%s: %v", name, err)
		case tt.want != "" && (!errors.As(err, &usage) || err.Error() != tt.want):
			t.Errorf("%s: got %v, want wrong usage, %s", name, err, tt.want)
		}
	}
}

func TestUsageErrorKeepsWhatIsWrong(t *testing.T) {
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

func TestCount_HasThePluralForEveryNumberButOne(t *testing.T) {
	for n, want := range map[int]string{0: "0 events", 1: "1 event", 2: "2 events"} {
		if got := Count(n, "event"); got != want {
			t.Errorf("Count(%d) = %q, want %q", n, got, want)
		}
	}
}
