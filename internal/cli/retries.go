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
		Long: `Print the kinds of dead letters (topic/group/reason), the rate at which they are retried, and how many are waiting, sent, done
or parked. Parked dead letters are not retried automatically. The command queries a running server.`,
		Example:           "  smartfeed dead-letters kinds\n  smartfeed dead-letters kinds -o json",
		Args:              noArguments,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: requests(p, (*tables).retryKinds, func(*cobra.Command, []string) (request, error) {
			return request{path: []string{"dead-letters", "kinds"}}, nil
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
		Short: "List dead letters with state, attempts and next retry",
		Long: `Print one line per record that could not be processed, however often it was retried. The latest state change is first. The
command queries a running server.`,
		Example:           "  smartfeed dead-letters states --state parked\n  smartfeed dead-letters states --kind pins/objects/verb-unknown-verb -o json",
		Args:              noArguments,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: requests(p, (*tables).retryStates, func(*cobra.Command, []string) (request, error) {
			query := url.Values{"limit": {strconv.Itoa(limit)}}
			for name, value := range map[string]string{"kind": kind, "state": state} {
				if value != "" {
					query.Set(name, value)
				}
			}
			return request{path: []string{"dead-letters", "retries"}, query: query}, nil
		}),
	}
	cmd.Flags().StringVar(&kind, "kind", "", "list only this kind, as printed by the command kinds")
	cmd.Flags().StringVar(&state, "state", "", "list only this state: waiting, sent, done or parked")
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
