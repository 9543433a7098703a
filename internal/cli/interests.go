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

// interestsCommand returns the command interests, which lists the terms that could be interests and decides on them.
func (p *program) interestsCommand() *cobra.Command {
	cmd := group("interests", "List and decide on the terms that could be interests",
		"  smartfeed interests list\n  smartfeed interests accept gaiwan --interest interest:tea",
		p.termsCommand(), p.acceptCommand(), p.rejectCommand(), p.mergeCommand(), p.reopenCommand(), p.interestsOfCommand(), p.engagementCommand())
	cmd.Long = `Terms of titles and board names that enough pins and users have are candidates; an operator decides which are interests. A
decision applies to later records in every process, and can be taken back.`
	return cmd
}

// termList is the decoded answer of GET /v1/dictionary.
type termList struct {
	Terms []api.DictionaryTerm `json:"terms"`
}

func (p *program) termsCommand() *cobra.Command {
	var (
		state string
		limit int
	)
	cmd := &cobra.Command{
		Use:               "list",
		Short:             "List the terms of a state: candidates by score, others by name",
		Example:           "  smartfeed interests list --limit 100\n  smartfeed interests list --state rejected -o json",
		Args:              noArguments,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, _ []string) error {
			query := url.Values{"state": {state}, "limit": {strconv.Itoa(limit)}}
			return getAndShow(p, cmd, query, (*tables).terms, "v1", "dictionary")
		},
	}
	cmd.Flags().StringVar(&state, "state", string(schemas.TermCandidate), "candidate, accepted, rejected, merged or blocked")
	states := []string{
		string(schemas.TermCandidate), string(schemas.TermAccepted), string(schemas.TermRejected), string(schemas.TermMerged), string(schemas.TermBlocked),
	}
	complete(cmd, "state", states...)
	cmd.Flags().IntVar(&limit, "limit", api.DefaultLimit, fmt.Sprintf("terms, 1-%d", api.MaxDictionary))
	return cmd
}

// decideCommand completes a command that decides on its first argument.
func (p *program) decideCommand(cmd *cobra.Command, decision func(args []string) (api.DecisionRequest, error)) *cobra.Command {
	var operator string
	cmd.ValidArgsFunction = cobra.NoFileCompletions
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		req, err := decision(args)
		if err != nil {
			return err
		}
		req.Term, req.Operator = args[0], operator
		return postAndShow(p, cmd, req, (*tables).decided, "v1", "dictionary", "decisions")
	}
	cmd.Flags().StringVar(&operator, "operator", "", "record this name as the operator; with a token, its subject is recorded")
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
	cmd.Flags().StringVar(&interest, "interest", "", "the interest (default: the one with the term's name)")
	return cmd
}

func (p *program) rejectCommand() *cobra.Command {
	var reason string
	cmd := p.decideCommand(&cobra.Command{
		Use:     "reject TERM",
		Short:   "Reject a term: it is no interest",
		Example: "  smartfeed interests reject sale --reason advertising",
		Args:    cobra.ExactArgs(1),
	}, func([]string) (api.DecisionRequest, error) {
		if reason == "" {
			return api.DecisionRequest{}, command.Usagef("--reason: is missing: say why the term is rejected")
		}
		return api.DecisionRequest{State: schemas.TermRejected, Reason: reason}, nil
	})
	cmd.Flags().StringVar(&reason, "reason", "", "why")
	return cmd
}

func (p *program) mergeCommand() *cobra.Command {
	return p.decideCommand(&cobra.Command{
		Use:     "merge TERM INTO",
		Short:   "Merge a term into another one",
		Example: "  smartfeed interests merge kungfu gongfu",
		Args:    cobra.ExactArgs(2),
	}, func(args []string) (api.DecisionRequest, error) {
		return api.DecisionRequest{State: schemas.TermMerged, Into: args[1]}, nil
	})
}

func (p *program) reopenCommand() *cobra.Command {
	return p.decideCommand(&cobra.Command{
		Use:     "reopen TERM",
		Short:   "Take a decision back: the term is a candidate again",
		Example: "  smartfeed interests reopen sale",
		Args:    cobra.ExactArgs(1),
	}, func([]string) (api.DecisionRequest, error) {
		return api.DecisionRequest{State: schemas.TermCandidate}, nil
	})
}

// interestList is the decoded answer of GET /v1/users/{user}/interests.
type interestList struct {
	Interests []api.UserInterest `json:"interests"`
}

func (p *program) interestsOfCommand() *cobra.Command {
	var limit int
	cmd := &cobra.Command{
		Use:               "of USER",
		Short:             "List the interests of a user, with the actions as evidence",
		Example:           "  smartfeed interests of user:ada",
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, args []string) error {
			user, err := schemas.ParseUserID(args[0])
			if err != nil {
				return usage(err)
			}
			query := url.Values{"limit": {strconv.Itoa(limit)}}
			return getAndShow(p, cmd, query, (*tables).interests, "v1", "users", string(user), "interests")
		},
	}
	cmd.Flags().IntVar(&limit, "limit", api.DefaultLimit, fmt.Sprintf("interests, 1-%d", api.MaxDictionary))
	return cmd
}

// engagementList is the decoded answer of GET /v1/interests/{interest}/engagement.
type engagementList struct {
	Sources []schemas.SourceEngagement `json:"sources"`
}

func (p *program) engagementCommand() *cobra.Command {
	var days int
	cmd := &cobra.Command{
		Use:               "engagement INTEREST",
		Short:             "Show the engagement with an interest's pins, by source",
		Example:           "  smartfeed interests engagement interest:tea --days 7",
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, args []string) error {
			interest, err := schemas.ParseInterestID(args[0])
			if err != nil {
				return usage(err)
			}
			query := url.Values{"days": {strconv.Itoa(days)}}
			return getAndShow(p, cmd, query, (*tables).engagement, "v1", "interests", string(interest), "engagement")
		},
	}
	cmd.Flags().IntVar(&days, "days", api.DefaultDays, fmt.Sprintf("days, today included, 1-%d", api.MaxDays))
	return cmd
}

func (t *tables) terms(list termList) {
	t.row("TERM", "STATE", "SCORE", "PINS", "PEOPLE", "RECENT", "DECIDED")
	for _, d := range list.Terms {
		t.row(d.Term, string(d.State), fmt.Sprintf("%.2f", d.Score), strconv.FormatInt(d.Pins, 10), strconv.FormatInt(d.People, 10),
			fmt.Sprintf("%.0f %%", 100*d.Recent), decisionOn(d))
	}
}

func (t *tables) decided(d api.DictionaryTerm) {
	t.line(printed(d.Term + " is " + string(d.State) + ": " + decisionOn(d)))
}

// decisionOn describes the decision on a term: what, by whom, when. Without one it says that nothing is decided.
func decisionOn(d api.DictionaryTerm) string {
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
		parts = append(parts, local(*d.Decided))
	}
	if len(parts) == 0 {
		return "nothing is decided"
	}
	return strings.Join(parts, ", ")
}

func (t *tables) interests(list interestList) {
	t.row("INTEREST", "STRENGTH", "SHARE", "EVIDENCE")
	for _, i := range list.Interests {
		var actions []string
		for _, e := range i.Evidence {
			actions = append(actions, fmt.Sprintf("%s %s", e.Verb, e.Pin))
		}
		t.row(string(i.Interest), fmt.Sprintf("%.2f", i.Strength), fmt.Sprintf("%.0f %%", 100*i.Share), strings.Join(actions, ", "))
	}
}

// engagement writes a row for each source, with columns for impressions and for each verb that occurs.
func (t *tables) engagement(list engagementList) {
	verbs := map[string]bool{}
	for _, s := range list.Sources {
		for what := range s.Counts {
			verbs[what] = true
		}
	}
	delete(verbs, schemas.ImpressionCount)
	columns := append([]string{schemas.ImpressionCount}, slices.Sorted(maps.Keys(verbs))...)
	head := []string{"SOURCE"}
	for _, what := range columns {
		head = append(head, strings.ToUpper(what))
	}
	t.row(head...)
	for _, s := range list.Sources {
		cells := []string{string(s.Source)}
		for _, what := range columns {
			cells = append(cells, strconv.FormatInt(s.Counts[what], 10))
		}
		t.row(cells...)
	}
}
