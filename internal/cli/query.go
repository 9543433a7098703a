package cli

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/smartfeed/smartfeed/internal/convert"
	"github.com/smartfeed/smartfeed/schemas"
	"github.com/smartfeed/smartfeed/serving/api"
	"github.com/smartfeed/smartfeed/serving/feed"
)

func (p *program) queryCommand() *cobra.Command {
	return group("query", "Query feeds, features and all other answers of a running server",
		"  smartfeed query feed user:ada --limit 5\n  smartfeed query get status --http feeds.local:8080",
		p.feedCommand(), p.whyCommand(), p.featureCommand(), p.getCommand(), p.readyCommand())
}

// feedFlag adds the flag --feed.
func feedFlag(cmd *cobra.Command, name *string, help string) {
	cmd.Flags().StringVar(name, "feed", "", help+" (default home)")
	complete(cmd, "feed") // without names of files
}

func (p *program) feedCommand() *cobra.Command {
	var (
		name, cursor string
		limit        int
		all, peek    bool
	)
	cmd := &cobra.Command{
		Use:   "feed USER",
		Short: "Visit a user's feed, or print older pages",
		Long: `Print a page of a user's feed. Without --cursor this is a visit: the new items at the top count as shown. --peek prints the page
that a visit would give, and changes nothing. With the cursor of a page, it prints the older items that follow. --all prints all
pages; with -o json, one page per line.`,
		Example: "  smartfeed query feed user:ada --limit 10\n  smartfeed query feed user:ada --all -o json",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			user, err := schemas.ParseUserID(args[0])
			if err != nil {
				return usage(err)
			}
			query := url.Values{"limit": {strconv.Itoa(limit)}}
			if cursor != "" {
				query.Set("cursor", cursor)
			} else if name != "" {
				query.Set("feed", name)
			}
			if peek && cursor == "" {
				query.Set("peek", "true")
			}
			return p.feed(cmd, user, query, all)
		},
	}
	feedFlag(cmd, &name, "name of the feed")
	cmd.Flags().StringVar(&cursor, "cursor", "", "cursor of the previous page")
	cmd.Flags().IntVar(&limit, "limit", api.DefaultLimit, fmt.Sprintf("maximum number of items per page, 1-%d", feed.MaxLimit))
	cmd.Flags().BoolVar(&all, "all", false, "print all pages")
	cmd.Flags().BoolVar(&peek, "peek", false, "print what a visit would show, and change nothing")
	return cmd
}

// feed prints one page, or all pages.
func (p *program) feed(cmd *cobra.Command, user schemas.UserID, query url.Values, all bool) error {
	for {
		answer, err := p.ask(cmd, request{path: []string{"users", string(user), "feed"}, query: query})
		if err != nil {
			return err
		}
		var page feed.Page
		if err := json.Unmarshal(answer, &page); err != nil {
			return fmt.Errorf("read answer: %w", err)
		}
		columns := []string{"new", "pin", "source", "score", "time", "author", "title"}
		if err := p.print(cmd.OutOrStdout(), output{value: answer, columns: columns}); err != nil || !all || page.Next == nil {
			return err
		}
		if *page.Next == query.Get("cursor") {
			return fmt.Errorf("read all pages of %s: the next page has the same cursor; degraded: %s", user, strings.Join(page.Degraded, ", "))
		}
		query.Del("feed")
		query.Del("peek")
		query.Set("cursor", *page.Next)
	}
}

// getCommand returns the command that prints any answer.
func (p *program) getCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "get PATH[?QUERY]",
		Short: "Print the answer of a GET request below /v1",
		Long: `Print the answer of a GET request to a running server. PATH is below /v1. "%2F" in PATH stands for a slash in an id. The
reference of the HTTP API lists all requests and their answers.`,
		Example: "  smartfeed query get status\n  smartfeed query get 'users/user:ada/pools?source=interest&limit=5'\n" +
			"  smartfeed query get 'dead-letters/retries?state=parked' -o json",
		Args: cobra.ExactArgs(1),
		RunE: p.prints(func(cmd *cobra.Command, args []string) (any, error) {
			r, err := parseRequest(args[0])
			if err != nil {
				return nil, usage(err)
			}
			answer, err := p.ask(cmd, r)
			return answer, err
		}),
	}
}

// parseRequest returns the GET request for an escaped path below /v1 and a query.
func parseRequest(text string) (request, error) {
	path, query, _ := strings.Cut(strings.TrimPrefix(text, "/v1/"), "?")
	values, err := url.ParseQuery(query)
	r := request{query: values}
	for segment := range strings.SplitSeq(path, "/") {
		plain, problem := url.PathUnescape(segment)
		err = errors.Join(err, problem)
		r.path = append(r.path, plain)
	}
	if err != nil {
		return r, fmt.Errorf("path: %q: %w", text, err)
	}
	return r, nil
}

func (p *program) whyCommand() *cobra.Command {
	var name string
	cmd := &cobra.Command{
		Use:     "why USER PIN",
		Short:   "Explain why a pin is, was, or is not in a user's feed",
		Example: "  smartfeed query why user:ada pin:42",
		Args:    cobra.ExactArgs(2),
		RunE: p.prints(func(cmd *cobra.Command, args []string) (any, error) {
			user, problem := schemas.ParseUserID(args[0])
			pin, err := schemas.ParsePinID(args[1])
			if err := errors.Join(problem, err); err != nil {
				return nil, usage(err)
			}
			query := url.Values{"pin": {string(pin)}}
			if name != "" {
				query.Set("feed", name)
			}
			answer, err := p.ask(cmd, request{path: []string{"users", string(user), "feed", "why"}, query: query})
			if err != nil {
				return nil, err
			}
			var why schemas.Why
			if err := json.Unmarshal(answer, &why); err != nil {
				return nil, fmt.Errorf("read answer: %w", err)
			}
			return output{value: answer, text: func(out io.Writer) error { return printWhy(out, &why) }}, nil
		}),
	}
	feedFlag(cmd, &name, "name of the feed whose rules apply")
	return cmd
}

// because returns the description of a reason.
func because(r schemas.Reason) string {
	return inWords(r, map[schemas.Reason]string{
		schemas.ReasonOutranked:       "other candidates rank higher, or another source is due",
		schemas.ReasonBeyondHead:      "it is not among the best candidates of its pool",
		schemas.ReasonCapAuthor:       "too many items above it have the same author",
		schemas.ReasonCapBoard:        "too many items above it have the same board",
		schemas.ReasonCapInterest:     "too many items above it have the same interest",
		schemas.ReasonSimilar:         "it is similar to an item above it",
		schemas.ReasonNoShare:         "its sources have no share in this feed",
		schemas.ReasonWeak:            "its score is too far below the best, and the session's budget is used up",
		schemas.ReasonDeferredEarlier: "an earlier visit deferred it, because its score was too far below the best",
		schemas.ReasonDeleted:         "the pin is deleted",
		schemas.ReasonAuthorDeleted:   "its author is deleted",
		schemas.ReasonOwn:             "the user created it",
		schemas.ReasonBlock:           "the user or the author blocked the other",
		schemas.ReasonNoEdge:          "the user does not follow its author, board or interests",
		schemas.ReasonFolloweeCap:     "the follow that would deliver it is above the maximum of 10,000 follows",
		schemas.ReasonSeenTrimmed:     "it is as old as seen pins that are no longer stored",
		schemas.ReasonExpired:         "it is older than pools.max_pin_age",
		schemas.ReasonDeferralExpired: "its deferral expired",
		schemas.ReasonCap:             "the pool is full of better candidates",
		schemas.ReasonUndelivered:     "it was not delivered, or its delivery was dropped",
		schemas.ReasonUnknown:         "the pin is unknown",
		schemas.ReasonUserDeleted:     "the user is deleted",
		schemas.ReasonSeen:            "it was shown",
	})
}

// fate returns the description of a pin's fate.
func fate(f schemas.Fate) string {
	return inWords(f, map[schemas.Fate]string{
		schemas.FatePending:  "is about to be shown",
		schemas.FateNext:     "would be shown by a visit now",
		schemas.FateWaiting:  "is waiting",
		schemas.FateDeferred: "is deferred",
		schemas.FateHidden:   "is hidden from the user",
		schemas.FateOut:      "is not a candidate",
	})
}

// inWords returns the description of a name. It returns an unknown name unchanged, because a newer server may use further
// names.
func inWords[T ~string](name T, words map[T]string) string {
	return cmp.Or(words[name], string(name))
}

func printWhy(out io.Writer, w *schemas.Why) error {
	lines := []string{whyLine(w)}
	if w.Since != 0 {
		lines = append(lines, "deferred since "+local(w.Since.Time()))
	}
	if len(w.Degraded) > 0 {
		lines = append(lines, "answered without: "+strings.Join(w.Degraded, ", "))
	}
	for i, line := range lines {
		lines[i] = printed(line)
	}
	table := &block{}
	for _, c := range w.Candidates {
		rank, reason := "", "waiting"
		if c.Rank > 0 {
			rank = strconv.Itoa(c.Rank)
		}
		if c.Reason != "" {
			reason = because(c.Reason)
		}
		table.add([]cell{
			{"source", string(c.Source)}, {"rank", rank}, {"score", score(c.RankScore)}, {"parts", scoreParts(c.Parts)}, {"by", joined(c.Edges)},
			{"reason", reason},
		})
	}
	if len(w.Candidates) > 0 {
		lines = append(lines, "", strings.TrimSuffix(table.text(), "\n"))
	}
	_, err := fmt.Fprintln(out, strings.Join(lines, "\n"))
	return err
}

// whyLine returns the answer as one sentence.
func whyLine(w *schemas.Why) string {
	text := string(w.Pin) + " " + fate(w.Fate)
	if s := w.Shown; s != nil {
		text = string(w.Pin) + " was shown " + local(s.Time.Time()) + ", at position " + strconv.FormatInt(s.Position, 10)
		if s.Source != "" {
			text += ", from " + string(s.Source)
		}
		if w.Reason != "" {
			text += "; it is hidden from the user now"
		}
	}
	if w.Place > 0 {
		text += ", in place " + strconv.Itoa(w.Place)
	}
	if w.Reason != "" {
		text += ": " + because(w.Reason)
	}
	if len(w.By) > 0 {
		text += " (" + joined(w.By) + ")"
	}
	if w.Arm != "" {
		text += ", with the rules of the feed " + w.Arm
	}
	return text
}

func joined(ids []schemas.ID) string { return strings.Join(schemas.Strings(ids), " ") }

func scoreParts(parts map[string]float64) string {
	texts := convert.All(slices.Sorted(maps.Keys(parts)), func(name string) string { return name + " " + score(parts[name]) })
	return strings.Join(texts, ", ")
}

// readyCommand returns the command ready, for health checks in images without another HTTP client.
func (p *program) readyCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "ready",
		Short:   "Check whether a server is ready: exit code 0 or 1",
		Example: "  smartfeed query ready --http 127.0.0.1:8080",
		RunE: p.prints(func(cmd *cobra.Command, _ []string) (any, error) {
			c, err := p.client(cmd)
			if err != nil {
				return nil, err
			}
			defer c.Close()
			answer, err := c.Get(cmd.Context(), nil, "readyz")
			return output{value: answer, text: func(out io.Writer) error {
				_, err := out.Write(answer)
				return err
			}}, err
		}),
	}
}
