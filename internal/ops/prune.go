package ops

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/smartfeed/smartfeed/internal/command"
	"github.com/smartfeed/smartfeed/topics"
)

// pruneCommand returns the command that deletes the topics of former generations.
func pruneCommand(setup func(*cobra.Command) (topics.Setup, error), asJSON *bool) *cobra.Command {
	var dryRun bool
	cmd := &cobra.Command{
		Use:   "prune",
		Short: "delete the topics of generations that no process runs any more",
		Long: `Delete the changelog, the ticks and the consumer group of each generation of the pools that is neither active nor being
built: those before a cut-over of "rebuild all --generation" or "replay", and those whose building was aborted. No process reads
them, no command can go back to them, and an erasure leaves their rows as they are. Topics of the first generation are created
again, empty. Processes delete their local directories of such generations themselves.

A generation that still has members is left alone, and the exit code is 1: processes leave it some seconds after the cut-over.
With ACLs, the user needs Delete on the topics and groups whose names begin with "pools".`,
		Args:    cobra.NoArgs,
		Example: "  smartfeed topics prune --dry-run\n  smartfeed topics prune --json",
		RunE: run(setup, func(cmd *cobra.Command, s topics.Setup, _ []string) error {
			list, err := prune(cmd, s.Kafka, dryRun)
			return errors.Join(printFormer(cmd, list, dryRun, *asJSON), err)
		}),
	}
	cmd.Flags().BoolVar(&dryRun, "dry-run", false, "print what would be deleted")
	return cmd
}

// prune deletes the former generations and returns them. With dryRun it only returns them.
func prune(cmd *cobra.Command, k topics.Kafka, dryRun bool) (done []topics.FormerGeneration, err error) {
	profile, err := topics.ProfileOf(cmd.Context(), k)
	if err != nil {
		return nil, err
	}
	list, err := topics.FormerGenerations(cmd.Context(), k)
	if err != nil || dryRun {
		return list, err
	}
	var problems []error
	for _, f := range list {
		err := topics.DeleteFormer(cmd.Context(), k, profile, f)
		if err == nil {
			done = append(done, f)
		}
		problems = append(problems, err)
	}
	return done, errors.Join(problems...)
}

func printFormer(cmd *cobra.Command, list []topics.FormerGeneration, dryRun, asJSON bool) error {
	out := cmd.OutOrStdout()
	if asJSON {
		return command.PrintJSON(out, list)
	}
	verb := "deleted"
	if dryRun {
		verb = "would delete"
	}
	for _, f := range list {
		for _, topic := range f.Topics {
			fmt.Fprintf(out, "%s %s\n", verb, topic)
		}
	}
	if len(list) == 0 {
		fmt.Fprintln(out, "deleted nothing")
	}
	return nil
}
