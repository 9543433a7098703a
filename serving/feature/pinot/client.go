package pinot

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	startree "github.com/startreedata/pinot-client-go/pinot"

	"github.com/smartfeed/smartfeed/internal/jsonbound"
)

// ErrTooLarge is returned when an answer is larger than Config.MaxResponseBytes.
var ErrTooLarge = errors.New("answer is too large")

// ErrPartial is returned when not all servers responded, or none was queried: a query names keys, and the partition of each
// key has a consuming segment.
var ErrPartial = errors.New("not all servers answered")

// QueryError is an error that Pinot reports for a query. It never contains the SQL, which contains ids.
type QueryError struct {
	Code int // Pinot's code; 0: none
}

// Error returns the code as text.
func (e *QueryError) Error() string { return fmt.Sprintf("exception %d", e.Code) }

// Client queries brokers over HTTP, in turn. It is safe for concurrent use.
//
// A query is sent to a second broker if the first one cannot be reached, fails, or has not answered after half of the
// query's time. The first request is not canceled, because a query may be slow on every broker; the first answer wins.
// A broker that failed, or was silent for that long, is avoided for a second or until it answers. Then one query
// tries it. If a broker is silent, its queries are not sent to avoided brokers. Thus not every query is sent twice when all
// brokers are overloaded.
//
// Requests go through startreedata/pinot-client-go, which encodes queries and decodes answers. Client adds what it lacks:
//
//   - It takes no context, and reads answers of any length. Each request has a separate connection of that client, a small
//     struct, whose http.RoundTripper is a boundedTransport.
//   - It returns answers with exceptions, and those without some servers, as success; see judge.
//   - Its errors contain the SQL; see withoutSQL.
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
		IdleConnTimeout:     20 * time.Second,   // brokers close idle connections after 30 s
		DisableCompression:  true,               // answers are small, and a limit on bytes is then a limit on memory
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

// answer is the result of a query.
type answer struct {
	rows  [][]any   // a number is a json.Number, because a float64 would change long integers
	fresh time.Time // arrival of the newest record in the queried partitions, of the least fresh one; zero: unknown
}

// query runs a query. width is the expected number of columns.
func (c *Client) query(ctx context.Context, sql string, width int) (answer, error) {
	a, err := c.anyReply(ctx, sql).answer(width)
	if err != nil {
		err = fmt.Errorf("query pinot: %w", err)
	}
	return a, err
}

// reply is the outcome of querying one broker.
type reply struct {
	response *startree.BrokerResponse
	err      error
	retry    bool // another broker may answer
}

// answer returns the answer if the reply has one that is complete.
func (r reply) answer(width int) (answer, error) {
	if r.err != nil {
		return answer{}, r.err
	}
	return judge(r.response, width)
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
	bounded := &boundedTransport{ctx: ctx, next: c.http.Transport, most: c.maxBytes}
	over := *c.http
	over.Transport = bounded
	if deadline, ok := ctx.Deadline(); ok {
		over.Timeout = max(time.Until(deadline), time.Millisecond) // sent to the broker, which otherwise continues without a caller
	}
	connection, err := startree.NewFromBrokerListAndClient([]string{b.url}, &over)
	if err != nil {
		return reply{err: err}
	}
	response, err := connection.ExecuteSQL(TableName, sql)
	r := reply{response: response, err: withoutSQL(err, sql)}
	if ctx.Err() == nil { // a canceled query does not count against the broker
		_, unanswered := errors.AsType[*url.Error](err)
		r.retry = bounded.status >= http.StatusInternalServerError || unanswered && !errors.Is(err, ErrTooLarge)
		c.brokers.record(b, r.retry)
	}
	return r
}

// withoutSQL returns the first of err and its causes whose text does not contain the SQL.
func withoutSQL(err error, sql string) error {
	for err != nil && strings.Contains(err.Error(), sql) {
		err = cmp.Or(errors.Unwrap(err), errors.New("no cause without the SQL"))
	}
	return err
}

// boundedTransport is the http.RoundTripper of one query. It applies the query's context, and limits the answer.
type boundedTransport struct {
	ctx  context.Context
	next http.RoundTripper
	most int64 // bytes

	status int // of the response; 0: none
}

// RoundTrip implements http.RoundTripper. A 200 has a complete body, as readBounded returns it.
func (t *boundedTransport) RoundTrip(req *http.Request) (*http.Response, error) {
	// A copy without Cancel, which http.Client sets for its timeout: the query's context alone ends the request.
	out := &http.Request{Method: req.Method, URL: req.URL, Header: req.Header, Body: req.Body, GetBody: req.GetBody, ContentLength: req.ContentLength}
	out.Header["X-Idempotency-Key"] = nil // is not sent: a query on a connection that the broker has closed is sent again
	res, err := t.next.RoundTrip(out.WithContext(t.ctx))
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	t.status = res.StatusCode
	body, err := readBounded(res.Body, t.most)
	if err != nil && t.status == http.StatusOK {
		return nil, err
	}
	res.Status = fmt.Sprintf("%d %s", t.status, http.StatusText(t.status)) // the broker's text may contain the SQL
	res.Body = io.NopCloser(bytes.NewReader(body))
	return res, nil
}

// valueBytes is the minimum average size of a value in an answer. An answer of n bytes may therefore have n/8 values. A
// row has a time and ids, which are longer.
const valueBytes = 8

// readBounded reads JSON. If it is longer than most bytes, it returns the start and ErrTooLarge.
func readBounded(from io.Reader, most int64) (body []byte, err error) {
	body, err = io.ReadAll(io.LimitReader(from, most+1))
	if err == nil && int64(len(body)) > most {
		err = fmt.Errorf("%w: more than %d bytes", ErrTooLarge, most)
	}
	if err == nil {
		err = jsonbound.Check(body, int(most/valueBytes))
	}
	return body, err
}

// mostMillis is the end of the year 9999, the last year of a JSON time. For segments that are still empty, Pinot
// reports the greatest integer as their freshness.
const mostMillis = 253_402_300_799_999

// judge returns an answer only if the response is complete.
func judge(res *startree.BrokerResponse, width int) (answer, error) {
	if len(res.Exceptions) > 0 {
		return answer{}, &QueryError{Code: res.Exceptions[0].ErrorCode}
	}
	if res.NumServersResponded < res.NumServersQueried || res.NumServersQueried == 0 {
		return answer{}, fmt.Errorf("%w: %d of %d", ErrPartial, res.NumServersResponded, res.NumServersQueried)
	}
	if res.ResultTable == nil {
		return answer{}, errors.New("answer without a table")
	}
	a := answer{rows: res.ResultTable.Rows}
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
		calls.Go(func() {
			if _, err := c.send(ctx, b, "SELECT COUNT(*) FROM "+TableName).answer(1); err != nil {
				problems[i] = fmt.Errorf("broker %s: %w", b.url, err)
			}
		})
	}
	calls.Wait()
	failed = slices.DeleteFunc(problems, func(err error) bool { return err == nil })
	return len(c.brokers.all) - len(failed), failed
}
