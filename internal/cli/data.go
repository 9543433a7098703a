package cli

import (
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/smartfeed/smartfeed/internal/command"
	"github.com/smartfeed/smartfeed/internal/ops"
	"github.com/smartfeed/smartfeed/internal/settings"
	"github.com/smartfeed/smartfeed/internal/tools/export"
	"github.com/smartfeed/smartfeed/internal/tools/lastfm"
	"github.com/smartfeed/smartfeed/internal/tools/simulate"
	"github.com/smartfeed/smartfeed/schemas"
	"github.com/smartfeed/smartfeed/topics"
)

func (p *program) publishCommand() *cobra.Command {
	var o ops.PublishOptions
	cmd := &cobra.Command{
		Use:   "publish [FILE...]",
		Short: "Publish events from files or standard input, one JSON object per line",
		Args:  cobra.ArbitraryArgs,
		Long: `Publish events from the files in the given order. Without files, and for the file "-", it reads standard input. Each line is
one JSON object: {"stream":"actions","id":"e-81","time":"2026-11-20T10:00:00.123Z","actor":"user:7",...}

The command checks all lines before it publishes any, and reports every bad line on standard error. If there is a bad line, it
publishes nothing and the exit code is 1, unless you set --skip-bad. It returns when the brokers have acknowledged all
events.`,
		Example: "  smartfeed publish events.ndjson\n  zcat events.ndjson.gz | smartfeed publish --skip-bad -o json",
		RunE: p.printsOf(func(cmd *cobra.Command, args []string, setup topics.Setup) (any, error) {
			o.Files, o.Stdin, o.Problems = args, cmd.InOrStdin(), cmd.ErrOrStderr()
			done, err := ops.Publish(cmd.Context(), setup, o)
			if done.Events > 0 {
				return output{value: done, failure: err}, nil
			}
			return done, err
		}),
	}
	cmd.Flags().BoolVar(&o.SkipBad, "skip-bad", false, "skip bad lines instead of publishing nothing")
	return cmd
}

func (p *program) importCommand() *cobra.Command {
	return group("import", "Import datasets", "  smartfeed import lastfm hetrec2011-lastfm-2k", p.lastfmCommand())
}

func (p *program) lastfmCommand() *cobra.Command {
	var lastAction string
	var originalTimes bool
	cmd := &cobra.Command{
		Use:   "lastfm DIR",
		Short: "Import the HetRec 2011 Last.fm dataset",
		Long: `Import the files of hetrec2011-lastfm-2k in DIR: the listening, tags and friends of 1,892 users.

The command publishes users and follows first, then pins, then actions. It waits until each phase is processed, at most 15
minutes. It shifts all times so that the last action happens at --last-action. To resume an interrupted import, run it again
with the --last-action that it printed: events that exist change nothing.`,
		Example: "  smartfeed import lastfm hetrec2011-lastfm-2k\n  smartfeed import lastfm hetrec2011-lastfm-2k --last-action 2026-11-20T10:00:00Z -o json",
		Args:    cobra.ExactArgs(1),
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return nil, cobra.ShellCompDirectiveFilterDirs
		},
		RunE: p.prints(func(cmd *cobra.Command, args []string) (any, error) {
			return p.importLastfm(cmd, args[0], lastAction, originalTimes)
		}),
	}
	cmd.Flags().StringVar(&lastAction, "last-action", "", "time of the last action, RFC 3339 (default now)")
	cmd.Flags().BoolVar(&originalTimes, "original-times", false, "keep the original times, 2005 to 2011")
	return cmd
}

func (p *program) importLastfm(cmd *cobra.Command, dir, lastAction string, originalTimes bool) (any, error) {
	if originalTimes && lastAction != "" {
		return nil, command.Usagef("--last-action and --original-times: want one of them")
	}
	last, err := parseLastAction(lastAction, time.Now())
	if err != nil {
		return nil, usage(err)
	}
	set, err := lastfm.Read(os.DirFS(dir))
	if err != nil {
		return nil, fmt.Errorf("read %s: nothing was published: %w", dir, err)
	}
	if originalTimes {
		last = set.LastAction()
	}
	setup, err := p.setup(cmd)
	if err != nil {
		return nil, err
	}
	if p.format.forPeople() {
		lastfm.Announce(cmd.ErrOrStderr(), set.Counts(), last)
	}
	return lastfm.Import(cmd.Context(), setup, set, last)
}

// parseLastAction returns the time in --last-action, by default now.
func parseLastAction(text string, now time.Time) (time.Time, error) {
	if text == "" {
		return now.UTC().Truncate(time.Second), nil
	}
	last, err := parseTime("last-action", text)
	if err != nil {
		return last, err
	}
	if last.After(now.Add(schemas.MaxAhead)) {
		return last, fmt.Errorf("--last-action: %s is more than %s in the future: the actions would be rejected", text, schemas.MaxAhead)
	}
	return last.UTC(), nil
}

func (p *program) simulateCommand() *cobra.Command {
	cfg := simulate.DefaultConfig()
	span := "forever"
	cmd := &cobra.Command{
		Use:   "simulate",
		Short: "Simulate users, boards, follows, pins and actions",
		Long: `Publish a simulated population with boards, interests, follows and pins. The same seed gives the same population. Then
simulate users who create pins, follow, view, click and save, at a given rate. A second run with the same seed continues with
the same population.`,
		Example: "  smartfeed simulate --users 200 --pins 1000 --rate 20 --for 5m\n  smartfeed simulate --for 0 -o json",
		RunE: p.printsOf(func(cmd *cobra.Command, _ []string, setup topics.Setup) (any, error) {
			duration, err := parseSpan(span)
			if err := errors.Join(cfg.Validate(), err); err != nil {
				return nil, usage(err)
			}
			return simulate.Run(cmd.Context(), setup, cfg, duration, nil)
		}),
	}
	f := cmd.Flags()
	f.IntVar(&cfg.Users, "users", cfg.Users, "number of users")
	f.IntVar(&cfg.BoardsPerUser, "boards-per-user", cfg.BoardsPerUser, "number of boards per user")
	f.IntVar(&cfg.Interests, "interests", cfg.Interests, "number of interests")
	f.IntVar(&cfg.Pins, "pins", cfg.Pins, "initial number of pins")
	f.IntVar(&cfg.Follows, "follows", cfg.Follows, "number of follows per user; 0: varies from 3, few users follow many")
	f.IntVar(&cfg.Star, "star", cfg.Star, "number of additional followers of the first user")
	f.Float64Var(&cfg.Rate, "rate", cfg.Rate, "events per second after the population; 0: no limit")
	f.Uint64Var(&cfg.Seed, "seed", cfg.Seed, "seed of the population")
	f.StringVar(&span, "for", span, `duration of the simulation, "forever", or 0 to publish only the population`)
	return cmd
}

// parseSpan parses a duration that may be forever.
func parseSpan(text string) (time.Duration, error) {
	if text == "forever" {
		return simulate.Forever, nil
	}
	span, err := time.ParseDuration(text)
	if err != nil || span < 0 {
		return 0, fmt.Errorf(`for: %q: want a duration such as 90s, 0, or "forever"`, text)
	}
	return span, nil
}

// waited is the result of wait.
type waited struct {
	Done    bool         `json:"done"`
	Lags    []topics.Lag `json:"lags"` // at the last successful check
	Seconds float64      `json:"seconds"`
}

func (p *program) waitCommand() *cobra.Command {
	return limitTime(&cobra.Command{
		Use:   "wait",
		Short: "Wait until all published events are processed",
		Long: `Wait until every group and store has processed all events that the brokers acknowledged before this command started. After
--timeout the exit code is 1, and the error names the consumers that lag. Until then, the command retries unavailable
brokers and an unavailable Pinot controller. A missing topic is an error.`,
		Example: "  smartfeed publish events.ndjson && smartfeed wait --timeout 30s\n  smartfeed wait -o json",
		RunE: p.printsOf(func(cmd *cobra.Command, _ []string, setup topics.Setup) (any, error) {
			since := schemas.MicrosOf(time.Now())
			task := setup.Start("wait", -1)
			var last topics.WaitState
			err := setup.Wait(cmd.Context(), since, func(w topics.WaitState) { last = w; task.Say(w.String()) })
			done := waited{Done: err == nil, Lags: append([]topics.Lag{}, last.Lags...), Seconds: task.Done().Seconds()}
			return output{value: done, text: func(io.Writer) error { return nil }, failure: err}, nil
		}),
	}, time.Minute)
}

func (p *program) exportCommand() *cobra.Command {
	cfg := export.DefaultConfig()
	var labels []string
	var since, until string
	cmd := &cobra.Command{
		Use:   "export",
		Short: "Write the items of logged visits with labels from later actions as Parquet",
		Long: `Join the visits in the topic visit-log with the later actions in actions-enriched, and write Parquet files, one row per
shown item, to OUT/day=YYYY-MM-DD. Before it reads, the command waits until the groups objects and actors have processed all
published actions. Each --label VERB=WINDOW adds two columns:

  label_VERB        whether the user acted on the pin with the verb within the window after the visit
  label_VERB_after  seconds from the visit to the first such action; null if there was none

In each partition, the command stops before the first visit with a window that has not ended. A repeated command continues after
the files in OUT. Visits of deleted users are skipped, and visits before the oldest action in the topic.`,
		Example: "  smartfeed training export --label save=24h --label hide=24h --out training\n" +
			"  smartfeed training export --label save=1h --out training --since 2026-11-20T00:00:00Z -o json",
		RunE: p.printsOf(func(cmd *cobra.Command, _ []string, setup topics.Setup) (any, error) {
			cfg.Now = time.Now()
			if err := parseExport(&cfg, labels, since, until, setup.Verbs); err != nil {
				return nil, usage(err)
			}
			return export.Run(cmd.Context(), setup, cfg)
		}),
	}
	f := cmd.Flags()
	f.StringArrayVar(&labels, "label", nil, "label VERB=WINDOW, such as save=24h, at most 168h; repeat it for several verbs")
	f.StringVar(&cfg.Dir, "out", "", "directory of the files; is created if it does not exist")
	f.StringVar(&since, "since", "", "skip visits before this time (RFC 3339)")
	f.StringVar(&until, "until", "", "stop in each partition before the first visit at or after this time (RFC 3339)")
	_ = cmd.MarkFlagDirname("out") // the flag exists: it was added above
	return cmd
}

// parseExport sets the labels and the times of a configuration. allowed may be nil for the predefined verbs.
func parseExport(cfg *export.Config, labels []string, since, until string, allowed schemas.Verbs) error {
	var problems [3]error
	cfg.Labels, problems[0] = export.ParseLabels(labels, schemas.DefaultVerbs().With(allowed))
	cfg.Since, problems[1] = parseTime("since", since)
	cfg.Until, problems[2] = parseTime("until", until)
	all := settings.Problems(problems[:])
	all.Want(cfg.Dir != "", "want --out")
	all.Want(cfg.Until.IsZero() || cfg.Until.After(cfg.Since), "--until: %s: want a time after --since", until)
	return all.Err()
}
