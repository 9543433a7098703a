package cli

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/smartfeed/smartfeed/internal/command"
	"github.com/smartfeed/smartfeed/internal/ops/generations"
	"github.com/smartfeed/smartfeed/topics"
)

func (p *program) topicsCommand() *cobra.Command {
	return group("topics", "Create, alter, verify and delete topics, and print ACLs", "  smartfeed topics apply --kafka kafka-1:9092",
		p.catalogueCommand("plan", "Print the changes that apply would make", topics.Differences),
		p.catalogueCommand("apply", "Create missing topics, and alter settings that differ", topics.Apply),
		p.catalogueCommand("verify", "Verify that the topics match the catalogue", func(ctx context.Context, k topics.Kafka, want []topics.Topic) (topics.Plan, error) {
			if err := topics.Verify(ctx, k, want); err != nil {
				return topics.Plan{}, err
			}
			return topics.Differences(ctx, k, want)
		}),
		p.aclsCommand(), p.pruneCommand())
}

// catalogueCommand returns a command that compares the wanted topics with those of the brokers and prints the plan.
func (p *program) catalogueCommand(use, short string, do func(context.Context, topics.Kafka, []topics.Topic) (topics.Plan, error)) *cobra.Command {
	return &cobra.Command{
		Use: use, Short: short,
		Example: fmt.Sprintf("  smartfeed topics %s --kafka kafka-1:9092,kafka-2:9092\n  smartfeed topics %[1]s -o json", use),
		RunE: p.printsOf(func(cmd *cobra.Command, _ []string, setup topics.Setup) (any, error) {
			ctx := cmd.Context()
			profile, err := topics.ProfileOf(ctx, setup.Kafka)
			if err != nil {
				return nil, err
			}
			own, err := topics.TopicsOfGenerations(ctx, setup.Kafka, profile)
			if err != nil {
				return nil, err
			}
			plan, err := do(ctx, setup.Kafka, append(topics.Catalogue(profile), own...))
			return output{value: plan, text: func(out io.Writer) error { return printPlan(out, plan) }, failure: plan.Err()}, err
		}),
	}
}

func printPlan(out io.Writer, p topics.Plan) error {
	for _, t := range p.Create {
		fmt.Fprintf(out, "create %s: %s, %s, %s\n", t.Name, command.Count(t.Partitions, "partition"), command.Count(int(t.Replicas), "replica"), retention(t))
	}
	for _, s := range p.Alter {
		fmt.Fprintf(out, "alter %s: %s from %s to %s\n", s.Topic, s.Key, s.Have, s.Want)
	}
	for _, s := range p.FewReplicas {
		fmt.Fprintf(out, "%s has %s replicas, want %s: reassign it with kafka-reassign-partitions.sh\n", s.Topic, s.Have, s.Want)
	}
	if p.Empty() {
		fmt.Fprintln(out, "all topics match the catalogue")
	}
	return nil
}

// retention returns the retention of a topic in words.
func retention(t topics.Topic) string {
	switch {
	case t.Embedded:
		return "never deleted"
	case t.Compact:
		return "compacted"
	case t.Retention == 0:
		return "kept forever"
	}
	return fmt.Sprintf("kept %d h", int(t.Retention.Hours()))
}

func (p *program) aclsCommand() *cobra.Command {
	principal := ""
	cmd := &cobra.Command{
		Use:   "acls ROLE",
		Short: "Print the permissions that a role needs on the brokers",
		Long: fmt.Sprintf(`Print the minimal permissions that a role (%s) needs on the brokers. With --principal, print them
as arguments of Kafka's kafka-acls.sh, one line each.`, strings.Join(topics.Roles(), ", ")),
		Example: "  smartfeed topics acls serve --principal User:feed-serve | xargs -L 1 kafka-acls.sh --bootstrap-server localhost:9092",
		Args:    cobra.ArbitraryArgs, ValidArgs: topics.Roles(),
		RunE: p.printsOf(func(_ *cobra.Command, args []string, setup topics.Setup) (any, error) {
			if len(args) != 1 || !slices.Contains(topics.Roles(), args[0]) {
				return nil, command.Usagef("topics acls: want one of the roles %s, not %q", strings.Join(topics.Roles(), ", "), args)
			}
			grants, err := topics.Grants(args[0], topics.Catalogue(topics.Profile{Partitions: setup.Kafka.Partitions}))
			return output{value: grants, text: func(out io.Writer) error {
				for _, g := range grants {
					text := g.String()
					if principal != "" {
						text = strings.Join(g.Arguments(principal), " ")
					}
					fmt.Fprintln(out, text)
				}
				return nil
			}}, err
		}),
	}
	cmd.Flags().StringVar(&principal, "principal", "", `print arguments of kafka-acls.sh for this principal, such as "User:feed-serve"`)
	return cmd
}

func (p *program) pruneCommand() *cobra.Command {
	var dryRun bool
	cmd := &cobra.Command{
		Use:   "prune",
		Short: "Delete the topics of retired generations",
		Long: `Delete the changelog, the ticks and the consumer group of each generation of the pools that is neither active nor being
built. A generation retires at the cut-over of "rebuild" or "replay", or when its build is aborted. No process
reads retired generations, no command reactivates them, and an erasure does not change their rows. The command recreates the
topics of the first generation, empty. Processes delete their local directories of retired generations.

If a generation still has members, the command does not delete it, and the exit code is 1. Processes leave a generation some
seconds after the cut-over. With ACLs, the user needs Delete on the topics and groups whose names start with "pools".`,
		Example: "  smartfeed topics prune --dry-run\n  smartfeed topics prune -o json",
		RunE: p.printsOf(func(cmd *cobra.Command, _ []string, setup topics.Setup) (any, error) {
			list, err := generations.Prune(cmd.Context(), setup.Kafka, dryRun)
			return output{value: list, failure: err}, nil
		}),
	}
	cmd.Flags().BoolVar(&dryRun, "dry-run", false, "print the topics that would be deleted, and delete nothing")
	return cmd
}
