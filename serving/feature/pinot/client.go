package pinot

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/smartfeed/smartfeed/internal/jsonbound"
)

// ErrTooLarge says that an answer is above Config.MaxBytes.
var ErrTooLarge = errors.New("answer is too large")

// ErrPartial says that not all servers responded.
var ErrPartial = errors.New("answer is of a part of the servers")

// QueryError is what Pinot says is wrong with a query. It never holds the SQL, which holds ids.
type QueryError struct {
	Code int // Pinot's; 0: none
}

// Error names the code.
func (e *QueryError) Error() string { return fmt.Sprintf("exception %d", e.Code) }

// Client asks brokers over their HTTP interface, each in its turn. It is safe for concurrent use.
//
// A query goes to a second broker when the first cannot be reached, fails, or has not answered when half of the query's
// time is over; what the first is still at is not given up for that, because a query may be slow wherever it is asked, and
// whoever answers first answers. A broker that failed, or that is silent for so long, is passed over for a second, or until
// it answers; then one query tries it. One that is passed over is not asked because another is silent: so brokers that all
// have too much to do are not asked everything twice.
//
// There is a Go client of the Pinot project's friends, startreedata/pinot-client-go. What it does is the one request
// below; but it takes no context, reads answers whatever their length, takes exceptions for an answer, and writes the SQL
// of a failed query, ids included, to a logger that is global. Its later releases bring gRPC, Arrow and an ORM along.
type Client struct {
	brokers   brokers
	maxBytes  int64
	transport *http.Transport
	http      *http.Client
}

// NewClient makes a client; cfg must be valid and name brokers. It fails when a file of certificates or of a secret cannot
// be read. Close it.
func NewClient(cfg Config) (*Client, error) {
	transport := &http.Transport{
		MaxConnsPerHost:     cfg.MaxConns,
		MaxIdleConnsPerHost: cfg.MaxConns, // else all but two are closed after each burst
		IdleConnTimeout:     time.Minute,
		DisableCompression:  true, // answers are small, and a bound on bytes is one on memory
	}
	over, err := cfg.Client.Client(transport)
	if err != nil {
		return nil, fmt.Errorf("pinot.client: %w", err)
	}
	c := &Client{brokers: brokers{now: time.Now}, maxBytes: cfg.MaxBytes, transport: transport, http: over}
	for _, b := range cfg.Brokers {
		url, _ := address(b) // Validate has seen it
		c.brokers.all = append(c.brokers.all, &endpoint{url: url})
	}
	return c, nil
}

// Close ends idle connections.
func (c *Client) Close() { c.transport.CloseIdleConnections() }

// answer is what a query brought.
type answer struct {
	rows   [][]any
	fresh  time.Time // when the newest action arrived of the partitions that were asked, of the least fresh; zero: not known
	capped bool      // Pinot gave up counting groups
	whole  int       // with ErrTooLarge: how many rows are within Config.MaxBytes; -1: there is no table
}

// query asks for rows. width is how many columns each must have.
func (c *Client) query(ctx context.Context, sql string, width int) (answer, error) {
	body, err := c.post(ctx, sql)
	if errors.Is(err, ErrTooLarge) {
		return answer{whole: wholeRows(body)}, fmt.Errorf("query pinot: %w", err)
	}
	if err != nil {
		return answer{}, fmt.Errorf("query pinot: %w", err)
	}
	a, err := read(body, width)
	if err != nil {
		return answer{}, fmt.Errorf("query pinot: %w", err)
	}
	return a, nil
}

// valueBytes is the least that the values of an answer take on average: an answer that may have so many bytes may have an eighth
// as many values. A row has a time and ids, which are longer.
const valueBytes = 8

// read reads the body of a 200.
func read(body []byte, width int) (answer, error) {
	var res response
	dec := json.NewDecoder(bytes.NewReader(body))
	dec.UseNumber() // a float64 would change long integers
	if err := dec.Decode(&res); err != nil {
		return answer{}, fmt.Errorf("read answer: %w", err)
	}
	return judge(res, width)
}

// wholeRows counts the rows in the beginning of an answer, -1 if they do not begin there. It looks at brackets and quotes
// alone, since the beginning of a JSON text is none.
func wholeRows(beginning []byte) int {
	_, table, found := bytes.Cut(beginning, []byte(`"rows"`))
	if !found {
		return -1
	}
	whole, depth, quoted := 0, 0, false
	for i := 0; i < len(table); i++ {
		switch c := table[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '[':
			depth++
		case c == ']':
			if depth--; depth == 0 { // what follows is of no row
				return whole
			}
			if depth == 1 {
				whole++
			}
		}
	}
	return whole
}

// post sends a query and returns the body of a 200, with ErrTooLarge its beginning.
func (c *Client) post(ctx context.Context, sql string) ([]byte, error) {
	r := c.anyReply(ctx, sql)
	return r.body, r.err
}

// reply is what came of asking one broker.
type reply struct {
	body []byte // of a 200; with ErrTooLarge its beginning
	err  error
	away bool // another broker may answer
}

// anyReply asks a broker, and another one when that does not answer, see Client.
func (c *Client) anyReply(ctx context.Context, sql string) reply {
	var asked sync.WaitGroup
	defer asked.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	late := time.NewTimer(half(ctx))
	defer late.Stop()

	replies := make(chan reply, 2)
	ask := func(b *endpoint) { asked.Go(func() { replies <- c.ask(ctx, b, sql) }) }
	first, under, failed := c.brokers.first(), 1, error(nil)
	ask(first)
	for other := (*endpoint)(nil); under > 0; {
		select {
		case <-late.C:
			c.brokers.went(first, true) // until it answers
		case r := <-replies:
			if !r.away {
				return r
			}
			under, failed = under-1, also(failed, r.err)
		}
		if other == nil {
			if other = c.brokers.other(first, failed != nil); other != nil {
				under++
				ask(other)
			}
		}
	}
	return reply{err: failed}
}

// also is what two brokers said, on one line.
func also(first, second error) error {
	if first == nil {
		return second
	}
	return fmt.Errorf("%w; %w", first, second)
}

// half is half of the time that there is, a second where that has no end.
func half(ctx context.Context) time.Duration {
	if deadline, ok := ctx.Deadline(); ok {
		return time.Until(deadline) / 2
	}
	return time.Second
}

// ask sends a query to one broker.
func (c *Client) ask(ctx context.Context, b *endpoint, sql string) reply {
	query := map[string]string{"sql": sql}
	if deadline, ok := ctx.Deadline(); ok {
		query["queryOptions"] = fmt.Sprintf("timeoutMs=%d", max(time.Until(deadline).Milliseconds(), 1)) // or it goes on for nobody
	}
	text, err := json.Marshal(query)
	if err != nil {
		return reply{err: err}
	}
	status, body, err := exchange(ctx, c.http, http.MethodPost, b.url+"/query/sql", text, c.maxBytes)
	r := reply{body: body, err: err}
	if status != 0 && status != http.StatusOK {
		r.err = fmt.Errorf("status %d %s", status, http.StatusText(status)) // not its text, which may hold the SQL
	}
	if ctx.Err() == nil { // else it says nothing of the broker
		r.away = status >= http.StatusInternalServerError || err != nil && !errors.Is(err, ErrTooLarge)
		c.brokers.went(b, r.away)
	}
	return r
}

// exchange sends JSON and returns the answer, or its beginning with ErrTooLarge if that is above most bytes.
func exchange(ctx context.Context, over *http.Client, method, url string, text []byte, most int64) (status int, body []byte, err error) {
	req, err := http.NewRequestWithContext(ctx, method, url, bytes.NewReader(text))
	if err != nil {
		return 0, nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	res, err := over.Do(req)
	if err != nil {
		return 0, nil, err
	}
	defer res.Body.Close()
	body, err = io.ReadAll(io.LimitReader(res.Body, most+1))
	if err == nil && int64(len(body)) > most {
		err = fmt.Errorf("%w: more than %d bytes", ErrTooLarge, most)
	}
	if err == nil {
		err = jsonbound.Check(body, int(most/valueBytes))
	}
	return res.StatusCode, body, err
}

// response is a broker's answer, as far as it matters.
type response struct {
	ResultTable *struct {
		Rows [][]any `json:"rows"`
	} `json:"resultTable"`
	Exceptions []struct {
		ErrorCode int `json:"errorCode"`
	} `json:"exceptions"`
	NumServersQueried           int   `json:"numServersQueried"`
	NumServersResponded         int   `json:"numServersResponded"`
	NumGroupsLimitReached       bool  `json:"numGroupsLimitReached"`
	MinConsumingFreshnessTimeMs int64 `json:"minConsumingFreshnessTimeMs"`
}

// mostMillis is the end of the year 9999, the last that JSON has times of. Of segments that are empty yet Pinot says that
// they are as fresh as the greatest number there is.
const mostMillis = 253_402_300_799_999

// judge takes an answer for one only if it is whole.
func judge(res response, width int) (answer, error) {
	if len(res.Exceptions) > 0 {
		return answer{}, &QueryError{Code: res.Exceptions[0].ErrorCode}
	}
	if res.NumServersResponded < res.NumServersQueried {
		return answer{}, fmt.Errorf("%w: %d of %d", ErrPartial, res.NumServersResponded, res.NumServersQueried)
	}
	if res.ResultTable == nil {
		if res.NumServersQueried == 0 { // every segment was pruned
			return answer{}, nil
		}
		return answer{}, errors.New("answer without a table")
	}
	a := answer{rows: res.ResultTable.Rows, capped: res.NumGroupsLimitReached}
	for _, r := range a.rows {
		if len(r) != width {
			return answer{}, fmt.Errorf("row of %d columns, want %d", len(r), width)
		}
	}
	if ms := res.MinConsumingFreshnessTimeMs; ms > 0 && ms <= mostMillis {
		a.fresh = time.UnixMilli(ms)
	}
	return a, nil
}

// Try asks every broker for the table, for half of the time that there is. It returns how many can answer, and why the
// others cannot.
func (c *Client) Try(ctx context.Context) (well int, away []error) {
	ctx, cancel := context.WithTimeout(ctx, half(ctx))
	defer cancel()
	problems := make([]error, len(c.brokers.all))
	var asked sync.WaitGroup
	for i, b := range c.brokers.all {
		asked.Go(func() { problems[i] = c.try(ctx, b) })
	}
	asked.Wait()
	away = slices.DeleteFunc(problems, func(err error) bool { return err == nil })
	return len(c.brokers.all) - len(away), away
}

func (c *Client) try(ctx context.Context, b *endpoint) error {
	r := c.ask(ctx, b, "SELECT COUNT(*) FROM "+TableName)
	if r.err == nil {
		_, r.err = read(r.body, 1)
	}
	if r.err != nil {
		return fmt.Errorf("broker %s: %w", b.url, r.err)
	}
	return nil
}
