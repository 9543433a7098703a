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

// ErrTooLarge is returned when an answer is larger than Config.MaxResponseBytes.
var ErrTooLarge = errors.New("answer is too large")

// ErrPartial is returned when not all servers responded.
var ErrPartial = errors.New("not all servers answered")

// QueryError is an error that Pinot reports for a query. It never contains the SQL, which contains ids.
type QueryError struct {
	Code int // Pinot's code; 0: none
}

// Error returns the code as text.
func (e *QueryError) Error() string { return fmt.Sprintf("exception %d", e.Code) }

// Client queries brokers over their HTTP interface, in turn. It is safe for concurrent use.
//
// A query is sent to a second broker if the first one cannot be reached, fails, or has not answered after half of the
// query's time. The first request is not canceled, because a query may be slow on every broker; the first answer wins.
// A broker that failed, or was silent for that long, is avoided for a second or until it answers. Then one query
// tries it. If a broker is silent, its queries are not sent to avoided brokers. Thus not every query is sent twice when all
// brokers are overloaded.
//
// There is another Go client, startreedata/pinot-client-go. It sends the same request, but takes no context, does not
// limit the length of answers, returns exceptions as answers, and logs the SQL of a failed query, including ids, to a
// global logger. Its later releases add dependencies on gRPC, Arrow and an ORM.
type Client struct {
	brokers   brokers
	maxBytes  int64
	transport *http.Transport
	http      *http.Client
}

// NewClient returns a client. cfg must be valid and name brokers. It returns an error if a certificate or secret file
// cannot be read. The caller must call Close.
func NewClient(cfg Config) (*Client, error) {
	transport := &http.Transport{
		MaxConnsPerHost:     cfg.MaxConnections,
		MaxIdleConnsPerHost: cfg.MaxConnections, // otherwise all but two are closed after each burst
		IdleConnTimeout:     time.Minute,
		DisableCompression:  true, // answers are small, and a limit on bytes is then a limit on memory
	}
	over, err := cfg.Client.Client(transport)
	if err != nil {
		return nil, fmt.Errorf("pinot.client: %w", err)
	}
	c := &Client{brokers: brokers{now: time.Now}, maxBytes: int64(cfg.MaxResponseBytes), transport: transport, http: over}
	for _, b := range cfg.Brokers {
		url, _ := address(b) // checked by Validate
		c.brokers.all = append(c.brokers.all, &endpoint{url: url})
	}
	return c, nil
}

// Close closes idle connections.
func (c *Client) Close() { c.transport.CloseIdleConnections() }

// answer is the decoded result of a query.
type answer struct {
	rows     [][]any
	fresh    time.Time // arrival of the newest action in the queried partitions, of the least fresh one; zero: unknown
	capped   bool      // Pinot reached its limit of groups
	complete int       // with ErrTooLarge: complete rows within Config.MaxResponseBytes; -1: there is no table
}

// query runs a query. width is the expected number of columns.
func (c *Client) query(ctx context.Context, sql string, width int) (answer, error) {
	body, err := c.post(ctx, sql)
	if errors.Is(err, ErrTooLarge) {
		return answer{complete: completeRows(body)}, fmt.Errorf("query pinot: %w", err)
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

// valueBytes is the minimum average size of a value in an answer. An answer of n bytes may therefore have n/8 values. A
// row has a time and ids, which are longer.
const valueBytes = 8

// read decodes the body of a 200.
func read(body []byte, width int) (answer, error) {
	var res response
	dec := json.NewDecoder(bytes.NewReader(body))
	dec.UseNumber() // a float64 would change long integers
	if err := dec.Decode(&res); err != nil {
		return answer{}, fmt.Errorf("read answer: %w", err)
	}
	return judge(res, width)
}

// completeRows counts the complete rows at the start of a truncated answer. It returns -1 if the rows do not start there.
// It parses only brackets and quotes, because a truncated JSON text cannot be decoded.
func completeRows(beginning []byte) int {
	_, table, found := bytes.Cut(beginning, []byte(`"rows"`))
	if !found {
		return -1
	}
	complete, depth, quoted := 0, 0, false
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
			if depth--; depth == 0 { // the remainder is not part of a row
				return complete
			}
			if depth == 1 {
				complete++
			}
		}
	}
	return complete
}

// post sends a query and returns the body of a 200, or its start with ErrTooLarge.
func (c *Client) post(ctx context.Context, sql string) ([]byte, error) {
	r := c.anyReply(ctx, sql)
	return r.body, r.err
}

// reply is the outcome of querying one broker.
type reply struct {
	body  []byte // of a 200; with ErrTooLarge its start
	err   error
	retry bool // another broker may answer
}

// anyReply queries a broker, and another one if it does not answer; see Client.
func (c *Client) anyReply(ctx context.Context, sql string) reply {
	var calls sync.WaitGroup
	defer calls.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	late := time.NewTimer(half(ctx))
	defer late.Stop()

	replies := make(chan reply, 2)
	send := func(b *endpoint) { calls.Go(func() { replies <- c.send(ctx, b, sql) }) }
	first, running, failed := c.brokers.first(), 1, error(nil)
	send(first)
	for other := (*endpoint)(nil); running > 0; {
		select {
		case <-late.C:
			c.brokers.record(first, true) // until it answers
		case r := <-replies:
			if !r.retry {
				return r
			}
			running, failed = running-1, also(failed, r.err)
		}
		if other == nil {
			if other = c.brokers.other(first, failed != nil); other != nil {
				running++
				send(other)
			}
		}
	}
	return reply{err: failed}
}

// also joins the errors of two brokers on one line.
func also(first, second error) error {
	if first == nil {
		return second
	}
	return fmt.Errorf("%w; %w", first, second)
}

// half returns half of the remaining time of ctx, or a second if ctx has no deadline.
func half(ctx context.Context) time.Duration {
	if deadline, ok := ctx.Deadline(); ok {
		return time.Until(deadline) / 2
	}
	return time.Second
}

// send sends a query to one broker.
func (c *Client) send(ctx context.Context, b *endpoint, sql string) reply {
	query := map[string]string{"sql": sql}
	if deadline, ok := ctx.Deadline(); ok {
		query["queryOptions"] = fmt.Sprintf("timeoutMs=%d", max(time.Until(deadline).Milliseconds(), 1)) // otherwise it continues without a caller
	}
	text, err := json.Marshal(query)
	if err != nil {
		return reply{err: err}
	}
	status, body, err := exchange(ctx, c.http, http.MethodPost, b.url+"/query/sql", text, c.maxBytes)
	r := reply{body: body, err: err}
	if status != 0 && status != http.StatusOK {
		r.err = fmt.Errorf("status %d %s", status, http.StatusText(status)) // without the body, which may contain the SQL
	}
	if ctx.Err() == nil { // a canceled query does not count against the broker
		r.retry = status >= http.StatusInternalServerError || err != nil && !errors.Is(err, ErrTooLarge)
		c.brokers.record(b, r.retry)
	}
	return r
}

// exchange sends JSON and returns the response. If the body is longer than most bytes, it returns the start and
// ErrTooLarge.
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

// response is the part of a broker's response that matters here.
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

// mostMillis is the end of the year 9999, the last year of a JSON time. For segments that are still empty, Pinot
// reports the greatest integer as their freshness.
const mostMillis = 253_402_300_799_999

// judge returns an answer only if the response is complete.
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

// Try queries the table on every broker, for half of the remaining time. It returns the number of brokers that answer,
// and the errors of the others.
func (c *Client) Try(ctx context.Context) (healthy int, failed []error) {
	ctx, cancel := context.WithTimeout(ctx, half(ctx))
	defer cancel()
	problems := make([]error, len(c.brokers.all))
	var calls sync.WaitGroup
	for i, b := range c.brokers.all {
		calls.Go(func() { problems[i] = c.try(ctx, b) })
	}
	calls.Wait()
	failed = slices.DeleteFunc(problems, func(err error) bool { return err == nil })
	return len(c.brokers.all) - len(failed), failed
}

func (c *Client) try(ctx context.Context, b *endpoint) error {
	r := c.send(ctx, b, "SELECT COUNT(*) FROM "+TableName)
	if r.err == nil {
		_, r.err = read(r.body, 1)
	}
	if r.err != nil {
		return fmt.Errorf("broker %s: %w", b.url, r.err)
	}
	return nil
}
