package cli

import (
	"cmp"
	"net/url"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/smartfeed/smartfeed/schemas"
	"github.com/smartfeed/smartfeed/serving/api"
)

func (p *program) retryKindsCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "kinds",
		Short: "Count dead letters by kind and state",
		Long: `Query a running server for the kinds of dead letters (topic/group/words of the reason), the rate at which they are retried,
and how many are waiting, sent, done, or parked. Parked dead letters are no longer retried automatically.`,
		Example:           "  smartfeed deadletters kinds\n  smartfeed deadletters kinds -o json",
		Args:              noArguments,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: requests(p, (*tables).retryKinds, func(*cobra.Command, []string) (request, error) {
			return request{path: []string{"deadletters", "kinds"}}, nil
		}),
	}
}

func (p *program) retryStatesCommand() *cobra.Command {
	var (
		kind, state string
		limit       int
	)
	cmd := &cobra.Command{
		Use:   "states",
		Short: "List dead letters with their state, attempts and next retry",
		Long: `Query a running server for the records that could not be processed, one line each, however often they were retried. The
latest state change is first.`,
		Example:           "  smartfeed deadletters states --state parked\n  smartfeed deadletters states --kind pins/objects/verb-unknown-verb -o json",
		Args:              noArguments,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: requests(p, (*tables).retryStates, func(*cobra.Command, []string) (request, error) {
			query := url.Values{"limit": {strconv.Itoa(limit)}}
			for name, value := range map[string]string{"kind": kind, "state": state} {
				if value != "" {
					query.Set(name, value)
				}
			}
			return request{path: []string{"deadletters", "retries"}, query: query}, nil
		}),
	}
	cmd.Flags().StringVar(&kind, "kind", "", "only of this kind, as printed by kinds")
	cmd.Flags().StringVar(&state, "state", "", "only in this state: waiting, sent, done or parked")
	complete(cmd, "state", texts(schemas.RetryStates())...)
	limitFlag(cmd, &limit, "dead letters", api.MaxDeadLetters)
	return cmd
}

func (t *tables) retryKinds(list struct{ Kinds []api.RetryKind }) {
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
	DeadLetters []api.RetriedDeadLetter `json:"dead_letters"`
}) {
	t.row("STATE", "ATTEMPTS", "SINCE", "NEXT", "TOPIC", "PARTITION", "OFFSET", "GROUP", "REASON")
	for _, l := range list.DeadLetters {
		reason := l.Reason
		if l.Why != "" {
			reason += " (parked: " + l.Why + ")"
		}
		t.row(l.State, l.Attempts, l.Since, l.Due, l.Topic, l.Partition, l.Offset, l.Group, reason)
	}
}
