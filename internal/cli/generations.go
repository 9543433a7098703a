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

// generationFlags are the argument and the flags that rebuild and replay share.
type generationFlags struct {
	target  generations.Target
	rate    float64
	abort   bool
	timeout time.Duration
}

func (p *program) rebuildCommand() *cobra.Command {
	var f generationFlags
	var source schemas.Source
	check := func(problems *settings.Problems) {
		err := source.CheckRebuildable()
		problems.Want(err == nil, "--source: %w", err)
		problems.Want(!f.target.IsAll() || source == "", "--source: only for a user: for all users, want the source as the argument")
	}
	cmd := p.generationCommand(&f, check, func(ctx context.Context, setup topics.Setup) (any, error) {
		if f.target.IsAll() {
			return generations.Rebuild(ctx, setup, f.target, f.rate)
		}
		return generations.RebuildUser(ctx, setup, schemas.UserID(f.target), source)
	})
	cmd.Use = "rebuild USER|following|interest|all"
	cmd.Short = "Rebuild pools from the followees' recent pins"
	cmd.Long = `Rebuild the pools of one user in place, or those of all users, in one source or in both, as a new generation. Every followee
delivers its recent publications again. Pins that are no longer among a followee's recent publications are not restored.
Shown items stay shown. Candidates of related pins and of external systems stay.

For one user, the pools remove the candidates from followees. A visit waits for the deliveries for up to
generator.reactivation_timeout. Then it reports "reactivating".

For all users, the command builds a new generation of the pools while the current generation answers, at --rate users per
second. The new generation has its own changelog and emits nothing. The command copies the rows that followees cannot deliver
(shown items, positions, edges, candidates of related pins and of external systems); followees deliver the other rows. Then it
cuts over: at the same record of each input partition, the current generation stops emitting and the new one starts. Processes
answer from the new one within a second.

To continue an interrupted run, start it again, on any machine; --rate may differ. "replay" continues the runs of "replay".
--abort discards the generation that is being built, until its cut-over starts. After --timeout the exit code is 1; published
requests still take effect.`
	cmd.Example = "  smartfeed rebuild user:ada --source following\n  smartfeed rebuild following --rate 500\n  smartfeed rebuild all -o json"
	cmd.Flags().StringVar((*string)(&source), "source", "", "source to rebuild for a user: following or interest (default both)")
	complete(cmd, "source", string(schemas.Following), string(schemas.FromInterest))
	cmd.Flags().Float64Var(&f.rate, "rate", 200, "users per second, for all users")
	return cmd
}

func (p *program) replayCommand() *cobra.Command {
	var f generationFlags
	var o generations.ReplayOptions
	check := func(problems *settings.Problems) {
		checkRate(problems, "users", o.Users)
		inRange := o.HalfLife >= time.Minute && o.HalfLife <= 365*24*time.Hour
		problems.Want(o.HalfLife == 0 || inRange, "--half-life: %s: want 1m to 8760h", o.HalfLife)
	}
	cmd := p.generationCommand(&f, check, func(ctx context.Context, setup topics.Setup) (any, error) {
		o.Target, o.Rate = f.target, f.rate
		return generations.Replay(ctx, setup, o)
	})
	cmd.Use = "replay USER|following|interest|all"
	cmd.Short = "Reprocess the log of pins with the current scoring rules"
	cmd.Long = `Reprocess the log of pins, so that publications get the quality (objects.quality_rules) and the half-life
(fanout.score_half_life) of the current configuration. Change the configuration, restart the processes, then replay.

For all users, or for all users in one source, the command reads the log twice, at --rate events per second. It recomputes
each pin's quality and its rank among a followee's recent publications. Then it builds a new generation of the pools, at
--users users per second, as "rebuild all" does, and cuts over. Until then the pools keep their candidates. Versions, counts,
impressions and shown items do not change, so nothing is counted or shown twice.

For one user it processes the pins of the user's followees, and rebuilds the user's pools in place.

To continue an interrupted run, start it again with the same target and --half-life; --rate and --users may differ. If the
run was building a generation, it completes the generation. Otherwise it reads the log from the start. If you changed the
rules again, run "replay all --abort" first, so that the log is read again. --abort discards the generation that is being
built, until its cut-over starts.

Candidates of related pins keep their scores. With --half-life, the current fanout.score_half_life, candidates that were
scored with another half-life are not carried over.

The number of partitions does not change. After --timeout the exit code is 1; published events still take effect.`
	cmd.Example = "  smartfeed replay all\n  smartfeed replay following --rate 500 -o json\n  smartfeed replay user:ada"
	cmd.Flags().Float64Var(&f.rate, "rate", 2000, "events per second")
	cmd.Flags().Float64Var(&o.Users, "users", 200, "users per second whose pools are built, for all users")
	cmd.Flags().DurationVar(&o.HalfLife, "half-life", 0,
		"current fanout.score_half_life, if it has changed: candidates of related pins with other scores are not carried over")
	return cmd
}

// generationCommand returns a command that runs do, or aborts the generation that is being built. check adds the errors in
// the flags of this command.
func (p *program) generationCommand(
	f *generationFlags, check func(*settings.Problems), do func(context.Context, topics.Setup) (any, error),
) *cobra.Command {
	cmd := &cobra.Command{
		Args: cobra.ExactArgs(1),
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return schemas.Strings(generations.Targets()), cobra.ShellCompDirectiveNoFileComp
		},
		RunE: p.printsOf(func(cmd *cobra.Command, args []string, setup topics.Setup) (any, error) {
			f.target = generations.Target(args[0])
			if err := f.check(check); err != nil {
				return nil, usage(err)
			}
			ctx, cancel := f.context(cmd.Context())
			defer cancel()
			if f.abort {
				return aborted(), generations.Abort(ctx, setup)
			}
			return do(ctx, setup)
		}),
	}
	cmd.Flags().BoolVar(&f.abort, "abort", false, "discard the generation that is being built, until its cut-over starts")
	cmd.Flags().DurationVar(&f.timeout, "timeout", 0, "maximum time to wait (default 1m for a user, else unlimited)")
	return cmd
}

// check reports every error in the argument and the flags.
func (f *generationFlags) check(others func(*settings.Problems)) error {
	problems := settings.Problems{f.target.Validate()}
	problems.Want(f.timeout >= 0, "--timeout: %s: want 0 or more", f.timeout)
	checkRate(&problems, "rate", f.rate)
	others(&problems)
	problems.Want(!f.abort || f.target == generations.All, "--abort: only for the target all")
	return problems.Err()
}

func checkRate(problems *settings.Problems, flag string, perSecond float64) {
	problems.Want(perSecond > 0 && perSecond <= 1e6, "--%s: %v: want above 0, at most 1000000", flag, perSecond)
}

// context applies --timeout. The default for a user is one minute.
func (f *generationFlags) context(ctx context.Context) (context.Context, context.CancelFunc) {
	timeout := f.timeout
	if !f.target.IsAll() {
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
