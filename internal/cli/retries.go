package cli

import (
	"cmp"
	"fmt"
	"net/url"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/smartfeed/smartfeed/schemas"
	"github.com/smartfeed/smartfeed/serving/api"
)

// retryKindList is the decoded answer of GET /v1/deadletters/kinds.
type retryKindList struct {
	Kinds []api.RetryKind `json:"kinds"`
}

func (p *program) retryKindsCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "kinds",
		Short: "Count dead letters by kind and state",
		Long: `Query a running server for the kinds of dead letters (topic/group/words of the reason), the rate at which they are retried,
and how many are waiting, sent, done, or parked. Parked dead letters are no longer retried automatically.`,
		Example:           "  smartfeed deadletters kinds\n  smartfeed deadletters kinds -o json",
		Args:              noArguments,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return getAndShow(p, cmd, nil, (*tables).retryKinds, "v1", "deadletters", "kinds")
		},
	}
}

// retriedList is the decoded answer of GET /v1/deadletters/retries.
type retriedList struct {
	Letters []api.RetriedLetter `json:"letters"`
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
		RunE: func(cmd *cobra.Command, _ []string) error {
			query := url.Values{"limit": {strconv.Itoa(limit)}}
			for name, value := range map[string]string{"kind": kind, "state": state} {
				if value != "" {
					query.Set(name, value)
				}
			}
			return getAndShow(p, cmd, query, (*tables).retryStates, "v1", "deadletters", "retries")
		},
	}
	var states []string
	for _, s := range schemas.RetryStates() {
		states = append(states, string(s))
	}
	cmd.Flags().StringVar(&kind, "kind", "", "only of this kind, as printed by kinds")
	cmd.Flags().StringVar(&state, "state", "", "only in this state: waiting, sent, done or parked")
	complete(cmd, "state", states...)
	cmd.Flags().IntVar(&limit, "limit", api.DefaultLimit, fmt.Sprintf("letters, 1-%d", api.MaxLetters))
	return cmd
}

func (t *tables) retryKinds(list retryKindList) {
	t.row("KIND", "WAITING", "SENT", "DONE", "PARKED", "NEXT", "RATE", "PRIORITY", "SET BY")
	for _, k := range list.Kinds {
		cells := []string{k.Kind}
		for _, state := range schemas.RetryStates() {
			cells = append(cells, strconv.FormatInt(k.States[state], 10))
		}
		rate := "stopped"
		if k.Rate > 0 {
			rate = strconv.FormatFloat(k.Rate, 'g', -1, 64) + "/s"
		}
		t.row(append(cells, when(k.Next), rate, strconv.Itoa(int(k.Priority)), cmp.Or(k.Operator, "the configuration"))...)
	}
}

func (t *tables) retryStates(list retriedList) {
	t.row("STATE", "ATTEMPTS", "SINCE", "NEXT", "TOPIC", "PARTITION", "OFFSET", "GROUP", "REASON")
	for _, l := range list.Letters {
		reason := l.Reason
		if l.Why != "" {
			reason += " (parked: " + l.Why + ")"
		}
		t.row(string(l.State), strconv.Itoa(int(l.Attempts)), local(l.Since), when(l.Due), l.Topic,
			strconv.Itoa(int(l.Partition)), strconv.FormatInt(l.Offset, 10), l.Group, reason)
	}
}

// when formats a time, or a dash for nil.
func when(t *time.Time) string {
	if t == nil {
		return "–"
	}
	return local(*t)
}
