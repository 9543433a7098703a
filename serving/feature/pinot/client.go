package pinot

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync/atomic"
	"time"
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

// Client asks brokers over their HTTP interface. It is safe for concurrent use.
//
// There is a Go client of the Pinot project's friends, startreedata/pinot-client-go. What it does is the one request
// below; but it takes no context, reads answers whatever their length, takes exceptions for an answer, and writes the SQL
// of a failed query, ids included, to a logger that is global. Its later releases bring gRPC, Arrow and an ORM along.
type Client struct {
	brokers   []string
	next      atomic.Uint64 // broker
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
	c := &Client{maxBytes: cfg.MaxBytes, transport: transport, http: over}
	for _, b := range cfg.Brokers {
		url, _ := address(b) // Validate has seen it
		c.brokers = append(c.brokers, url)
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
}

// query asks one broker, each in its turn. width is how many columns each row must have.
func (c *Client) query(ctx context.Context, sql string, width int) (answer, error) {
	body, err := c.post(ctx, sql)
	if err != nil {
		return answer{}, fmt.Errorf("query pinot: %w", err)
	}
	var res response
	dec := json.NewDecoder(bytes.NewReader(body))
	dec.UseNumber() // a float64 would change long integers
	if err := dec.Decode(&res); err != nil {
		return answer{}, fmt.Errorf("query pinot: read answer: %w", err)
	}
	a, err := judge(res, width)
	if err != nil {
		return answer{}, fmt.Errorf("query pinot: %w", err)
	}
	return a, nil
}

// post sends a query and returns the body of a 200.
func (c *Client) post(ctx context.Context, sql string) ([]byte, error) {
	query := map[string]string{"sql": sql}
	if deadline, ok := ctx.Deadline(); ok {
		query["queryOptions"] = fmt.Sprintf("timeoutMs=%d", max(time.Until(deadline).Milliseconds(), 1)) // or it goes on for nobody
	}
	text, err := json.Marshal(query)
	if err != nil {
		return nil, err
	}
	broker := c.brokers[c.next.Add(1)%uint64(len(c.brokers))]
	status, body, err := exchange(ctx, c.http, http.MethodPost, broker+"/query/sql", text, c.maxBytes)
	if err == nil && status != http.StatusOK {
		err = fmt.Errorf("status %d %s", status, http.StatusText(status)) // not its text, which may hold the SQL
	}
	return body, err
}

// exchange sends JSON and returns the answer, or ErrTooLarge if that is above most bytes.
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

// Try asks one broker, each in its turn, for the table, and fails when that cannot be queried.
func (c *Client) Try(ctx context.Context) error {
	_, err := c.query(ctx, "SELECT COUNT(*) FROM "+TableName, 1)
	return err
}
