package ops

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/smartfeed/smartfeed/internal/command"
	"github.com/smartfeed/smartfeed/schemas"
	"github.com/smartfeed/smartfeed/topics"
)

// Commands returns the commands topics, publish, wait and deadletters. Each calls setup when it runs. letters are further
// subcommands of deadletters.
func Commands(setup func(cmd *cobra.Command) (topics.Setup, error), letters ...*cobra.Command) []*cobra.Command {
	return []*cobra.Command{
		topicsCommand(setup),
		publishCommand(setup),
		waitCommand(setup),
		deadLettersCommand(setup, letters),
	}
}

// run adapts a command that needs a setup.
func run(setup func(*cobra.Command) (topics.Setup, error), f func(cmd *cobra.Command, s topics.Setup, args []string) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		s, err := setup(cmd)
		if err != nil {
			return err
		}
		return f(cmd, s, args)
	}
}

func topicsCommand(setup func(*cobra.Command) (topics.Setup, error)) *cobra.Command {
	cmd := command.Group("topics", "compare the brokers' topics with the catalogue, and make them so", "  smartfeed topics apply --kafka kafka-1:9092")
	var asJSON bool
	add := func(use, short string, f func(cmd *cobra.Command, s topics.Setup, want []topics.Topic) error) {
		cmd.AddCommand(&cobra.Command{Use: use, Short: short, Args: cobra.NoArgs,
			Example: fmt.Sprintf("  smartfeed topics %s --kafka kafka-1:9092,kafka-2:9092\n  smartfeed topics %[1]s --json", use),
			RunE: run(setup, func(cmd *cobra.Command, s topics.Setup, _ []string) error {
				want, err := catalogueOf(cmd.Context(), s.Kafka)
				if err != nil {
					return err
				}
				return f(cmd, s, want)
			})})
	}
	add("plan", "print what apply would do", func(cmd *cobra.Command, s topics.Setup, want []topics.Topic) error {
		plan, err := topics.Differences(cmd.Context(), s.Kafka, want)
		if err != nil {
			return err
		}
		return errors.Join(printPlan(cmd.OutOrStdout(), plan, asJSON), plan.Err())
	})
	add("apply", "create what is missing, alter what differs", func(cmd *cobra.Command, s topics.Setup, want []topics.Topic) error {
		done, err := topics.Apply(cmd.Context(), s.Kafka, want)
		if err != nil {
			return err
		}
		return printPlan(cmd.OutOrStdout(), done, asJSON)
	})
	add("verify", "fail if anything differs, and say all of it", func(cmd *cobra.Command, s topics.Setup, want []topics.Topic) error {
		if err := topics.Verify(cmd.Context(), s.Kafka, want); err != nil {
			return err
		}
		plan, err := topics.Differences(cmd.Context(), s.Kafka, want)
		if err != nil {
			return err
		}
		return printPlan(cmd.OutOrStdout(), plan, asJSON)
	})
	cmd.PersistentFlags().BoolVar(&asJSON, "json", false, "print JSON")
	cmd.AddCommand(aclsCommand(setup, &asJSON), pruneCommand(setup, &asJSON))
	return cmd
}

// catalogueOf returns the topics that the brokers should have, including those of generations.
func catalogueOf(ctx context.Context, k topics.Kafka) ([]topics.Topic, error) {
	profile, err := topics.ProfileOf(ctx, k)
	if err != nil {
		return nil, err
	}
	own, err := topics.TopicsOfGenerations(ctx, k, profile)
	if err != nil {
		return nil, err
	}
	return append(topics.Catalogue(profile), own...), nil
}

func aclsCommand(setup func(*cobra.Command) (topics.Setup, error), asJSON *bool) *cobra.Command {
	principal := ""
	cmd := &cobra.Command{
		Use:   "acls ROLE",
		Short: "print what a role must be allowed on the brokers, or the arguments of kafka-acls.sh that allow it",
		Long: fmt.Sprintf(`Print the least that a role (%s) must be allowed on the brokers. With --principal print it as
arguments of Kafka's own kafka-acls.sh, a line each.`, strings.Join(topics.Roles(), ", ")),
		Example:   "  smartfeed topics acls serve --principal User:feed-serve | xargs -L 1 kafka-acls.sh --bootstrap-server localhost:9092",
		ValidArgs: topics.Roles(),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) != 1 || !slices.Contains(topics.Roles(), args[0]) {
				return command.Usagef("topics acls needs one of the roles %s, not %q", strings.Join(topics.Roles(), ", "), args)
			}
			s, err := setup(cmd)
			if err != nil {
				return err
			}
			grants, err := topics.Grants(args[0], topics.Catalogue(topics.Profile{Partitions: s.Kafka.Partitions}))
			if err != nil {
				return err
			}
			return printGrants(cmd.OutOrStdout(), grants, principal, *asJSON)
		},
	}
	cmd.Flags().StringVar(&principal, "principal", "", `print arguments of kafka-acls.sh for it, as in "User:feed-serve"`)
	return cmd
}

func printGrants(out io.Writer, grants []topics.Grant, principal string, asJSON bool) error {
	if asJSON {
		return command.PrintJSON(out, grants)
	}
	for _, g := range grants {
		if principal == "" {
			fmt.Fprintln(out, g)
		} else {
			fmt.Fprintln(out, strings.Join(g.Arguments(principal), " "))
		}
	}
	return nil
}

func printPlan(out io.Writer, p topics.Plan, asJSON bool) error {
	if asJSON {
		return command.PrintJSON(out, p)
	}
	for _, t := range p.Create {
		fmt.Fprintf(out, "create %s: %s, %s, %s\n", t.Name, command.Count(t.Partitions, "partition"), replicas(t.Replicas), kept(t))
	}
	for _, s := range p.Alter {
		fmt.Fprintf(out, "alter %s: %s from %s to %s\n", s.Topic, s.Key, s.Have, s.Want)
	}
	for _, s := range p.Thin {
		fmt.Fprintf(out, "%s has %s replicas, and there are brokers for %s: reassign it with Kafka's own tools\n", s.Topic, s.Have, s.Want)
	}
	if p.Empty() {
		fmt.Fprintln(out, "all topics are as they should be")
	}
	return nil
}

// replicas returns a number of replicas in words.
func replicas(n int16) string { return command.Count(int(n), "replica") }

// kept returns the retention of a topic in words.
func kept(t topics.Topic) string {
	switch {
	case t.Embedded:
		return "nothing is deleted"
	case t.Compact:
		return "compacted"
	case t.Retention == 0:
		return "kept for ever"
	}
	return fmt.Sprintf("kept %d h", int(t.Retention.Hours()))
}

// waited is the JSON output of wait.
type waited struct {
	Done    bool         `json:"done"`
	Behind  []topics.Lag `json:"behind"` // at the last successful check
	Seconds float64      `json:"seconds"`
}

func waitCommand(setup func(*cobra.Command) (topics.Setup, error)) *cobra.Command {
	var timeout time.Duration
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "wait",
		Short: "return once everything published before has had its effect",
		Long: `Return once everything whose publication was acknowledged before has had its effect in every group and store. Exit code 1
after --timeout, with what is still behind; brokers that are away are asked again until then, and so is the controller of a
Pinot that has the actions. A topic that is not there is an error: nobody can have worked it off.`,
		Example: "  smartfeed publish events.ndjson && smartfeed wait --timeout 30s\n  smartfeed wait --json",
		Args:    cobra.NoArgs,
		RunE: run(setup, func(cmd *cobra.Command, s topics.Setup, _ []string) error {
			if timeout <= 0 {
				return command.Usagef("--timeout %s: must be positive", timeout)
			}
			since := schemas.MicrosOf(time.Now())
			ctx, cancel := context.WithTimeoutCause(cmd.Context(), timeout, fmt.Errorf("not done within %s", timeout))
			defer cancel()
			task := s.Start("wait", -1)
			var last topics.WaitState
			err := s.Wait(ctx, since, func(w topics.WaitState) { last = w; task.Say(w.String()) })
			done := waited{Done: err == nil, Behind: append([]topics.Lag{}, last.Behind...), Seconds: task.Done().Seconds()}
			if asJSON {
				err = errors.Join(err, command.PrintJSON(cmd.OutOrStdout(), done))
			}
			return err
		}),
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print what came of it as JSON")
	cmd.Flags().DurationVar(&timeout, "timeout", time.Minute, "give up after")
	return cmd
}
