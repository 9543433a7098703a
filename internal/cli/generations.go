package cli

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/smartfeed/smartfeed/internal/ops/generations"
	"github.com/smartfeed/smartfeed/internal/settings"
	"github.com/smartfeed/smartfeed/schemas"
	"github.com/smartfeed/smartfeed/topics"
)

// rebuildFlags are the flags of rebuild. replay has some of them, too.
type rebuildFlags struct {
	generations.RebuildOptions
	timeout    time.Duration
	generation bool
	abort      bool
}

func (p *program) rebuildCommand() *cobra.Command {
	var f rebuildFlags
	cmd := &cobra.Command{
		Use:   "rebuild USER|following|interest|all",
		Short: "Rebuild pools from the followees' recent pins",
		Long: `Rebuild the pools of one user, of all users in one source, or of all users in both sources, in place. The pools remove the
candidates from followees, and every followee delivers its recent publications again, as for a reactivated user. Shown items
stay shown. Candidates of related pins and of external systems stay. Pins that are no longer among a followee's recent
publications are not restored. A visit waits for these deliveries for up to generator.reactivation_timeout. Then it reports
"reactivating".

For all users, the command processes them in the order of their ids, at --rate users per second. --resume continues the last
such run, from any machine.

With --generation it builds a new generation of the pools while the current generation answers. The new generation has its
own changelog and emits nothing. The command copies the rows that followees cannot deliver (shown items, positions, edges,
candidates of related pins and of external systems); followees deliver the other rows. Then it cuts over: at the same record
of each input partition, the current generation stops emitting and the new one starts. Processes answer from the new one
within a second.

To continue an interrupted run, start it again. "replay" continues the runs of "replay". --abort discards the generation that
is being built, until its cut-over starts. After --timeout the exit code is 1; published requests still take effect.`,
		Example:           "  smartfeed rebuild user:ada --source following\n  smartfeed rebuild all --rate 500\n  smartfeed rebuild all --generation -o json",
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: completeTargets,
		RunE: p.printsOf(func(cmd *cobra.Command, args []string, setup topics.Setup) (any, error) {
			f.Target = generations.Target(args[0])
			if err := f.check(); err != nil {
				return nil, usage(err)
			}
			ctx, cancel := f.context(cmd.Context())
			defer cancel()
			switch {
			case f.abort:
				return aborted(), generations.Abort(ctx, setup)
			case f.generation:
				return generations.Build(ctx, setup, f.Rate)
			}
			return generations.Rebuild(ctx, setup, f.RebuildOptions)
		}),
	}
	cmd.Flags().StringVar((*string)(&f.Source), "source", "", "source to rebuild for a user: following or interest (default both)")
	complete(cmd, "source", string(schemas.Following), string(schemas.FromInterest))
	cmd.Flags().Float64Var(&f.Rate, "rate", 200, "users per second, for all users")
	cmd.Flags().BoolVar(&f.Resume, "resume", false, "continue the last run for all users")
	cmd.Flags().BoolVar(&f.generation, "generation", false, "build a new generation and cut over to it, for the target all")
	cmd.Flags().BoolVar(&f.abort, "abort", false, abortUsage)
	cmd.Flags().DurationVar(&f.timeout, "timeout", 0, timeoutUsage)
	return cmd
}

const (
	abortUsage   = "discard the generation that is being built, until its cut-over starts"
	timeoutUsage = "maximum time to wait (default 1m for a user, else unlimited)"
)

// completeTargets completes the target of rebuild and replay.
func completeTargets(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	return schemas.Strings(generations.Targets()), cobra.ShellCompDirectiveNoFileComp
}

// check reports every error in the flags.
func (f rebuildFlags) check() error {
	problems := settings.Problems{f.Target.Validate()}
	if err := f.Source.CheckRebuildable(); err != nil {
		problems.Add(fmt.Errorf("--source: %w", err))
	}
	problems.Want(!f.Target.IsAll() || f.Source == "", "--source: only for a user: for all users, want the source as the argument")
	problems.Want(f.Target.IsAll() || !f.Resume, "--resume: only for all users")
	problems.Want(f.Target == generations.All || !f.generation && !f.abort, "--generation and --abort: only for the target all")
	problems.Want(f.timeout >= 0, "--timeout: %s: want 0 or more", f.timeout)
	problems.Want(validRate(f.Rate), "--rate: %v: %s", f.Rate, wantRate)
	return problems.Err()
}

const wantRate = "want above 0, at most 1000000"

func validRate(perSecond float64) bool { return perSecond > 0 && perSecond <= 1e6 }

// context applies --timeout. The default for a user is one minute.
func (f rebuildFlags) context(ctx context.Context) (context.Context, context.CancelFunc) {
	timeout := f.timeout
	if !f.Target.IsAll() {
		timeout = cmp.Or(timeout, time.Minute)
	}
	if timeout == 0 {
		return context.WithCancel(ctx)
	}
	return context.WithTimeoutCause(ctx, timeout, fmt.Errorf("not done within %s", timeout))
}

// aborted is the output of --abort.
func aborted() output {
	return line(struct {
		Aborted bool `json:"aborted"`
	}{true}, "the generation that was being built is aborted")
}

// replayFlags are the flags of replay.
type replayFlags struct {
	generations.ReplayOptions
	abort   bool
	timeout time.Duration
}

func (p *program) replayCommand() *cobra.Command {
	var f replayFlags
	cmd := &cobra.Command{
		Use:   "replay USER|following|interest|all",
		Short: "Reprocess the log of pins with the current scoring rules",
		Long: `Reprocess the log of pins, so that publications get the quality (objects.quality_rules) and the half-life
(fanout.score_half_life) of the current configuration. Change the configuration, restart the processes, then replay.

For all users, or for all users in one source, the command reads the log twice, at --rate events per second. It recomputes
each pin's quality and its rank among a followee's recent publications. Then it builds a new generation of the pools, at
--users users per second, as "rebuild all --generation" does, and cuts over. Until then the pools keep their candidates.
Versions, counts, impressions and shown items do not change, so nothing is counted or shown twice.

For one user it processes the pins of the user's followees, and rebuilds the user's pools in place.

--resume continues an interrupted run with the same arguments; --rate and --users may differ. It does not continue a
generation of another command. --abort discards the generation that is being built, until its cut-over starts.

Candidates of related pins keep their scores. With --half-life, the current fanout.score_half_life, candidates that were
scored with another half-life are not carried over, and the command counts them.

The number of partitions does not change. After --timeout the exit code is 1; published events still take effect.`,
		Example:           "  smartfeed replay all\n  smartfeed replay following --rate 500 -o json\n  smartfeed replay user:ada",
		ValidArgsFunction: completeTargets,
		Args:              cobra.ExactArgs(1),
		RunE: p.printsOf(func(cmd *cobra.Command, args []string, setup topics.Setup) (any, error) {
			f.Target = generations.Target(args[0])
			if err := f.check(); err != nil {
				return nil, usage(err)
			}
			ctx, cancel := f.common().context(cmd.Context())
			defer cancel()
			if f.abort {
				return aborted(), generations.Abort(ctx, setup)
			}
			return generations.Replay(ctx, setup, f.ReplayOptions)
		}),
	}
	f.add(cmd)
	return cmd
}

func (f *replayFlags) add(cmd *cobra.Command) {
	cmd.Flags().Float64Var(&f.Rate, "rate", 2000, "events per second")
	cmd.Flags().Float64Var(&f.Users, "users", 200, "users per second whose pools are built, for all users")
	cmd.Flags().BoolVar(&f.Resume, "resume", false, "continue the last run with the same arguments")
	cmd.Flags().BoolVar(&f.abort, "abort", false, abortUsage)
	cmd.Flags().DurationVar(&f.HalfLife, "half-life", 0, "current fanout.score_half_life, if it has changed: candidates of related pins with other scores are not carried over")
	cmd.Flags().DurationVar(&f.timeout, "timeout", 0, timeoutUsage)
}

// common returns the flags that rebuild also has.
func (f *replayFlags) common() rebuildFlags {
	o := generations.RebuildOptions{Target: f.Target, Rate: f.Rate, Resume: f.Resume}
	return rebuildFlags{RebuildOptions: o, timeout: f.timeout}
}

// check reports every error in the flags.
func (f *replayFlags) check() error {
	problems := settings.Problems{f.common().check()}
	problems.Want(validRate(f.Users), "--users: %v: %s", f.Users, wantRate)
	problems.Want(f.HalfLife == 0 || f.HalfLife >= time.Minute && f.HalfLife <= 365*24*time.Hour, "--half-life: %s: want 1m to 8760h", f.HalfLife)
	problems.Want(!f.abort || f.Target == generations.All, "--abort: only for the target all")
	return problems.Err()
}
