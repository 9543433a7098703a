package api

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/smartfeed/smartfeed/internal/command"
	"github.com/smartfeed/smartfeed/schemas"
	"github.com/smartfeed/smartfeed/serving/client"
	"github.com/smartfeed/smartfeed/serving/feature"
	"github.com/smartfeed/smartfeed/serving/feed"
)

// Names are the names that a shell can complete in arguments. Users are not among them.
type Names struct{ Feeds, Sources, Features []string }

// Commands returns the commands query and interests, which call a running server. When one of their subcommands runs, server
// returns the address and the credentials. names returns the names for the completion of a command line.
func Commands(server func(*cobra.Command) (client.Config, error), names func(*cobra.Command) Names) []*cobra.Command {
	q := &querying{server: server, names: names}
	cmd := command.Group("query", "ask a running server for feeds, pools, features and its state",
		"  smartfeed query feed user:ada --limit 5\n  smartfeed query status --http feeds.local:8080",
		q.feedCommand(), q.whyCommand(), q.poolCommand(), q.featureCommand(), q.statusCommand(), q.readyCommand())
	cmd.PersistentFlags().BoolVar(&q.asJSON, "json", false, "print the answer as it is")
	return []*cobra.Command{cmd, q.interestsCommand()}
}

// querying has the common state of the subcommands.
type querying struct {
	server func(*cobra.Command) (client.Config, error)
	names  func(*cobra.Command) Names
	asJSON bool
}

// offer completes the argument after the first `after` ones, and all that follow it, with some of the names.
func (q *querying) offer(after int, some func(Names) []string) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		if len(args) < after {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return some(q.names(cmd)), cobra.ShellCompDirectiveNoFileComp
	}
}

// offerFeeds completes the flag --feed.
func (q *querying) offerFeeds(cmd *cobra.Command) {
	feeds := q.offer(0, func(n Names) []string { return n.Feeds })
	_ = cmd.RegisterFlagCompletionFunc("feed", feeds) // it fails only without such a flag
}

func (q *querying) client(cmd *cobra.Command) (*client.Client, error) {
	cfg, err := q.server(cmd)
	if err != nil {
		return nil, err
	}
	c, err := client.New(cfg)
	var wrong *client.AddressError
	if errors.As(err, &wrong) {
		return nil, &command.UsageError{Err: err}
	}
	return c, err
}

// told returns an error with each problem of a rejected request on its own line, if there are several.
func told(err error) error {
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
func show[T any](q *querying, cmd *cobra.Command, answer json.RawMessage, table func(*tables, T)) (T, error) {
	var v T
	if err := json.Unmarshal(answer, &v); err != nil {
		return v, fmt.Errorf("read answer: %w", err)
	}
	if q.asJSON {
		_, err := cmd.OutOrStdout().Write(answer)
		return v, err
	}
	out := newTables(cmd.OutOrStdout())
	table(out, v)
	return v, out.flush()
}

func (q *querying) feedCommand() *cobra.Command {
	var (
		name, cursor string
		limit        int
		all          bool
	)
	cmd := &cobra.Command{
		Use:   "feed USER",
		Short: "visit a user's feed, or read on in it",
		Long: `Without --cursor this is a visit: the new items on top count as shown from then on. With the cursor of the page before,
the older items that follow it. --all reads on to the end; with --json it prints a page a line.`,
		Example:           "  smartfeed query feed user:ada --limit 10\n  smartfeed query feed user:ada --all --json",
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, args []string) error {
			user, err := schemas.ParseUserID(args[0])
			if err != nil {
				return &command.UsageError{Err: err}
			}
			query := url.Values{}
			if cursor != "" {
				query.Set("cursor", cursor)
			} else if name != "" {
				query.Set("feed", name)
			}
			query.Set("limit", strconv.Itoa(limit))
			return q.feed(cmd, user, query, all)
		},
	}
	cmd.Flags().StringVar(&name, "feed", "", "named feed of the visit (default home)")
	q.offerFeeds(cmd)
	cmd.Flags().StringVar(&cursor, "cursor", "", "read on from here")
	cmd.Flags().IntVar(&limit, "limit", defaultLimit, fmt.Sprintf("items of a page, 1-%d", feed.MaxLimit))
	cmd.Flags().BoolVar(&all, "all", false, "every page, to the end")
	return cmd
}

// getAndShow requests a T and prints it.
func getAndShow[T any](q *querying, cmd *cobra.Command, query url.Values, table func(*tables, T), path ...string) error {
	c, err := q.client(cmd)
	if err != nil {
		return err
	}
	answer, err := c.Get(cmd.Context(), query, path...)
	if err != nil {
		return told(err)
	}
	_, err = show(q, cmd, answer, table)
	return err
}

// feed prints one page, or all pages.
func (q *querying) feed(cmd *cobra.Command, user schemas.UserID, query url.Values, all bool) error {
	c, err := q.client(cmd)
	if err != nil {
		return err
	}
	for shown := 0; ; {
		answer, err := c.Get(cmd.Context(), query, "v1", "users", string(user), "feed")
		if err != nil {
			return told(err)
		}
		page, err := show(q, cmd, answer, func(t *tables, p feed.Page) { t.feed(p, shown, !all) })
		if err != nil || !all || page.Next == nil {
			return err
		}
		if *page.Next == query.Get("cursor") {
			return fmt.Errorf("read all of %s: the feed does not go on: without %s", user, strings.Join(page.Degraded, ", "))
		}
		shown += len(page.Items)
		query.Del("feed")
		query.Set("cursor", *page.Next)
	}
}

func (q *querying) poolCommand() *cobra.Command {
	var limit int
	cmd := &cobra.Command{
		Use:               "pool USER SOURCE",
		Short:             "what waits for a user from one source, best first",
		Example:           "  smartfeed query pool user:ada interest",
		ValidArgsFunction: q.offer(1, func(n Names) []string { return n.Sources }),
		Args:              cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			user, err := schemas.ParseUserID(args[0])
			if err != nil {
				return &command.UsageError{Err: err}
			}
			query := url.Values{"source": {args[1]}, "limit": {strconv.Itoa(limit)}}
			return getAndShow(q, cmd, query, (*tables).pool, "v1", "users", string(user), "pools")
		},
	}
	cmd.Flags().IntVar(&limit, "limit", defaultLimit, fmt.Sprintf("candidates, 1-%d", maxPoolLimit))
	return cmd
}

// asked are the entities and the time on the command line of query feature.
type asked struct {
	users, pins, pairs []string
	at                 string
}

func (q *querying) featureCommand() *cobra.Command {
	var a asked
	cmd := &cobra.Command{
		Use:   "feature [NAME...]",
		Short: "values of features; without a name the features there are",
		Example: `  smartfeed query feature
  smartfeed query feature interests_24h last_actions --user user:ada
  smartfeed query feature pair_author_96h --pair 'user:ada|pin:42'`,
		Args:              cobra.ArbitraryArgs,
		ValidArgsFunction: q.offer(0, func(n Names) []string { return n.Features }),
		RunE: func(cmd *cobra.Command, names []string) error {
			req, err := a.request(names)
			if err != nil {
				return err
			}
			c, err := q.client(cmd)
			if err != nil {
				return err
			}
			if len(names) == 0 {
				return q.definitions(cmd, c)
			}
			answer, err := c.Post(cmd.Context(), req, "v1", "features")
			if err != nil {
				return told(err)
			}
			_, err = show(q, cmd, answer, (*tables).features)
			return err
		},
	}
	a.flags(cmd)
	return cmd
}

// flags adds the flags for the entities and the time.
func (a *asked) flags(cmd *cobra.Command) {
	cmd.Flags().StringArrayVar(&a.users, "user", nil, "of this user (repeatable)")
	cmd.Flags().StringArrayVar(&a.pins, "pin", nil, "of this pin (repeatable)")
	cmd.Flags().StringArrayVar(&a.pairs, "pair", nil, "of this pair, USER|PIN (repeatable)")
	cmd.Flags().StringVar(&a.at, "at", "", "where windows end, RFC 3339 (default now)")
}

func (q *querying) definitions(cmd *cobra.Command, c *client.Client) error {
	answer, err := c.Get(cmd.Context(), nil, "v1", "features")
	if err != nil {
		return told(err)
	}
	_, err = show(q, cmd, answer, (*tables).definitions)
	return err
}

// request returns the request for the flags, or a *command.UsageError.
func (a asked) request(names []string) (feature.Request, error) {
	if (len(names) > 0) != (len(a.users)+len(a.pins)+len(a.pairs) > 0) {
		return feature.Request{}, command.Usagef("want names of features and a --user, --pin or --pair; or none of them, to list the features")
	}
	req, err := a.entities()
	req.Features = names
	return req, err
}

// entities parses the entities and the time in the flags.
func (a asked) entities() (req feature.Request, err error) {
	if req.Users, err = parsed(a.users, schemas.ParseUserID); err != nil {
		return req, err
	}
	if req.Pins, err = parsed(a.pins, schemas.ParsePinID); err != nil {
		return req, err
	}
	if req.Pairs, err = parsed(a.pairs, parsePair); err != nil {
		return req, err
	}
	if a.at != "" {
		at, err := time.Parse(time.RFC3339, a.at)
		if err != nil {
			return req, command.Usagef("--at %q: want a time like 2026-11-20T10:00:00Z", a.at)
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
		return feature.UserPin{}, fmt.Errorf("pair %s: want USER|PIN", quote(text))
	}
	u, err := schemas.ParseUserID(user)
	if err != nil {
		return feature.UserPin{}, err
	}
	p, err := schemas.ParsePinID("pin:" + pin)
	return feature.UserPin{User: u, Pin: p}, err
}

// readyCommand is for health checks on machines without another HTTP client.
func (q *querying) readyCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "ready",
		Short:   "end with exit code 0 if a running server is ready, with 1 if it is not",
		Example: "  smartfeed query ready --http 127.0.0.1:8080",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := q.client(cmd)
			if err != nil {
				return err
			}
			answer, err := c.Get(cmd.Context(), nil, "readyz")
			if err != nil {
				return err
			}
			_, err = cmd.OutOrStdout().Write(answer)
			return err
		},
	}
}

func (q *querying) statusCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "status",
		Short:   "the state of every part of a running server",
		Example: "  smartfeed query status\n  smartfeed query status --json",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return getAndShow(q, cmd, nil, (*tables).status, "v1", "status")
		},
	}
}
