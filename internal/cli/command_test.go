package cli

import (
	"errors"
	"testing"

	"github.com/spf13/cobra"

	"github.com/smartfeed/smartfeed/internal/command"
)

// tree returns a program with a group of two commands and a hidden one.
func tree() *cobra.Command {
	child := func(use string, hidden bool) *cobra.Command {
		return &cobra.Command{Use: use, Hidden: hidden, RunE: func(*cobra.Command, []string) error { return nil }}
	}
	root := &cobra.Command{Use: "prog", SilenceErrors: true, SilenceUsage: true}
	root.AddCommand(group("things", "Look at things", "  prog things list", child("list", false), child("drop", false), child("old", true)))
	return root
}

func TestGroup_NamesItsCommands(t *testing.T) {
	tests := map[string]struct {
		args []string
		want string // "": none
	}{
		"one of them": {[]string{"things", "list"}, ""},
		"none":        {[]string{"things"}, "prog things: want one of the commands drop, list"},
		"another":     {[]string{"things", "lits"}, `prog things: want one of the commands drop, list, not ["lits"]`},
	}
	for name, tt := range tests {
		root := tree()
		root.SetArgs(tt.args)
		err, usage := root.Execute(), new(command.UsageError)
		switch {
		case tt.want == "" && err != nil:
			t.Errorf("%s: %v", name, err)
		case tt.want != "" && (!errors.As(err, &usage) || err.Error() != tt.want):
			t.Errorf("%s: got %v, want wrong usage, %s", name, err, tt.want)
		}
	}
}
