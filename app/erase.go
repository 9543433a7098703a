package app

import (
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/smartfeed/smartfeed/internal/command"
	"github.com/smartfeed/smartfeed/internal/ops"
	"github.com/smartfeed/smartfeed/schemas"
	"github.com/smartfeed/smartfeed/serving/feature/pinot"
)

func (p *program) eraseCommand() *cobra.Command {
	var asJSON, unknown bool
	var operator string
	var timeout time.Duration
	cmd := &cobra.Command{
		Use:   "erase USER",
		Short: "delete a user for good, with all that is theirs, and say what remains until when",
		Long: `Delete a user for good: the profile, what they care for, their edges on both sides, their pins, their pools, their frozen
feed and lists. It returns when no answer has any of it, and says what stands in logs and elsewhere until when. A delete
that is published on the topic users has the same effect; this command also waits for it.

A user of whom nothing is known is an error, and nothing is done: --unknown deletes the id all the same. Run it again
to check that nothing is left. After --timeout the exit code is 1; the erasure goes on.

A backup from before the erasure still has the user. Keep the output of "smartfeed erase list" apart from the backups, and
run "smartfeed erase again" with it after you restore one.`,
		Example:           "  smartfeed erase user:ada\n  smartfeed erase user:ada --timeout 10m --json",
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: cobra.NoFileCompletions, // users must not be listed
		RunE: func(cmd *cobra.Command, args []string) error {
			user, err := schemas.ParseUserID(args[0])
			if err != nil {
				return command.Usagef("%q is no user: %w", args[0], err)
			}
			if timeout <= 0 {
				return command.Usagef("--timeout %s: must be positive", timeout)
			}
			ctx, cancel := context.WithTimeoutCause(cmd.Context(), timeout, fmt.Errorf("not done within %s", timeout))
			defer cancel()
			done, err := p.erase(ctx, cmd, user, unknown, command.Operator(operator))
			if err != nil {
				return err
			}
			return printErased(cmd.OutOrStdout(), done, asJSON)
		},
	}
	cmd.AddCommand(p.eraseListCommand(), p.eraseAgainCommand())
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	cmd.Flags().BoolVar(&unknown, "unknown", false, "also delete a user of whom nothing is known")
	cmd.Flags().StringVar(&operator, "operator", "", "record this name as the operator; default: your login name and host")
	cmd.Flags().DurationVar(&timeout, "timeout", 2*time.Minute, "give up waiting after")
	return cmd
}

// erase erases a user and reports the progress.
func (p *program) erase(ctx context.Context, cmd *cobra.Command, user schemas.UserID, unknown bool, operator string) (ops.Erased, error) {
	cfg, err := p.load(cmd)
	if err != nil {
		return ops.Erased{}, err
	}
	setup, err := p.setup(cmd)
	if err != nil {
		return ops.Erased{}, err
	}
	remains, err := ops.Remains(ctx, setup.Kafka, time.Now()) // first, because it fails at once if the brokers are unavailable
	if err != nil {
		return ops.Erased{}, err
	}
	streams, err := setup.Streams(ctx)
	if err != nil {
		return ops.Erased{}, err
	}
	task := setup.Start("erase "+string(user), -1)
	defer task.Done()
	eraser := ops.Eraser{Kafka: setup.Kafka, Streams: streams, Readers: setup.Readers(), Unknown: unknown, Operator: operator, Say: task.Say}
	done, err := eraser.Erase(ctx, user)
	done.Remains = slices.Concat(remains, done.Remains, cfg.remains(time.Now()))
	return done, err
}

// remains returns the data of an erased user that the stores still hold, although no answer includes it. No data of the
// user arrives after now.
func (c *Config) remains(now time.Time) []ops.Remain {
	return []ops.Remain{
		c.remainingActions(now),
		{Where: "features of pins", What: "anonymous shares in counts, sketches and means"},
		{Where: "insights", What: "the days on which the user acted, which no answer counts", Note: fmt.Sprintf("until the next sweep, within %s, of each serve that runs", c.Insight.SweepEvery)},
		{Where: "files of the feature log", What: "answered features, and in whatever was trained from them", Note: "until you delete the files, in every serve that writes them"},
		{
			Where: "backups", What: "everything that was there when they were made",
			Note: `until you delete them; after you restore one, run "smartfeed erase again" (see docs/operations.md)`,
		},
		{Where: "rows of actors", What: "how much others cared for the user", Note: "until what each cares for is sent next"},
		{Where: "rows of actors", What: "the user's pins among what others acted on last", Note: "until others take their place"},
		{Where: "rows of related", What: "the user's pins among the last that were saved to boards", Note: "until others take their place"},
		{Where: "rows of interests", What: "the user's id as one who saw pins, and the user's pins in others' evidence, hidden", Note: "until the impression or the evidence is old"},
		{Where: "rows of retries", What: "records that could not be read", Note: "until they are retried or given up"},
		{Where: "rows of retries", What: "the reasons, which may quote the user's id", Note: "until others take their place"},
		{Where: "frozen feeds of others", What: "the user's pins, hidden", Note: fmt.Sprintf("until %d newer items were shown", c.FeedStore.MaxFeed)},
		{Where: "pools of others", What: "the user's pins, hidden, where they came by a follow that stands", Note: "for a day or two"},
		{
			Where: "pools of others", What: "the user's pins, hidden, that came by a follow which has ended, by one of a followee who is pulled, as neighbours or offers",
			Note: "until the pool is trimmed, or for ever where nothing more comes",
		},
	}
}

// remainingActions returns until when the feature store holds actions that arrived by now.
func (c *Config) remainingActions(now time.Time) ops.Remain {
	r := ops.Remain{Where: "the embedded feature store", What: "actions, which features of the user are not answered from"}
	until := c.Feature.KeptUntil(now)
	if c.actionsInPinot() {
		until, r.Where = pinot.KeptUntil(now), "Pinot"
		r.What += fmt.Sprintf("; where its controller looks every %.0f hours and keeps deleted segments for %.0f days, as by default",
			pinot.RetentionEvery.Hours(), pinot.DeletedKept.Hours()/24)
	}
	r.Until = &until
	return r
}

func printErased(out io.Writer, done ops.Erased, asJSON bool) error {
	if asJSON {
		return command.PrintJSON(out, done)
	}
	fmt.Fprintf(out, "%s is erased: no answer shows the user or their pins\n", done.User)
	if done.Before != nil {
		fmt.Fprintf(out, "  it had been deleted before, at %s\n", done.Before.UTC().Format(time.RFC3339))
	}
	for _, group := range slices.Sorted(maps.Keys(done.Had)) {
		fmt.Fprintf(out, "  %-8s %6d rows of the user's own, now %d\n", group, done.Had[group], done.Has[group])
	}
	fmt.Fprintln(out, "what remains, in no answer:")
	for _, r := range done.Remains {
		fmt.Fprintf(out, "  %s\n", r)
	}
	return nil
}
