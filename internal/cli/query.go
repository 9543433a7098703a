package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/smartfeed/smartfeed/internal/command"
	"github.com/smartfeed/smartfeed/schemas"
	"github.com/smartfeed/smartfeed/serving/api"
	"github.com/smartfeed/smartfeed/serving/client"
	"github.com/smartfeed/smartfeed/serving/feature"
	"github.com/smartfeed/smartfeed/serving/feed"
)

func (p *program) queryCommand() *cobra.Command {
	return group("query", "Query feeds, pools, features and the state of a running server",
		"  smartfeed query feed user:ada --limit 5\n  smartfeed query status --http feeds.local:8080",
		p.feedCommand(), p.whyCommand(), p.poolCommand(), p.featureCommand(), p.statusCommand(), p.readyCommand())
}

// completeNames completes the argument after the first `after` ones, and all that follow it, with some of the configured
// names.
func (p *program) completeNames(after int, some func(names) []string) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		if len(args) < after {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return some(p.names(cmd)), cobra.ShellCompDirectiveNoFileComp
	}
}

// completeFeeds completes the flag --feed.
func (p *program) completeFeeds(cmd *cobra.Command) {
	completeWith(cmd, "feed", p.completeNames(0, func(n names) []string { return n.feeds }))
}

// client returns a client of the running server. The caller must close it.
func (p *program) client(cmd *cobra.Command) (*client.Client, error) {
	cfg, err := p.server(cmd)
	if err != nil {
		return nil, err
	}
	c, err := client.New(cfg)
	if wrong := new(client.AddressError); errors.As(err, &wrong) {
		return nil, usage(err)
	}
	return c, err
}

// explained returns an error with each problem of a rejected request on its own line, if there are several.
func explained(err error) error {
	var refused *client.Error
	if !errors.As(err, &refused) || len(refused.Errors) < 2 {
		return err
	}
	problems := []error{err}
	for _, one := range refused.Errors {
		problems = append(problems, errors.New("  "+printed(one)))
	}
	return errors.Join(problems...)
}

// show prints an answer: unchanged, or decoded into a T and as a table.
func show[T any](p *program, cmd *cobra.Command, answer json.RawMessage, table func(*tables, T)) (T, error) {
	var v T
	if err := json.Unmarshal(answer, &v); err != nil {
		return v, fmt.Errorf("read answer: %w", err)
	}
	return v, p.printAnswer(cmd, answer, func(out io.Writer) error {
		t := newTables(out)
		table(t, v)
		return t.flush()
	})
}

func (p *program) feedCommand() *cobra.Command {
	var (
		name, cursor string
		limit        int
		all          bool
	)
	cmd := &cobra.Command{
		Use:   "feed USER",
		Short: "Visit a user's feed, or read older pages",
		Long: `Without --cursor this is a visit: the new items on top count as shown from then on. With the cursor of a page, it prints the
older items that follow. --all reads to the end; with -o json it prints one page per line.`,
		Example:           "  smartfeed query feed user:ada --limit 10\n  smartfeed query feed user:ada --all -o json",
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, args []string) error {
			user, err := schemas.ParseUserID(args[0])
			if err != nil {
				return usage(err)
			}
			query := url.Values{}
			if cursor != "" {
				query.Set("cursor", cursor)
			} else if name != "" {
				query.Set("feed", name)
			}
			query.Set("limit", strconv.Itoa(limit))
			return p.feed(cmd, user, query, all)
		},
	}
	cmd.Flags().StringVar(&name, "feed", "", "named feed of the visit (default home)")
	p.completeFeeds(cmd)
	cmd.Flags().StringVar(&cursor, "cursor", "", "cursor of the previous page")
	cmd.Flags().IntVar(&limit, "limit", api.DefaultLimit, fmt.Sprintf("items of a page, 1-%d", feed.MaxLimit))
	cmd.Flags().BoolVar(&all, "all", false, "read every page, to the end")
	return cmd
}

// getAndShow requests a T and prints it.
func getAndShow[T any](p *program, cmd *cobra.Command, query url.Values, table func(*tables, T), path ...string) error {
	c, err := p.client(cmd)
	if err != nil {
		return err
	}
	answer, err := c.Get(cmd.Context(), query, path...)
	if err != nil {
		return explained(err)
	}
	_, err = show(p, cmd, answer, table)
	return err
}

// postAndShow sends a request for a T and prints the answer.
func postAndShow[T any](p *program, cmd *cobra.Command, body any, table func(*tables, T), path ...string) error {
	c, err := p.client(cmd)
	if err != nil {
		return err
	}
	answer, err := c.Post(cmd.Context(), body, path...)
	if err != nil {
		return explained(err)
	}
	_, err = show(p, cmd, answer, table)
	return err
}

// feed prints one page, or all pages.
func (p *program) feed(cmd *cobra.Command, user schemas.UserID, query url.Values, all bool) error {
	c, err := p.client(cmd)
	if err != nil {
		return err
	}
	for shown := 0; ; {
		answer, err := c.Get(cmd.Context(), query, "v1", "users", string(user), "feed")
		if err != nil {
			return explained(err)
		}
		page, err := show(p, cmd, answer, func(t *tables, page feed.Page) { t.feed(page, shown, !all) })
		if err != nil || !all || page.Next == nil {
			return err
		}
		if *page.Next == query.Get("cursor") {
			return fmt.Errorf("read all of %s: the next page is the same: without %s", user, strings.Join(page.Degraded, ", "))
		}
		shown += len(page.Items)
		query.Del("feed")
		query.Set("cursor", *page.Next)
	}
}

func (p *program) poolCommand() *cobra.Command {
	var limit int
	cmd := &cobra.Command{
		Use:               "pool USER SOURCE",
		Short:             "List the candidates of a user from one source, best first",
		Example:           "  smartfeed query pool user:ada interest",
		ValidArgsFunction: p.completeNames(1, func(n names) []string { return n.sources }),
		Args:              cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			user, err := schemas.ParseUserID(args[0])
			if err != nil {
				return usage(err)
			}
			query := url.Values{"source": {args[1]}, "limit": {strconv.Itoa(limit)}}
			return getAndShow(p, cmd, query, (*tables).pool, "v1", "users", string(user), "pools")
		},
	}
	cmd.Flags().IntVar(&limit, "limit", api.DefaultLimit, fmt.Sprintf("candidates, 1-%d", api.MaxPoolLimit))
	return cmd
}

// evaluation has the flags for the entities and the time of a request for features.
type evaluation struct {
	users, pins, pairs []string
	at                 string
}

func (p *program) featureCommand() *cobra.Command {
	var e evaluation
	cmd := &cobra.Command{
		Use:   "feature [NAME...]",
		Short: "Evaluate features; without a name, list the features",
		Example: `  smartfeed query feature
  smartfeed query feature interests_24h last_actions --user user:ada
  smartfeed query feature pair_author_96h --pair 'user:ada|pin:42'`,
		Args:              cobra.ArbitraryArgs,
		ValidArgsFunction: p.completeNames(0, func(n names) []string { return n.features }),
		RunE: func(cmd *cobra.Command, names []string) error {
			req, err := e.request(names)
			if err != nil {
				return err
			}
			if len(names) == 0 {
				return getAndShow(p, cmd, nil, (*tables).definitions, "v1", "features")
			}
			return postAndShow(p, cmd, req, (*tables).features, "v1", "features")
		},
	}
	e.flags(cmd)
	return cmd
}

// flags adds the flags for the entities and the time.
func (e *evaluation) flags(cmd *cobra.Command) {
	cmd.Flags().StringArrayVar(&e.users, "user", nil, "evaluate for this user (repeatable)")
	cmd.Flags().StringArrayVar(&e.pins, "pin", nil, "evaluate for this pin (repeatable)")
	cmd.Flags().StringArrayVar(&e.pairs, "pair", nil, "evaluate for this pair, USER|PIN (repeatable)")
	cmd.Flags().StringVar(&e.at, "at", "", "end of the windows, RFC 3339 (default now)")
}

// request returns the request for the flags, or a *command.UsageError.
func (e evaluation) request(names []string) (feature.Request, error) {
	if (len(names) > 0) != (len(e.users)+len(e.pins)+len(e.pairs) > 0) {
		return feature.Request{}, command.Usagef("want names of features and a --user, --pin or --pair; or none of them, to list the features")
	}
	req, err := e.entities()
	req.Features = names
	return req, err
}

// entities parses the entities and the time in the flags.
func (e evaluation) entities() (req feature.Request, err error) {
	if req.Users, err = parsed(e.users, schemas.ParseUserID); err != nil {
		return req, err
	}
	if req.Pins, err = parsed(e.pins, schemas.ParsePinID); err != nil {
		return req, err
	}
	if req.Pairs, err = parsed(e.pairs, parsePair); err != nil {
		return req, err
	}
	if e.at != "" {
		at, err := time.Parse(time.RFC3339, e.at)
		if err != nil {
			return req, command.Usagef("--at %q: want a time like 2026-11-20T10:00:00Z", e.at)
		}
		req.At = &at
	}
	return req, nil
}

func parsed[T any](texts []string, parse func(string) (T, error)) ([]T, error) {
	all := make([]T, 0, len(texts))
	for _, text := range texts {
		v, err := parse(text)
		if err != nil {
			return nil, &command.UsageError{Err: err}
		}
		all = append(all, v)
	}
	return all, nil
}

// parsePair parses a pair in the form of answers, user:…|pin:…. The user ends at the first |pin:.
func parsePair(text string) (feature.UserPin, error) {
	user, pin, ok := strings.Cut(text, "|pin:")
	if !ok {
		return feature.UserPin{}, fmt.Errorf("pair %.64q: want USER|PIN", text)
	}
	u, err := schemas.ParseUserID(user)
	if err != nil {
		return feature.UserPin{}, err
	}
	p, err := schemas.ParsePinID("pin:" + pin)
	return feature.UserPin{User: u, Pin: p}, err
}

// readyCommand is for health checks on machines without another HTTP client.
func (p *program) readyCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "ready",
		Short:   "Report whether a server is ready: exit code 0, otherwise 1",
		Example: "  smartfeed query ready --http 127.0.0.1:8080",
		Args:    noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := p.client(cmd)
			if err != nil {
				return err
			}
			answer, err := c.Get(cmd.Context(), nil, "readyz")
			if err != nil {
				return err
			}
			return p.printAnswer(cmd, answer, func(out io.Writer) error {
				_, err := out.Write(answer)
				return err
			})
		},
	}
}

func (p *program) statusCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "status",
		Short:   "Show the state of every part of a running server",
		Example: "  smartfeed query status\n  smartfeed query status -o json",
		Args:    noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return getAndShow(p, cmd, nil, (*tables).status, "v1", "status")
		},
	}
}
