package api

import (
	"cmp"
	"fmt"
	"net/url"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/smartfeed/smartfeed/schemas"
	"github.com/smartfeed/smartfeed/serving/client"
)

// RetryCommands returns the commands kinds and retries, which request the state of dead letters from a running server. The
// parent command must have the persistent flag --json. When one of them runs, server returns the address and the
// credentials.
func RetryCommands(server func(*cobra.Command) (client.Config, error)) []*cobra.Command {
	q := &querying{server: server}
	return []*cobra.Command{q.retryKindsCommand(), q.retriesCommand()}
}

// retryKindList is the decoded answer of GET /v1/deadletters/kinds.
type retryKindList struct {
	Kinds []retryKind `json:"kinds"`
}

func (q *querying) retryKindsCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "kinds",
		Short: "how the retries of dead letters stand, by kind",
		Long: `Ask a running server for the kinds of dead letters: topic/group/words of the reason, at which rate they are retried, and how
many wait, are sent, are done, or are parked, which are not retried by themselves any more.`,
		Example:           "  smartfeed deadletters kinds\n  smartfeed deadletters kinds --json",
		Args:              cobra.NoArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return getRetries(q, cmd, nil, (*tables).retryKinds, "kinds")
		},
	}
}

// retriedList is the decoded answer of GET /v1/deadletters/retries.
type retriedList struct {
	Letters []retriedLetter `json:"letters"`
}

func (q *querying) retriesCommand() *cobra.Command {
	var (
		kind, state string
		limit       int
	)
	cmd := &cobra.Command{
		Use:   "retries",
		Short: "dead letters with their state, attempts and next time",
		Long: `Ask a running server for the records that could not be worked off, one line each however often it was tried; who came into
its state last stands first.`,
		Example:           "  smartfeed deadletters retries --state parked\n  smartfeed deadletters retries --kind pins/objects/verb-unknown-verb --json",
		Args:              cobra.NoArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, _ []string) error {
			query := url.Values{"limit": {strconv.Itoa(limit)}}
			for name, value := range map[string]string{"kind": kind, "state": state} {
				if value != "" {
					query.Set(name, value)
				}
			}
			return getRetries(q, cmd, query, (*tables).retried, "retries")
		},
	}
	var states []string
	for _, s := range schemas.RetryStates() {
		states = append(states, string(s))
	}
	cmd.Flags().StringVar(&kind, "kind", "", "of this kind alone, as kinds has it")
	cmd.Flags().StringVar(&state, "state", "", "in this state alone: waiting, sent, done or parked")
	_ = cmd.RegisterFlagCompletionFunc("state", cobra.FixedCompletions(states, cobra.ShellCompDirectiveNoFileComp)) // it fails only without such a flag
	cmd.Flags().IntVar(&limit, "limit", defaultLimit, fmt.Sprintf("letters, 1-%d", maxLetters))
	return cmd
}

// getRetries requests a T below /v1/deadletters and prints it, as the flag --json of the parent command says.
func getRetries[T any](q *querying, cmd *cobra.Command, query url.Values, table func(*tables, T), name string) error {
	var err error
	if q.asJSON, err = cmd.Flags().GetBool("json"); err != nil {
		return err
	}
	return getAndShow(q, cmd, query, table, "v1", "deadletters", name)
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

func (t *tables) retried(list retriedList) {
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
