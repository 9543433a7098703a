package app

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/smartfeed/smartfeed/internal/bounds"
	"github.com/smartfeed/smartfeed/internal/command"
	"github.com/smartfeed/smartfeed/internal/ops"
	"github.com/smartfeed/smartfeed/processors/pools"
	"github.com/smartfeed/smartfeed/processors/pools/layout"
	"github.com/smartfeed/smartfeed/schemas"
	"github.com/smartfeed/smartfeed/topics"
)

// replayOptions are the flags of `replay`.
type replayOptions struct {
	since, until string
	rate, users  float64
	resume       bool
	abort        bool
	group        string
	halfLife     time.Duration
	json         bool
	timeout      time.Duration
}

// replayed is the result of a replay.
type replayed struct {
	User    schemas.UserID `json:"user,omitempty"`
	Events  *ops.Replayed  `json:"events,omitempty"`  // nil: an earlier run replayed them
	Built   *built         `json:"built,omitempty"`   // for all users
	Rebuilt *ops.Rebuilt   `json:"rebuilt,omitempty"` // for one user
	Seconds float64        `json:"seconds"`
}

// String returns the result as a text.
func (r replayed) String() string {
	var parts []string
	if r.Events != nil {
		parts = append(parts, "processed "+command.Count(r.Events.Events, "event")+" of pins again")
	}
	if r.Built != nil {
		parts = append(parts, r.Built.String())
	}
	if r.Rebuilt != nil {
		parts = append(parts, r.Rebuilt.String())
	}
	return strings.Join(parts, "; ")
}

func (p *program) replayCommand() *cobra.Command {
	var o replayOptions
	cmd := &cobra.Command{
		Use:   "replay USER|following|interest|all",
		Short: "work the log of pins off again, by the rules of scores as they are now",
		Long: `Work the log of pins off again, so that what is published already stands by the rules as they are now: quality
(objects.quality) and half-life (fanout.half_life). Change the configuration, restart the processes, then replay.

Of everybody, or of everybody in one source, it goes through the log twice, --rate events a second, and has each pin's
quality and its place among what its followees publish worked out again; then it builds a new generation of the pools beside the one
that answers, as "rebuild all --generation" does, of --users users a second, and cuts over. Until then the pools hold what
they held; what is published, followed or pulled meanwhile comes by the new rules, as it does from the restart on. Versions,
counts, impressions and what was shown are not touched, so nothing is counted or shown twice.

Of a user it works off the pins of whom the user follows, and makes the user's pools anew in place.

--since and --until (RFC 3339) take a span of the log, by arrival: enough where a rule was wrong for a time, not where the
half-life changed. A run that ends in the middle goes on with --resume and the same arguments, but for --rate and --users; what
another command is building it does not go on with. --abort gives up the generation that is being built, until its cut-over
begins. Candidates of related keep their scores: with --half-life, which is what fanout.half_life is now, those that were scored
by another one stay behind, and are counted; without it they stand among the others as they did.

--group NAME says why no other group is replayed. The number of partitions does not change by this. After --timeout the
exit code is 1; what was published is worked off all the same.`,
		Example: "  smartfeed replay all\n  smartfeed replay following --since 2026-11-01T00:00:00Z --rate 500 --json\n  smartfeed replay user:ada",
		ValidArgsFunction: cobra.FixedCompletions(
			[]string{string(schemas.Following), string(schemas.FromInterest), "all"}, cobra.ShellCompDirectiveNoFileComp),
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.check(args[0]); err != nil {
				return &command.UsageError{Err: err}
			}
			ctx, cancel := rebuildOptions{timeout: o.timeout}.context(cmd.Context(), args[0])
			defer cancel()
			if o.abort {
				return p.generation(ctx, cmd, rebuildOptions{abort: true})
			}
			done, err := p.replay(ctx, cmd, args[0], o)
			if err != nil {
				return err
			}
			if o.json {
				return command.PrintJSON(cmd.OutOrStdout(), done)
			}
			_, err = fmt.Fprintln(cmd.OutOrStdout(), done)
			return err
		},
	}
	cmd.Flags().StringVar(&o.since, "since", "", "only events that arrived at this time or later")
	cmd.Flags().StringVar(&o.until, "until", "", "only events that arrived before this time")
	cmd.Flags().Float64Var(&o.rate, "rate", 2000, "events a second")
	cmd.Flags().Float64Var(&o.users, "users", 200, "users a second whose pools are built, of everybody")
	cmd.Flags().BoolVar(&o.resume, "resume", false, "go on where the last run with the same arguments was")
	cmd.Flags().BoolVar(&o.abort, "abort", false, "give up the generation that is being built, until its cut-over begins")
	cmd.Flags().StringVar(&o.group, "group", topics.Pools, "whose rows are computed anew")
	cmd.Flags().DurationVar(&o.halfLife, "half-life", 0, "what fanout.half_life is now, if it has changed: by another one no candidate of related is taken over")
	cmd.Flags().BoolVar(&o.json, "json", false, "print JSON")
	cmd.Flags().DurationVar(&o.timeout, "timeout", 0, "give up after (default 1m of a user, else never)")
	return cmd
}

// noReplay returns why the rows of a group cannot be recomputed, and what happens instead; "" for a group that can be
// replayed.
func noReplay(group string) string {
	switch group {
	case topics.Objects:
		return "held actions, counts and remembered ids of actions are of topics that are kept for days only; what its rules make of pins " +
			"is worked out again by a replay of all"
	case topics.Fanout:
		return "weights of edges come from a topic that is kept for days only; the scores of what followees publish are worked out again " +
			"by a replay of all"
	case topics.Actors:
		return "affinities are sums over actions that are kept for days only; they follow new rules as people act"
	case topics.Related:
		return "strengths are sums over actions that are kept for days only; they follow new rules as people act"
	case topics.Interests:
		return "counts are of topics that are kept for days only; decisions are kept for ever and hold at once"
	case topics.Retries:
		return "what waits is tried by the rules of now anyway"
	case topics.Pools:
		return ""
	}
	return "is none of " + strings.Join(topics.RowGroups(), ", ")
}

// check reports every mistake in the arguments.
func (o replayOptions) check(what string) error {
	problems := []error{rebuildOptions{rate: o.rate, timeout: o.timeout, resume: o.resume}.check(what)}
	if !(o.users > 0 && o.users <= 1e6) {
		problems = append(problems, fmt.Errorf("--users %v: above 0 to 1000000", o.users))
	}
	if why := noReplay(o.group); why != "" {
		problems = append(problems, fmt.Errorf("--group %s: %s", o.group, why))
	}
	if o.halfLife != 0 && (o.halfLife < time.Minute || o.halfLife > 365*24*time.Hour) {
		problems = append(problems, fmt.Errorf("--half-life %s: from 1m to 8760h", o.halfLife))
	}
	if o.abort && what != "all" {
		problems = append(problems, errors.New("--abort is for all"))
	}
	since, until, err := o.span()
	if !until.IsZero() && !since.Before(until) {
		err = errors.Join(err, fmt.Errorf("--since %s is not before --until %s", o.since, o.until))
	}
	return errors.Join(append(problems, err)...)
}

// span returns the times of --since and --until; zero: not given.
func (o replayOptions) span() (since, until time.Time, err error) {
	var problems []error
	parse := func(flag, text string) (t time.Time) {
		if text == "" {
			return t
		}
		t, err := time.Parse(time.RFC3339, text)
		if err != nil {
			problems = append(problems, fmt.Errorf("--%s %q: want a time like 2026-11-20T10:00:00Z", flag, text))
		}
		return t
	}
	since, until = parse("since", o.since), parse("until", o.until)
	return since, until, errors.Join(problems...)
}

// command returns the command line that resumes a replay of all users: it has the arguments that define the result.
func (o replayOptions) command(what string) string {
	words := []string{"replay", what}
	since, until, _ := o.span()
	if !since.IsZero() {
		words = append(words, "--since", since.UTC().Format(time.RFC3339Nano))
	}
	if !until.IsZero() {
		words = append(words, "--until", until.UTC().Format(time.RFC3339Nano))
	}
	if o.halfLife != 0 {
		words = append(words, "--half-life", bounds.Short(o.halfLife))
	}
	return strings.Join(append(words, "--resume"), " ")
}

// replay processes the log again, for a user or for all users.
func (p *program) replay(ctx context.Context, cmd *cobra.Command, what string, o replayOptions) (done replayed, err error) {
	setup, err := p.setup(cmd)
	if err != nil {
		return done, err
	}
	b, err := newBuilder(ctx, setup, o.users)
	if err != nil {
		return done, err
	}
	defer b.close()
	r := ops.Replayer{Setup: setup, Streams: b.streams, Readers: setup.Readers(), Rate: o.rate, Resume: o.resume}
	if r.Since, r.Until, err = o.span(); err != nil {
		return done, &command.UsageError{Err: err}
	}
	start := time.Now()
	if everybody(what) {
		if what != "all" {
			r.Source = schemas.Source(what)
		}
		b.carry = pools.Carry{Source: r.Source, HalfLife: o.halfLife}
		b.command = o.command(what)
		done, err = b.replay(ctx, r)
	} else {
		done, err = b.replayOf(ctx, r, schemas.UserID(what))
	}
	done.Seconds = time.Since(start).Seconds()
	return done, err
}

// replay processes the log again and then builds a generation. It starts the generation only after the log has been
// processed. Therefore, if a generation is being built, a resumed run skips the log.
func (b *builder) replay(ctx context.Context, r ops.Replayer) (done replayed, err error) {
	now, err := b.now(ctx)
	if err == nil {
		err = b.refuse(now, r.Resume)
	}
	if err != nil {
		return done, err
	}
	if now.Building == 0 {
		events, err := r.Replay(ctx)
		if done.Events = &events; err != nil {
			return done, fmt.Errorf("%w (--resume goes on from there)", err)
		}
	}
	made, err := b.build(ctx)
	done.Built = &made
	return done, err
}

// replayOf processes the publications of a user's followees again, and rebuilds the user's pools in place.
func (b *builder) replayOf(ctx context.Context, r ops.Replayer, user schemas.UserID) (replayed, error) {
	done := replayed{User: user}
	rows, err := ops.RowsOf(ctx, b.log, b.setup.Kafka, topics.Pools, user)
	if err == nil && len(rows) == 0 {
		err = fmt.Errorf("replay %s: %w", user, ops.ErrNothingKnown)
	}
	if err != nil {
		return done, err
	}
	r.Followees = layout.Follows(rows)
	events, err := r.Replay(ctx)
	if done.Events = &events; err != nil {
		return done, err
	}
	again := ops.Rebuilder{Setup: b.setup, Streams: b.streams, Readers: b.setup.Readers(), Rate: 1}
	rebuilt, err := again.User(ctx, user)
	done.Rebuilt = &rebuilt
	return done, err
}
