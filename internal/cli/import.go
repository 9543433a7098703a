package cli

import (
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/smartfeed/smartfeed/internal/command"
	"github.com/smartfeed/smartfeed/internal/tools/lastfm"
	"github.com/smartfeed/smartfeed/schemas"
)

func (p *program) importCommand() *cobra.Command {
	return group("import", "Import datasets", "  smartfeed import lastfm hetrec2011-lastfm-2k", p.lastfmCommand())
}

// lastfmFlags are the flags of import lastfm.
type lastfmFlags struct {
	lastfm.Options
	lastAction    string
	originalTimes bool
}

func (p *program) lastfmCommand() *cobra.Command {
	var f lastfmFlags
	cmd := &cobra.Command{
		Use:   "lastfm DIR",
		Short: "Import the HetRec 2011 Last.fm dataset",
		Long: `Import the files of hetrec2011-lastfm-2k in DIR: the listening, tags and friends of 1,892 users.

The command publishes users and follows first, then pins, then actions. It waits until each phase is processed. It shifts all
times so that the last action happens at --last-action. To resume an interrupted import, run it again with the --last-action
that it printed: events that exist change nothing.`,
		Example: "  smartfeed import lastfm hetrec2011-lastfm-2k\n  smartfeed import lastfm hetrec2011-lastfm-2k --last-action 2026-11-20T10:00:00Z -o json",
		Args:    cobra.ExactArgs(1),
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return nil, cobra.ShellCompDirectiveFilterDirs
		},
		RunE: p.prints(func(cmd *cobra.Command, args []string) (any, error) { return p.importLastfm(cmd, args[0], f) }),
	}
	cmd.Flags().StringVar(&f.lastAction, "last-action", "", "time of the last action, RFC 3339 (default now)")
	cmd.Flags().BoolVar(&f.originalTimes, "original-times", false, "keep the original times, 2005 to 2011")
	cmd.Flags().BoolVar(&f.Wait, "wait", true, "wait until all events are processed")
	cmd.Flags().DurationVar(&f.Timeout, "timeout", 15*time.Minute, "maximum time for the processing of a phase")
	return cmd
}

func (p *program) importLastfm(cmd *cobra.Command, dir string, f lastfmFlags) (any, error) {
	if err := f.check(time.Now()); err != nil {
		return nil, usage(err)
	}
	set, err := lastfm.Read(os.DirFS(dir))
	if err != nil {
		return nil, fmt.Errorf("read %s: nothing was published: %w", dir, err)
	}
	if f.originalTimes {
		f.LastAction = set.LastAction()
	}
	setup, err := p.setup(cmd)
	if err != nil {
		return nil, err
	}
	if p.format.forPeople() {
		lastfm.Announce(cmd.ErrOrStderr(), set.Counts(), f.LastAction)
	}
	return lastfm.Import(cmd.Context(), setup, set, f.Options)
}

// check sets LastAction, and reports an error in the flags.
func (f *lastfmFlags) check(now time.Time) (err error) {
	if f.Timeout <= 0 {
		return command.Usagef("--timeout: %s: want above 0", f.Timeout)
	}
	if f.originalTimes && f.lastAction != "" {
		return command.Usagef("--last-action and --original-times: want one of them")
	}
	f.LastAction = now.UTC().Truncate(time.Second)
	if f.lastAction == "" {
		return nil
	}
	if f.LastAction, err = parseTime("last-action", f.lastAction); err != nil {
		return err
	}
	if f.LastAction.After(now.Add(schemas.MaxAhead)) {
		return fmt.Errorf("--last-action: %s is more than %s in the future: the actions would be rejected", f.lastAction, schemas.MaxAhead)
	}
	f.LastAction = f.LastAction.UTC()
	return nil
}
