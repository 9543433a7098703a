package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/smartfeed/smartfeed/internal/command"
	"github.com/smartfeed/smartfeed/internal/ops"
	"github.com/smartfeed/smartfeed/schemas"
)

// rebuildOptions are the flags of `rebuild`.
type rebuildOptions struct {
	source  string
	rate    float64
	resume  bool
	json    bool
	timeout time.Duration

	generation bool
	abort      bool
}

func (p *program) rebuildCommand() *cobra.Command {
	var o rebuildOptions
	cmd := &cobra.Command{
		Use:   "rebuild USER|following|interest|all",
		Short: "make pools anew of what followees have",
		Long: `Make pools anew, in place: the candidates that followees brought are taken away, and every followee brings its newest pins,
as to somebody who returns. Of a user, of everybody in one source, or of everybody in both. What was shown stays shown; what
related and other systems brought stays as it is; what no followee has among its newest any more does not come back.
A visit meanwhile waits for the answers, as long as generator.reactivation_timeout allows, and then says "returning".

Of everybody it goes through the users in the order of their names, --rate of them a second. --resume goes on where the
last such run was, from wherever it is started.

With --generation everything is built beside what answers, as a new generation of the pools: a changelog of its own, silent,
with what followees cannot bring (what was shown, positions, edges, what related and others brought) copied from the former
one's as it is now, and the rest brought by the followees. When it has all of it, the one falls silent at the same record
from which on the other is active, in each partition of each input, and processes answer from it within a second. A run that
ends in the middle goes on when it is started again; what "replay" is building goes on with that. --abort gives up what is being
built, until its cut-over begins. After --timeout the exit code is 1; what was asked for is done all the same.`,
		Example: "  smartfeed rebuild user:ada --source following\n  smartfeed rebuild all --rate 500\n  smartfeed rebuild all --generation --json",
		Args:    cobra.ExactArgs(1),
		ValidArgsFunction: cobra.FixedCompletions(
			[]string{string(schemas.Following), string(schemas.FromInterest), "all"}, cobra.ShellCompDirectiveNoFileComp),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.check(args[0]); err != nil {
				return &command.UsageError{Err: err}
			}
			ctx, cancel := o.context(cmd.Context(), args[0])
			defer cancel()
			if o.generation || o.abort {
				return p.generation(ctx, cmd, o)
			}
			done, err := p.rebuild(ctx, cmd, args[0], o)
			if err != nil {
				return err
			}
			return printRebuilt(cmd.OutOrStdout(), done, o.json)
		},
	}
	cmd.Flags().StringVar(&o.source, "source", "", "of a user: following or interest (default both)")
	complete(cmd, "source", string(schemas.Following), string(schemas.FromInterest))
	cmd.Flags().Float64Var(&o.rate, "rate", 200, "users a second, of everybody")
	cmd.Flags().BoolVar(&o.resume, "resume", false, "go on where the last run of everybody was")
	cmd.Flags().BoolVar(&o.generation, "generation", false, "of all: beside what answers, as a new generation, with a cut-over at the end")
	cmd.Flags().BoolVar(&o.abort, "abort", false, "give up the generation that is being built, until its cut-over begins")
	cmd.Flags().BoolVar(&o.json, "json", false, "print JSON")
	cmd.Flags().DurationVar(&o.timeout, "timeout", 0, "give up after (default 1m of a user, else never)")
	return cmd
}

// everybody reports whether an argument stands for all users.
func everybody(what string) bool {
	return what == "all" || what == string(schemas.Following) || what == string(schemas.FromInterest)
}

// check reports every mistake in the arguments.
func (o rebuildOptions) check(what string) error {
	var problems []error
	if !everybody(what) {
		if _, err := schemas.ParseUserID(what); err != nil {
			problems = append(problems, fmt.Errorf("%q is neither following, interest nor all, and no user: %w", what, err))
		}
	}
	if err := schemas.Source(o.source).CheckRebuilt(); err != nil {
		problems = append(problems, fmt.Errorf("--source: %w", err))
	}
	if everybody(what) && o.source != "" {
		problems = append(problems, errors.New("--source is for a user: name the source instead of all"))
	}
	if !everybody(what) && o.resume {
		problems = append(problems, errors.New("--resume is for a run of everybody"))
	}
	if (o.generation || o.abort) && what != "all" {
		problems = append(problems, errors.New("--generation and --abort are for all"))
	}
	if !(o.rate > 0 && o.rate <= 1e6) {
		problems = append(problems, fmt.Errorf("--rate %v: above 0 to 1000000", o.rate))
	}
	if o.timeout < 0 {
		problems = append(problems, fmt.Errorf("--timeout %s: must not be negative", o.timeout))
	}
	return errors.Join(problems...)
}

func (o rebuildOptions) context(ctx context.Context, what string) (context.Context, context.CancelFunc) {
	timeout := o.timeout
	if timeout == 0 && !everybody(what) {
		timeout = time.Minute
	}
	if timeout == 0 {
		return context.WithCancel(ctx)
	}
	return context.WithTimeoutCause(ctx, timeout, fmt.Errorf("not done within %s", timeout))
}

func (p *program) rebuild(ctx context.Context, cmd *cobra.Command, what string, o rebuildOptions) (ops.Rebuilt, error) {
	setup, err := p.setup(cmd)
	if err != nil {
		return ops.Rebuilt{}, err
	}
	streams, err := setup.Streams(ctx)
	if err != nil {
		return ops.Rebuilt{}, err
	}
	r := ops.Rebuilder{
		Setup: setup, Streams: streams, Readers: setup.Readers(), Source: schemas.Source(o.source), Rate: o.rate, Resume: o.resume,
	}
	if !everybody(what) {
		return r.User(ctx, schemas.UserID(what))
	}
	if what != "all" {
		r.Source = schemas.Source(what)
	}
	return r.All(ctx)
}

func printRebuilt(out io.Writer, done ops.Rebuilt, asJSON bool) error {
	if asJSON {
		return command.PrintJSON(out, done)
	}
	_, err := fmt.Fprintln(out, done)
	return err
}
