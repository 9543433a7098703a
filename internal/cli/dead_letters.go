package cli

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/smartfeed/smartfeed/internal/command"
	"github.com/smartfeed/smartfeed/internal/ops"
	"github.com/smartfeed/smartfeed/schemas"
	"github.com/smartfeed/smartfeed/serving/api"
	"github.com/smartfeed/smartfeed/topics"
)

const operatorUsage = "name of the operator to record (default: your login name and host)"

func (p *program) deadLettersCommand() *cobra.Command {
	return group("dead-letters", "List and retry dead letters: records that could not be processed", "  smartfeed dead-letters list --limit 10",
		p.listDeadLettersCommand(), p.retryDeadLettersCommand(), p.limitRetriesCommand(), p.retryKindsCommand(), p.retryStatesCommand())
}

// maxListed limits the memory of the command list.
const maxListed = 10_000

func (p *program) listDeadLettersCommand() *cobra.Command {
	var limit int
	cmd := &cobra.Command{
		Use: "list", Short: "List the newest dead letters in the order of their times",
		Example: "  smartfeed dead-letters list --limit 10\n  smartfeed dead-letters list -o json",
		RunE: p.prints(func(cmd *cobra.Command, _ []string) (any, error) {
			if limit < 1 || limit > maxListed {
				return nil, command.Usagef("--limit: %d is out of range [1, %d]", limit, maxListed)
			}
			setup, streams, err := p.streams(cmd)
			if err != nil {
				return nil, err
			}
			found, err := ops.ListDeadLetters(cmd.Context(), setup.Kafka, streams, limit)
			return output{value: append([]api.DeadLetter{}, found...), text: asTables(func(t *tables) { t.deadLetters(found) })}, err
		}),
	}
	cmd.Flags().IntVar(&limit, "limit", 100, "maximum number of dead letters, 1-10000")
	return cmd
}

func (t *tables) deadLetters(list []api.DeadLetter) {
	t.row("TIME", "TOPIC", "PARTITION", "OFFSET", "GROUP", "RETRIED", "REASON")
	for _, l := range list {
		reason := l.Reason
		if l.Unreadable != "" {
			reason = "unreadable dead letter: " + l.Unreadable
		}
		t.row(l.Time.Time().Format(time.RFC3339), l.Topic, l.DeadLetter.Partition, l.DeadLetter.Offset, l.Group, l.Retried,
			strings.ReplaceAll(reason, "\n", "; "))
	}
}

func (p *program) retryDeadLettersCommand() *cobra.Command {
	var operator string
	cmd := &cobra.Command{
		Use: "retry", Short: "Retry immediately the dead letters since the last retry",
		Example: "  smartfeed dead-letters retry\n  smartfeed dead-letters retry -o json",
		RunE: p.prints(func(cmd *cobra.Command, _ []string) (any, error) {
			setup, streams, err := p.streams(cmd)
			if err != nil {
				return nil, err
			}
			done, err := ops.RetryDeadLetters(cmd.Context(), setup.Kafka, streams, command.Operator(operator))
			o := line(done, "retried %s, skipped %d", command.Count(done.Published, "dead letter"), done.Skipped)
			o.failure = err
			return o, nil
		}),
	}
	cmd.Flags().StringVar(&operator, "operator", "", operatorUsage)
	return cmd
}

func (p *program) limitRetriesCommand() *cobra.Command {
	var (
		operator string
		priority int32
	)
	cmd := &cobra.Command{
		Use: "limit KIND RATE", Short: "Set the rate at which dead letters of a kind are retried",
		Long: `Set how many dead letters of a kind are retried per second: a number, 0 to stop the retries, or "default" for the configured
rate. KIND is topic/group/reason as "smartfeed dead-letters kinds" prints it, topic/group, or a topic. The narrowest limit
applies. If several kinds are due at the same time, the kind with the highest --priority is retried first.`,
		Example: "  smartfeed dead-letters limit pins/objects 0\n  smartfeed dead-letters limit pins/objects default",
		Args:    cobra.ExactArgs(2),
		ValidArgsFunction: func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			return [][]string{retryScopes(), {"0", "default"}, nil}[min(len(args), 2)], cobra.ShellCompDirectiveNoFileComp
		},
		RunE: p.prints(func(cmd *cobra.Command, args []string) (any, error) {
			rate, err := retryRate(args[1])
			if err != nil {
				return nil, usage(err)
			}
			setup, streams, err := p.streams(cmd)
			if err != nil {
				return nil, err
			}
			limit := schemas.RetryLimit{Scope: args[0], Rate: rate, Priority: priority}
			err = ops.LimitRetries(cmd.Context(), setup.Kafka, streams, limit, command.Operator(operator))
			if errors.As(err, new(*schemas.BadRecordError)) {
				err = usage(err)
			}
			return line(limit, "retries of %s: %s a second", limit.Scope, args[1]), err
		}),
	}
	cmd.Flags().StringVar(&operator, "operator", "", operatorUsage)
	cmd.Flags().Int32Var(&priority, "priority", 0, "priority of the kind; the highest is retried first")
	return cmd
}

// retryRate parses a rate. -1 stands for the configured one.
func retryRate(text string) (float64, error) {
	if text == "default" {
		return -1, nil
	}
	rate, err := strconv.ParseFloat(text, 64)
	if err != nil || rate < 0 || rate > schemas.MaxRetryRate || math.IsNaN(rate) {
		return 0, fmt.Errorf("rate: %q: want a number from 0 to %d, or default", text, schemas.MaxRetryRate)
	}
	return rate, nil
}

// retryScopes returns "topic/group" for each topic of the catalogue and each of its readers: the scopes of a retry limit.
func retryScopes() []string {
	var names []string
	for _, t := range topics.Catalogue(topics.Profile{}) {
		for _, group := range t.Readers {
			names = append(names, t.Name+"/"+group)
		}
	}
	return names
}

func (p *program) retryKindsCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "kinds",
		Short: "Count dead letters by kind and state",
		Long: `Print the kinds of dead letters (topic/group/reason), the rate at which they are retried, and how many are waiting, sent, done
or parked. Parked dead letters are not retried automatically. The command queries a running server.`,
		Example: "  smartfeed dead-letters kinds\n  smartfeed dead-letters kinds -o json",
		RunE:    requests(p, (*tables).retryKinds, get("dead-letters", "kinds")),
	}
}

func (p *program) retryStatesCommand() *cobra.Command {
	var (
		kind, state string
		limit       int
	)
	cmd := &cobra.Command{
		Use:   "states",
		Short: "List dead letters with state, attempts and next retry",
		Long: `Print one line per record that could not be processed, however often it was retried. The latest state change is first. The
command queries a running server.`,
		Example: "  smartfeed dead-letters states --state parked\n  smartfeed dead-letters states --kind pins/objects/verb-unknown-verb -o json",
		RunE: requests(p, (*tables).retryStates, func(*cobra.Command, []string) (request, error) {
			query := filled(url.Values{"limit": {strconv.Itoa(limit)}, "kind": {kind}, "state": {state}})
			return request{path: []string{"dead-letters", "retries"}, query: query}, nil
		}),
	}
	cmd.Flags().StringVar(&kind, "kind", "", "list only this kind, as printed by the command kinds")
	cmd.Flags().StringVar(&state, "state", "", "list only this state: waiting, sent, done or parked")
	complete(cmd, "state", schemas.Strings(schemas.RetryStates())...)
	limitFlag(cmd, &limit, "dead letters", api.MaxDeadLetters)
	return cmd
}

func (t *tables) retryKinds(list struct{ Kinds []schemas.RetryKind }) {
	t.row("KIND", "WAITING", "SENT", "DONE", "PARKED", "NEXT", "RATE", "PRIORITY", "SET BY")
	for _, k := range list.Kinds {
		cells := []any{k.Kind}
		for _, state := range schemas.RetryStates() {
			cells = append(cells, k.States[state])
		}
		rate := "stopped"
		if k.Rate > 0 {
			rate = cell(k.Rate) + "/s"
		}
		t.row(append(cells, k.Next, rate, k.Priority, cmp.Or(k.Operator, "the configuration"))...)
	}
}

func (t *tables) retryStates(list struct {
	DeadLetters []schemas.RetriedDeadLetter `json:"dead_letters"`
}) {
	t.row("STATE", "ATTEMPTS", "SINCE", "NEXT", "TOPIC", "PARTITION", "OFFSET", "GROUP", "REASON")
	for _, l := range list.DeadLetters {
		reason := l.Reason
		if l.Why != "" {
			reason += " (parked: " + l.Why + ")"
		}
		t.row(l.State, l.Attempts, l.Since.Time(), l.Due, l.Topic, l.Partition, l.Offset, l.Group, reason)
	}
}
