package cli

import (
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/smartfeed/smartfeed/internal/command"
	"github.com/smartfeed/smartfeed/schemas"
	"github.com/smartfeed/smartfeed/serving/api"
)

// interestsCommand returns the commands that list terms, decide which are interests, and print the interests of users.
func (p *program) interestsCommand() *cobra.Command {
	cmd := group("interests", "Review terms, and print the interests of users",
		"  smartfeed interests list\n  smartfeed interests accept gaiwan --interest interest:tea",
		p.termsCommand(), p.acceptCommand(), p.rejectCommand(), p.mergeCommand(), p.reopenCommand(), p.interestsOfCommand(), p.engagementCommand())
	cmd.Long = `List the terms of titles and board names that enough pins and authors use, and decide which of these candidates are interests.
A decision applies to later records in every process. You can revert it.`
	return cmd
}

func (p *program) termsCommand() *cobra.Command {
	var (
		state string
		limit int
	)
	cmd := &cobra.Command{
		Use:     "list",
		Short:   "List terms in a state: candidates by score, others by name",
		Example: "  smartfeed interests list --limit 100\n  smartfeed interests list --state rejected -o json",
		RunE: requests(p, (*tables).terms, func(*cobra.Command, []string) (request, error) {
			query := url.Values{"state": {state}, "limit": {strconv.Itoa(limit)}}
			return request{path: []string{"dictionary"}, query: query}, nil
		}),
	}
	cmd.Flags().StringVar(&state, "state", string(schemas.TermCandidate), "state of the terms: candidate, accepted, rejected, merged or blocked")
	complete(cmd, "state", schemas.Strings([]schemas.TermState{
		schemas.TermCandidate, schemas.TermAccepted, schemas.TermRejected, schemas.TermMerged, schemas.TermBlocked,
	})...)
	limitFlag(cmd, &limit, "terms", api.MaxDictionary)
	return cmd
}

// decideCommand completes a command that publishes a decision on its first argument.
func (p *program) decideCommand(cmd *cobra.Command, decision func(args []string) (api.DecisionRequest, error)) *cobra.Command {
	var operator string
	cmd.RunE = requests(p, (*tables).decided, func(_ *cobra.Command, args []string) (request, error) {
		req, err := decision(args)
		req.Term, req.Operator = args[0], operator
		return request{path: []string{"dictionary", "decisions"}, body: req}, err
	})
	cmd.Flags().StringVar(&operator, "operator", "", "name of the operator to record; with a token, the server records its subject")
	return cmd
}

func (p *program) acceptCommand() *cobra.Command {
	var interest string
	cmd := p.decideCommand(&cobra.Command{
		Use:     "accept TERM",
		Short:   "Accept a term as an interest",
		Example: "  smartfeed interests accept oolong\n  smartfeed interests accept gaiwan --interest interest:tea",
		Args:    cobra.ExactArgs(1),
	}, func([]string) (api.DecisionRequest, error) {
		return api.DecisionRequest{State: schemas.TermAccepted, Interest: schemas.InterestID(interest)}, nil
	})
	cmd.Flags().StringVar(&interest, "interest", "", "interest that the term stands for (default: the interest with the term's name)")
	return cmd
}

func (p *program) rejectCommand() *cobra.Command {
	var reason string
	cmd := p.decideCommand(&cobra.Command{
		Use:     "reject TERM",
		Short:   "Reject a term as an interest",
		Example: "  smartfeed interests reject sale --reason advertising",
		Args:    cobra.ExactArgs(1),
	}, func([]string) (api.DecisionRequest, error) {
		if reason == "" {
			return api.DecisionRequest{}, command.Usagef("--reason: is missing: want the reason for the rejection")
		}
		return api.DecisionRequest{State: schemas.TermRejected, Reason: reason}, nil
	})
	cmd.Flags().StringVar(&reason, "reason", "", "reason for the rejection")
	return cmd
}

func (p *program) mergeCommand() *cobra.Command {
	return p.decideCommand(&cobra.Command{
		Use:     "merge TERM INTO",
		Short:   "Merge a term into another term",
		Example: "  smartfeed interests merge kungfu gongfu",
		Args:    cobra.ExactArgs(2),
	}, func(args []string) (api.DecisionRequest, error) {
		return api.DecisionRequest{State: schemas.TermMerged, Into: args[1]}, nil
	})
}

func (p *program) reopenCommand() *cobra.Command {
	return p.decideCommand(&cobra.Command{
		Use:     "reopen TERM",
		Short:   "Revert the decision on a term",
		Example: "  smartfeed interests reopen sale",
		Args:    cobra.ExactArgs(1),
	}, func([]string) (api.DecisionRequest, error) {
		return api.DecisionRequest{State: schemas.TermCandidate}, nil
	})
}

func (p *program) interestsOfCommand() *cobra.Command {
	var limit int
	cmd := &cobra.Command{
		Use:     "show USER",
		Short:   "List the interests of a user with the actions as evidence",
		Example: "  smartfeed interests show user:ada",
		Args:    cobra.ExactArgs(1),
		RunE: requests(p, (*tables).interests, func(_ *cobra.Command, args []string) (request, error) {
			user, err := schemas.ParseUserID(args[0])
			query := url.Values{"limit": {strconv.Itoa(limit)}}
			return request{path: []string{"users", string(user), "interests"}, query: query}, usage(err)
		}),
	}
	limitFlag(cmd, &limit, "interests", api.MaxDictionary)
	return cmd
}

func (p *program) engagementCommand() *cobra.Command {
	var days int
	cmd := &cobra.Command{
		Use:     "engagement INTEREST",
		Short:   "Print the engagement with an interest's pins by source",
		Example: "  smartfeed interests engagement interest:tea --days 7",
		Args:    cobra.ExactArgs(1),
		RunE: requests(p, (*tables).engagement, func(_ *cobra.Command, args []string) (request, error) {
			interest, err := schemas.ParseInterestID(args[0])
			query := url.Values{"days": {strconv.Itoa(days)}}
			return request{path: []string{"interests", string(interest), "engagement"}, query: query}, usage(err)
		}),
	}
	cmd.Flags().IntVar(&days, "days", api.DefaultDays, fmt.Sprintf("number of days, including today, 1-%d", api.MaxDays))
	return cmd
}

func (t *tables) terms(list struct{ Terms []schemas.DictionaryTerm }) {
	t.row("TERM", "STATE", "SCORE", "PINS", "PEOPLE", "RECENT", "DECIDED")
	for _, d := range list.Terms {
		t.row(d.Term, d.State, fmt.Sprintf("%.2f", d.Score), d.Pins, d.People, fmt.Sprintf("%.0f %%", 100*d.Recent), decisionOn(d))
	}
}

func (t *tables) decided(d schemas.DictionaryTerm) {
	t.line(printed(d.Term + " is " + string(d.State) + ": " + decisionOn(d)))
}

// decisionOn describes the decision on a term: interest or reason, operator and time.
func decisionOn(d schemas.DictionaryTerm) string {
	var parts []string
	for _, part := range []string{string(d.Interest), d.Into, d.Reason} {
		if part != "" {
			parts = append(parts, part)
		}
	}
	if d.Operator != "" {
		parts = append(parts, "by "+d.Operator)
	}
	if d.Decided != nil {
		parts = append(parts, local(d.Decided.Time()))
	}
	if len(parts) == 0 {
		return "no decision"
	}
	return strings.Join(parts, ", ")
}

func (t *tables) interests(list struct{ Interests []schemas.UserInterest }) {
	t.row("INTEREST", "STRENGTH", "SHARE", "EVIDENCE")
	for _, i := range list.Interests {
		var actions []string
		for _, e := range i.Evidence {
			actions = append(actions, fmt.Sprintf("%s %s", e.Verb, e.Pin))
		}
		t.row(i.Interest, fmt.Sprintf("%.2f", i.Strength), fmt.Sprintf("%.0f %%", 100*i.Share), strings.Join(actions, ", "))
	}
}

// engagement writes a row for each source, with columns for impressions and for each verb that occurs.
func (t *tables) engagement(list struct{ Sources []schemas.SourceEngagement }) {
	verbs := map[string]bool{}
	for _, s := range list.Sources {
		for what := range s.Counts {
			verbs[what] = true
		}
	}
	delete(verbs, schemas.ImpressionCount)
	columns := append([]string{schemas.ImpressionCount}, slices.Sorted(maps.Keys(verbs))...)
	head := []any{"SOURCE"}
	for _, what := range columns {
		head = append(head, strings.ToUpper(what))
	}
	t.row(head...)
	for _, s := range list.Sources {
		cells := []any{s.Source}
		for _, what := range columns {
			cells = append(cells, s.Counts[what])
		}
		t.row(cells...)
	}
}
