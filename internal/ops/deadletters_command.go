package ops

import (
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/smartfeed/smartfeed/internal/command"
	"github.com/smartfeed/smartfeed/schemas"
	"github.com/smartfeed/smartfeed/topics"
)

func deadLettersCommand(setup func(*cobra.Command) (topics.Setup, error), more []*cobra.Command) *cobra.Command {
	cmd := command.Group("deadletters", "look at records that could not be worked off, and try them again",
		"  smartfeed deadletters list --limit 10", more...)
	var (
		asJSON   bool
		limit    int
		operator string
	)
	list := &cobra.Command{
		Use: "list", Short: "print dead letters, the newest last", Args: cobra.NoArgs,
		Example: "  smartfeed deadletters list --limit 10\n  smartfeed deadletters list --json",
		RunE: run(setup, func(cmd *cobra.Command, s topics.Setup, _ []string) error {
			if limit < 1 || limit > maxListed {
				return command.Usagef("--limit %d: must be 1-%d", limit, maxListed)
			}
			streams, err := s.Streams(cmd.Context())
			if err != nil {
				return err
			}
			found, err := ListDeadLetters(cmd.Context(), s.Kafka, streams, limit)
			if err != nil {
				return err
			}
			return printLetters(cmd.OutOrStdout(), found, asJSON)
		}),
	}
	list.Flags().IntVar(&limit, "limit", 100, "print at most so many")
	retry := &cobra.Command{
		Use: "retry", Short: "have what came since the last time retried at once, whatever was tried before", Args: cobra.NoArgs,
		Example: "  smartfeed deadletters retry\n  smartfeed deadletters retry --json",
		RunE: run(setup, func(cmd *cobra.Command, s topics.Setup, _ []string) error {
			streams, err := s.Streams(cmd.Context())
			if err != nil {
				return err
			}
			done, err := RetryDeadLetters(cmd.Context(), s.Kafka, streams, command.Operator(operator))
			return errors.Join(err, printRetried(cmd.OutOrStdout(), done, asJSON))
		}),
	}
	cmd.PersistentFlags().BoolVar(&asJSON, "json", false, "print JSON")
	retry.Flags().StringVar(&operator, "operator", "", operatorUsage)
	cmd.AddCommand(list, retry, limitCommand(setup, &asJSON))
	return cmd
}

func limitCommand(setup func(*cobra.Command) (topics.Setup, error), asJSON *bool) *cobra.Command {
	var (
		operator string
		priority int32
	)
	cmd := &cobra.Command{
		Use: "limit KIND RATE", Short: "set how fast dead letters of a kind are retried, 0: not at all",
		Long: `Set how many dead letters of a kind are retried a second: a number, 0 to stop them, or "default" for what the configuration
says. KIND is topic/group/words as GET /v1/deadletters/kinds lists them, or topic/group, or a topic; the narrowest that is
set counts. Of kinds that are due at once the one of greater --priority goes first.`,
		Example: "  smartfeed deadletters limit pins/objects 0\n  smartfeed deadletters limit pins/objects default",
		Args:    cobra.ExactArgs(2),
		ValidArgsFunction: func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			return [][]string{kinds(), {"0", "default"}, nil}[min(len(args), 2)], cobra.ShellCompDirectiveNoFileComp
		},
		RunE: run(setup, func(cmd *cobra.Command, s topics.Setup, args []string) error {
			rate, err := strconv.ParseFloat(args[1], 64)
			if args[1] == "default" {
				rate, err = -1, nil
			} else if err != nil || rate < 0 || rate > schemas.MaxRetryRate || math.IsNaN(rate) {
				return command.Usagef("rate %q: want a number from 0 to %d, or default", args[1], schemas.MaxRetryRate)
			}
			streams, err := s.Streams(cmd.Context())
			if err != nil {
				return err
			}
			limit := schemas.RetryLimit{Scope: args[0], Rate: rate, Priority: priority}
			var bad *schemas.BadRecordError
			if err := LimitRetries(cmd.Context(), s.Kafka, streams, limit, command.Operator(operator)); errors.As(err, &bad) {
				return &command.UsageError{Err: bad}
			} else if err != nil {
				return err
			}
			return printLimit(cmd.OutOrStdout(), limit, args[1], *asJSON)
		}),
	}
	cmd.Flags().StringVar(&operator, "operator", "", operatorUsage)
	cmd.Flags().Int32Var(&priority, "priority", 0, "greater goes first")
	return cmd
}

const operatorUsage = "record this name as the operator; default: your login name and host"

// kinds returns "topic/group" for each topic of the catalogue and each of its readers: the scopes of a retry limit.
func kinds() []string {
	var names []string
	for _, t := range topics.Catalogue(topics.Profile{}) {
		for _, group := range t.Readers {
			names = append(names, t.Name+"/"+group)
		}
	}
	return names
}

// maxListed bounds the memory of list.
const maxListed = 10_000

func printLetters(out io.Writer, list []Letter, asJSON bool) error {
	if asJSON {
		if list == nil {
			list = []Letter{}
		}
		return command.PrintJSON(out, list)
	}
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "TIME\tTOPIC\tPARTITION\tOFFSET\tGROUP\tRETRIED\tREASON")
	for _, l := range list {
		reason := l.Reason
		if l.Unreadable != "" {
			reason = "the letter cannot be read: " + l.Unreadable
		}
		fmt.Fprintf(table, "%s\t%s\t%d\t%d\t%s\t%t\t%s\n", l.Time.Time().Format(time.RFC3339), l.Topic,
			l.DeadLetter.Partition, l.DeadLetter.Offset, l.Group, l.Retried, strings.ReplaceAll(reason, "\n", "; "))
	}
	return table.Flush()
}

func printLimit(out io.Writer, l schemas.RetryLimit, rate string, asJSON bool) error {
	if asJSON {
		return command.PrintJSON(out, l)
	}
	_, err := fmt.Fprintf(out, "retries of %s: %s a second\n", l.Scope, rate)
	return err
}

func printRetried(out io.Writer, r Retried, asJSON bool) error {
	if asJSON {
		return command.PrintJSON(out, r)
	}
	_, err := fmt.Fprintf(out, "retried %s, skipped %d\n", command.Count(r.Published, "dead letter"), r.Skipped)
	return err
}
