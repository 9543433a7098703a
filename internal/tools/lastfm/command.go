package lastfm

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/smartfeed/smartfeed/internal/command"
	"github.com/smartfeed/smartfeed/internal/tools/load"
	"github.com/smartfeed/smartfeed/schemas"
	"github.com/smartfeed/smartfeed/topics"
)

// Summary is the result of an import.
type Summary struct {
	Counts
	LastAction time.Time `json:"last_action"` // pass it to --last-action to import the same again
	Phases     []Phase   `json:"phases"`
	Seconds    float64   `json:"seconds"`

	// Work counts the results, if the import waited for all events and the processes could be queried.
	Work   *topics.Work `json:"work,omitempty"`
	NoWork string       `json:"-"` // why Work is unknown
}

// options are the command's flags.
type options struct {
	lastAction    string
	originalTimes bool
	wait          bool
	timeout       time.Duration
	json          bool
}

// Command returns `lastfm DIR`, which imports the files in DIR. It calls setup once the files have been read and validated.
func Command(setup func(cmd *cobra.Command) (topics.Setup, error)) *cobra.Command {
	var o options
	cmd := &cobra.Command{
		Use:   "lastfm DIR",
		Short: "import the HetRec 2011 Last.fm files",
		Long: `Import what 1,892 people listened to, tagged and befriended: the files of hetrec2011-lastfm-2k in DIR.

Users and follows come first, then the pins, then the actions, each worked off before the next. All times are moved so
that the last action falls on --last-action. An import that was interrupted is taken up by running it again with the
--last-action that it printed: what is there already changes nothing.`,
		Example: "  smartfeed import lastfm hetrec2011-lastfm-2k\n  smartfeed import lastfm hetrec2011-lastfm-2k --last-action 2026-11-20T10:00:00Z --json",
		Args:    cobra.ExactArgs(1),
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return nil, cobra.ShellCompDirectiveFilterDirs
		},
		RunE: func(cmd *cobra.Command, args []string) error { return run(cmd, args[0], o, setup) },
	}
	f := cmd.Flags()
	f.StringVar(&o.lastAction, "last-action", "", "when the last action happens, RFC 3339 (default now)")
	f.BoolVar(&o.originalTimes, "original-times", false, "keep the times of 2005 to 2011")
	f.BoolVar(&o.wait, "wait", true, "return when everything is worked off")
	f.DurationVar(&o.timeout, "timeout", 15*time.Minute, "give up when a phase is not worked off after")
	f.BoolVar(&o.json, "json", false, "print the summary as JSON")
	cmd.MarkFlagsMutuallyExclusive("last-action", "original-times")
	return cmd
}

func run(cmd *cobra.Command, dir string, o options, setup func(*cobra.Command) (topics.Setup, error)) error {
	began := time.Now()
	last, err := o.last(began)
	if err != nil {
		return err
	}
	d, err := Read(os.DirFS(dir))
	if err != nil {
		return fmt.Errorf("read %s: nothing was published: %w", dir, err)
	}
	if o.originalTimes {
		last = d.LastAction()
	}
	s, err := setup(cmd)
	if err != nil {
		return err
	}
	if !o.json {
		announce(cmd.ErrOrStderr(), d.Counts(), last)
	}
	before, unknown := work(cmd.Context(), s)
	phases, err := publish(cmd.Context(), s, o, d, last)
	if err != nil {
		return fmt.Errorf("%w (to take it up: --last-action %s)", err, last.Format(time.RFC3339))
	}
	summary := Summary{Counts: d.Counts(), LastAction: last, Phases: phases, Seconds: time.Since(began).Seconds()}
	if o.wait {
		summary.addWork(cmd.Context(), s, before, unknown)
	}
	return summary.print(cmd.OutOrStdout(), o.json)
}

// work queries the counts of the running processes.
func work(ctx context.Context, s topics.Setup) (topics.Work, error) {
	if s.Work == nil {
		return topics.Work{}, errors.New("nobody is there to be asked")
	}
	return s.Work(ctx)
}

// addWork sets the results of the import, if the counts before and after it are known.
func (s *Summary) addWork(ctx context.Context, setup topics.Setup, before topics.Work, unknown error) {
	var now topics.Work
	if unknown == nil {
		now, unknown = work(ctx, setup)
	}
	if unknown != nil {
		s.NoWork = unknown.Error()
		return
	}
	done := now.Since(before)
	s.Work = &done
}

// last returns the target time of the last action.
func (o options) last(now time.Time) (time.Time, error) {
	if o.timeout <= 0 {
		return time.Time{}, command.Usagef("--timeout %s: must be positive", o.timeout)
	}
	if o.lastAction == "" {
		return now.UTC().Truncate(time.Second), nil
	}
	last, err := time.Parse(time.RFC3339, o.lastAction)
	if err != nil {
		return last, command.Usagef("--last-action %q: want a time like 2026-11-20T10:00:00Z", o.lastAction)
	}
	if last.After(now.Add(schemas.MaxAhead)) {
		return last, command.Usagef("--last-action %s: more than %s ahead: such actions would be refused",
			o.lastAction, schemas.MaxAhead)
	}
	return last.UTC(), nil
}

func publish(ctx context.Context, s topics.Setup, o options, d *Dataset, last time.Time) ([]Phase, error) {
	publisher, err := load.Open(ctx, s)
	if err != nil {
		return nil, err
	}
	defer publisher.Close()
	i := &Importer{
		Publisher: publisher,
		WorkOff: func(ctx context.Context, say func(string)) error {
			return load.WorkOff(ctx, s, o.timeout, say)
		},
		Start: s.Start, Wait: o.wait,
	}
	return i.Import(ctx, d, d.ShiftTo(last))
}

func announce(out io.Writer, c Counts, last time.Time) {
	fmt.Fprintf(out, "importing %s, %s, %s, %s\n",
		command.Count(c.Users, "user"), command.Count(c.Follows, "follow"), command.Count(c.Pins, "pin"), command.Count(c.Actions, "action"))
	fmt.Fprintf(out, "left out: %s dated outside 2005-08-01 … 2011-05-31, %s of artists whom nobody else tagged\n",
		command.Count(c.Skipped.Undated, "tag row"), command.Count(c.Skipped.NoPin, "listening row"))
	fmt.Fprintf(out, "the last action happens at %s; with --last-action %[1]s the import can be taken up\n", last.Format(time.RFC3339))
}

func (s Summary) print(out io.Writer, asJSON bool) error {
	if asJSON {
		enc := json.NewEncoder(out)
		enc.SetIndent("", "  ")
		return enc.Encode(s)
	}
	events := 0
	for _, p := range s.Phases {
		events += p.Events
		fmt.Fprintf(out, "%-18s %7d events, acknowledged in %.1f s", p.Name, p.Events, p.Published)
		if p.WorkedOff > 0 {
			fmt.Fprintf(out, ", worked off %.1f s later", p.WorkedOff)
		}
		fmt.Fprintln(out)
	}
	fmt.Fprintf(out, "%-18s %7d events in %.1f s\n", "imported", events, s.Seconds)
	return s.printWork(out)
}

func (s Summary) printWork(out io.Writer) error {
	var lines []string
	switch {
	case s.Work != nil:
		lines = s.Work.Lines()
	case s.NoWork != "":
		lines = []string{"deliveries and drops are not known: " + s.NoWork}
	}
	for _, line := range lines {
		if _, err := fmt.Fprintln(out, line); err != nil {
			return err
		}
	}
	return nil
}
