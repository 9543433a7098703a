package api

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
)

// interestsCommand returns the command interests, which lists the terms that could be interests and decides on them.
func (q *querying) interestsCommand() *cobra.Command {
	cmd := command.Group("interests", "the dictionary of terms that could be interests, what users are interested in, and how interests do",
		"  smartfeed interests list\n  smartfeed interests accept gaiwan --interest interest:tea",
		q.termsCommand(), q.acceptCommand(), q.rejectCommand(), q.mergeCommand(), q.reopenCommand(), q.interestsOfCommand(), q.engagementCommand())
	cmd.Long = `Terms of titles and board names that enough pins and people have are candidates; somebody decides which are interests.
A decision holds for what comes after it, wherever groups run, and can be taken back.`
	cmd.PersistentFlags().BoolVar(&q.asJSON, "json", false, "print the answer as it is")
	return cmd
}

// termList is the decoded answer of GET /v1/dictionary.
type termList struct {
	Terms []dictionaryTerm `json:"terms"`
}

func (q *querying) termsCommand() *cobra.Command {
	var (
		state string
		limit int
	)
	cmd := &cobra.Command{
		Use:               "list",
		Short:             "terms of a state: candidates by score, the others by name",
		Example:           "  smartfeed interests list --limit 100\n  smartfeed interests list --state rejected --json",
		Args:              cobra.NoArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, _ []string) error {
			query := url.Values{"state": {state}, "limit": {strconv.Itoa(limit)}}
			return getAndShow(q, cmd, query, (*tables).terms, "v1", "dictionary")
		},
	}
	cmd.Flags().StringVar(&state, "state", string(schemas.TermCandidate), "candidate, accepted, rejected, merged or blocked")
	states := []string{
		string(schemas.TermCandidate), string(schemas.TermAccepted), string(schemas.TermRejected), string(schemas.TermMerged), string(schemas.TermBlocked),
	}
	_ = cmd.RegisterFlagCompletionFunc("state", cobra.FixedCompletions(states, cobra.ShellCompDirectiveNoFileComp)) // it fails only without such a flag
	cmd.Flags().IntVar(&limit, "limit", defaultLimit, fmt.Sprintf("terms, 1-%d", maxDictionary))
	return cmd
}

// deciding completes a command that decides on its first argument.
func (q *querying) deciding(cmd *cobra.Command, decision func(args []string) (decisionRequest, error)) *cobra.Command {
	var operator string
	cmd.ValidArgsFunction = cobra.NoFileCompletions
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		req, err := decision(args)
		if err != nil {
			return err
		}
		req.Term, req.Operator = args[0], operator
		c, err := q.client(cmd)
		if err != nil {
			return err
		}
		answer, err := c.Post(cmd.Context(), req, "v1", "dictionary", "decisions")
		if err != nil {
			return told(err)
		}
		_, err = show(q, cmd, answer, (*tables).decided)
		return err
	}
	cmd.Flags().StringVar(&operator, "operator", "", "who decides; with a token, its subject counts")
	return cmd
}

func (q *querying) acceptCommand() *cobra.Command {
	var interest string
	cmd := q.deciding(&cobra.Command{
		Use:     "accept TERM",
		Short:   "a term is an interest",
		Example: "  smartfeed interests accept oolong\n  smartfeed interests accept gaiwan --interest interest:tea",
		Args:    cobra.ExactArgs(1),
	}, func([]string) (decisionRequest, error) {
		return decisionRequest{State: schemas.TermAccepted, Interest: schemas.InterestID(interest)}, nil
	})
	cmd.Flags().StringVar(&interest, "interest", "", "which one (default: the one of the term's name)")
	return cmd
}

func (q *querying) rejectCommand() *cobra.Command {
	var reason string
	cmd := q.deciding(&cobra.Command{
		Use:     "reject TERM",
		Short:   "a term is no interest",
		Example: "  smartfeed interests reject sale --reason advertising",
		Args:    cobra.ExactArgs(1),
	}, func([]string) (decisionRequest, error) {
		if reason == "" {
			return decisionRequest{}, command.Usagef("--reason is missing: why the term is rejected")
		}
		return decisionRequest{State: schemas.TermRejected, Reason: reason}, nil
	})
	cmd.Flags().StringVar(&reason, "reason", "", "why")
	return cmd
}

func (q *querying) mergeCommand() *cobra.Command {
	return q.deciding(&cobra.Command{
		Use:     "merge TERM INTO",
		Short:   "a term means another one",
		Example: "  smartfeed interests merge kungfu gongfu",
		Args:    cobra.ExactArgs(2),
	}, func(args []string) (decisionRequest, error) {
		return decisionRequest{State: schemas.TermMerged, Into: args[1]}, nil
	})
}

func (q *querying) reopenCommand() *cobra.Command {
	return q.deciding(&cobra.Command{
		Use:     "reopen TERM",
		Short:   "take a decision back: a term is a candidate again",
		Example: "  smartfeed interests reopen sale",
		Args:    cobra.ExactArgs(1),
	}, func([]string) (decisionRequest, error) { return decisionRequest{State: schemas.TermCandidate}, nil })
}

// interestList is the decoded answer of GET /v1/users/{user}/interests.
type interestList struct {
	Interests []userInterest `json:"interests"`
}

func (q *querying) interestsOfCommand() *cobra.Command {
	var limit int
	cmd := &cobra.Command{
		Use:               "of USER",
		Short:             "what a user is interested in, and which actions say so",
		Example:           "  smartfeed interests of user:ada",
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, args []string) error {
			user, err := schemas.ParseUserID(args[0])
			if err != nil {
				return &command.UsageError{Err: err}
			}
			query := url.Values{"limit": {strconv.Itoa(limit)}}
			return getAndShow(q, cmd, query, (*tables).interests, "v1", "users", string(user), "interests")
		},
	}
	cmd.Flags().IntVar(&limit, "limit", defaultLimit, fmt.Sprintf("interests, 1-%d", maxDictionary))
	return cmd
}

// engagementList is the decoded answer of GET /v1/interests/{interest}/engagement.
type engagementList struct {
	Sources []schemas.SourceEngagement `json:"sources"`
}

func (q *querying) engagementCommand() *cobra.Command {
	var days int
	cmd := &cobra.Command{
		Use:               "engagement INTEREST",
		Short:             "how an interest's pins did, by where they came from",
		Example:           "  smartfeed interests engagement interest:tea --days 7",
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, args []string) error {
			interest, err := schemas.ParseInterestID(args[0])
			if err != nil {
				return &command.UsageError{Err: err}
			}
			query := url.Values{"days": {strconv.Itoa(days)}}
			return getAndShow(q, cmd, query, (*tables).engagement, "v1", "interests", string(interest), "engagement")
		},
	}
	cmd.Flags().IntVar(&days, "days", defaultDays, fmt.Sprintf("days, today included, 1-%d", maxDays))
	return cmd
}

func (t *tables) terms(list termList) {
	t.row("TERM", "STATE", "SCORE", "PINS", "PEOPLE", "RECENT", "DECIDED")
	for _, d := range list.Terms {
		t.row(d.Term, string(d.State), fmt.Sprintf("%.2f", d.Score), strconv.FormatInt(d.Pins, 10), strconv.FormatInt(d.People, 10),
			fmt.Sprintf("%.0f %%", 100*d.Recent), d.decision())
	}
}

func (t *tables) decided(d dictionaryTerm) {
	t.line(printed(d.Term + " is " + string(d.State) + ": " + d.decision()))
}

// decision describes the decision on a term: what, by whom, when. Without one it says that nothing is decided.
func (d dictionaryTerm) decision() string {
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
	t.row("INTEREST", "STRENGTH", "SHARE", "SAID BY")
	for _, i := range list.Interests {
		var said []string
		for _, e := range i.Evidence {
			said = append(said, fmt.Sprintf("%s %s", e.Verb, e.Pin))
		}
		t.row(string(i.Interest), fmt.Sprintf("%.2f", i.Strength), fmt.Sprintf("%.0f %%", 100*i.Share), strings.Join(said, ", "))
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
