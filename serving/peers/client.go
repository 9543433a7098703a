package peers

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"github.com/smartfeed/smartfeed/internal/jsonbound"
	"github.com/smartfeed/smartfeed/internal/tracing"
	"github.com/smartfeed/smartfeed/schemas"
	"github.com/smartfeed/smartfeed/topics"
)

// Deps are the dependencies of a Client.
type Deps struct {
	Pools      Directory             // owners of the pools of users
	Related    Directory             // owners of the neighbors of pins and interests
	Retries    Directory             // owners of the dead letters of topics
	Interests  Directory             // owners of terms, of users' interests, and of engagement
	Known      map[string]Directory  // owners of the rows of users, by group
	Everybody  Everybody             // lists the processes
	Partitions int32                 // number of partitions of each group
	Prove      Prove                 // signs a call; nil: no authentication
	Check      func(string) error    // returns an error for addresses that must not be called; nil: all are permitted
	TLS        *tls.Config           // for calls over https; nil: over plain HTTP
	Metrics    prometheus.Registerer // nil: none
}

// Prove adds to a request with a body the proof that it is from another process of the deployment, as auth.Peers.Sign does.
type Prove func(r *http.Request, body []byte) error

// Client is the content generator of all users, and returns the neighbors of all pins and interests, by calls to the owners
// of their partitions. It is safe for concurrent use. The caller must call Close.
type Client struct {
	partitions     int32
	pools, related owners
	retries        owners
	interests      owners
	known          map[string]*owners // by group
	everybody      everybody
	timeout        time.Duration // processTimeout
	http           *http.Client
	scheme         string // scheme of URLs, including "://"
	prove          Prove
	check          func(address string) error
	transport      *http.Transport
	asked          *prometheus.CounterVec // by call and outcome

	settling chan settlement
	stop     context.CancelFunc
	settlers sync.WaitGroup
}

const (
	// settlers is how many settlements are in flight, and settleQueue how many may be queued. Further ones are dropped, and
	// the generator settles them itself.
	settlers      = 4
	settleQueue   = 1024
	settleTimeout = 2 * time.Second

	// callTimeout limits a call whose caller has no deadline, such as an HTTP request. The request occupies one of the
	// server's places. Without a limit, an owner that hangs, or a missing owner, would occupy it forever. A rebalance often
	// ends within this time.
	callTimeout = 2 * time.Second

	// lookAgain is the interval between two lookups of an owner that the group does not know yet.
	lookAgain = 10 * time.Millisecond

	idlePerPeer = 128 // idle connections: the usual number of calls in flight to one generator
)

// NewClient returns a Client and registers its metrics. It does not connect yet.
func NewClient(deps Deps) (*Client, error) {
	transport := &http.Transport{
		DialContext:         (&net.Dialer{Timeout: time.Second}).DialContext, // short, because a peer may be down
		MaxIdleConnsPerHost: idlePerPeer,
		IdleConnTimeout:     time.Minute,
		TLSClientConfig:     deps.TLS,
	}
	scheme := "http://"
	if deps.TLS != nil {
		scheme = "https://"
	}
	c := &Client{
		scheme: scheme, prove: deps.Prove, check: deps.Check,
		partitions: deps.Partitions,
		pools:      owners{directory: deps.Pools},
		related:    owners{directory: deps.Related},
		retries:    owners{directory: deps.Retries},
		interests:  owners{directory: deps.Interests},
		known:      map[string]*owners{},
		everybody:  everybody{directory: deps.Everybody, timeout: everybodyTimeout},
		timeout:    processTimeout,
		transport:  transport,
		http:       &http.Client{Transport: transport},
		settling:   make(chan settlement, settleQueue),
		asked: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "smartfeed_peer_calls_total", Help: "Calls to processes that have what is asked for, by call and outcome.",
		}, []string{"call", "outcome"}),
	}
	for group, directory := range deps.Known {
		c.known[group] = &owners{directory: directory}
	}
	if deps.Metrics != nil {
		if err := deps.Metrics.Register(c.asked); err != nil {
			return nil, fmt.Errorf("peers: register metrics: %w", err)
		}
	}
	ctx, stop := context.WithCancel(context.Background())
	c.stop = stop
	for range settlers {
		c.settlers.Go(func() { c.settleAll(ctx) })
	}
	return c, nil
}

// Close drops the settlements that are not sent yet. No call may be in flight.
func (c *Client) Close() {
	c.stop()
	c.settlers.Wait()
	c.transport.CloseIdleConnections()
}

// Chunk requests a chunk from the generator that owns the user's pools, and returns its errors. It also returns an error
// that wraps schemas.ErrElsewhere if the pools have no owner until ctx ends, or for callTimeout if ctx has no deadline.
func (c *Client) Chunk(ctx context.Context, r schemas.ChunkRequest) (*schemas.Chunk, error) {
	return ask[*schemas.Chunk](ctx, c, callChunk, c.poolsOf(r.User), r)
}

// Settle sends the outcome of a Served record to the generator. It does not block. If the outcome cannot be sent, the
// generator settles the record itself, later.
func (c *Client) Settle(user schemas.UserID, served string, o schemas.Outcome) {
	select {
	case c.settling <- settlement{user, served, o}:
	default:
		c.count(callSettle, errors.New("too many"))
	}
}

// settleAll sends settlements until ctx ends.
func (c *Client) settleAll(ctx context.Context) {
	for {
		select {
		case s := <-c.settling:
			c.settle(ctx, s)
		case <-ctx.Done():
			return
		}
	}
}

func (c *Client) settle(ctx context.Context, s settlement) {
	ctx, cancel := context.WithTimeout(ctx, settleTimeout)
	defer cancel()
	// No caller waits for the result. The metrics count the outcome.
	_, _ = ask[struct{}](ctx, c, callSettle, c.poolsOf(s.User), s)
}

// Waiting returns the number of new pins that a visit could show.
func (c *Client) Waiting(ctx context.Context, user schemas.UserID) (int, error) {
	a, err := ask[waitingAnswer](ctx, c, callWaiting, c.poolsOf(user), waitingRequest{user})
	return a.Count, err
}

// Pool returns the best candidates of a user and source.
func (c *Client) Pool(ctx context.Context, user schemas.UserID, source schemas.Source, limit int) (*schemas.Pool, error) {
	return ask[*schemas.Pool](ctx, c, callPool, c.poolsOf(user), poolRequest{user, source, limit})
}

// Neighbours returns the strongest neighbors of a pin or an interest.
func (c *Client) Neighbours(ctx context.Context, of schemas.ID, most int) ([]schemas.RelatedItem, error) {
	rows := target{&c.related, string(of), topics.Partition(string(of), c.partitions)}
	return ask[[]schemas.RelatedItem](ctx, c, callRelated, rows, relatedRequest{of, most})
}

// target is the owner of the rows that a call reads, and the directory that finds its process.
type target struct {
	owners    *owners
	owner     string
	partition int32
}

func (c *Client) poolsOf(user schemas.UserID) target {
	return target{&c.pools, string(user), topics.Partition(string(user), c.partitions)}
}

// Why reports the state of a pin for a user. Its errors are those of Chunk.
func (c *Client) Why(ctx context.Context, r schemas.WhyRequest) (*schemas.Why, error) {
	return ask[*schemas.Why](ctx, c, callWhy, c.poolsOf(r.User), r)
}

// FeedState returns the state that a feed keeps for a user. Its errors are those of Chunk.
func (c *Client) FeedState(ctx context.Context, user schemas.UserID, feed string) (*schemas.FeedState, error) {
	return ask[*schemas.FeedState](ctx, c, callState, c.poolsOf(user), stateRequest{user, feed})
}

// ask sends a call to the owner of the rows. While the called process is not the owner, it looks up the owner again until
// ctx ends, or for callTimeout if ctx has no deadline.
func ask[Resp any](ctx context.Context, c *Client, call string, rows target, request any) (resp Resp, err error) {
	defer func() { c.count(call, err) }()
	if _, bounded := ctx.Deadline(); !bounded {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, callTimeout)
		defer cancel()
	}
	body, err := json.Marshal(request)
	if err != nil {
		return resp, fmt.Errorf("encode %s: %w", call, err)
	}
	var elsewhere error
	for {
		resp, err = once[Resp](ctx, c, call, rows, body)
		if !errors.Is(err, schemas.ErrElsewhere) {
			break
		}
		elsewhere = err
		select {
		case <-time.After(lookAgain):
			continue
		case <-ctx.Done():
		}
		break
	}
	if err != nil && elsewhere != nil && ctx.Err() != nil { // the time was spent on lookups, whatever was in flight at the end
		err = elsewhere
	}
	if err != nil {
		return resp, fmt.Errorf("ask for %s of %s: %w", call, rows.owner, err)
	}
	return resp, nil
}

// once calls the last known owner. If that process is not the owner, or does not listen, the call was not processed, and the
// error is schemas.ErrElsewhere. After any error, the next call looks up the owner again: a process that hangs does not
// answer 421, and the group soon assigns another owner.
func once[Resp any](ctx context.Context, c *Client, call string, rows target, body []byte) (resp Resp, err error) {
	address, err := rows.owners.owner(ctx, rows.partition)
	if err != nil {
		return resp, err
	}
	answered, err := c.call(ctx, call, address, body)
	if err == nil {
		err = json.Unmarshal(answered, &resp)
	}
	var dial *net.OpError
	if errors.As(err, &dial) && dial.Op == "dial" {
		err = fmt.Errorf("%w: %w", schemas.ErrElsewhere, err)
	}
	if err != nil && !errors.Is(err, schemas.ErrUnknownFeed) {
		rows.owners.forget(rows.partition, address)
	}
	return resp, err
}

// call sends a call to an address.
func (c *Client) call(ctx context.Context, call, address string, body []byte) ([]byte, error) {
	if c.check != nil {
		if err := c.check(address); err != nil {
			return nil, err
		}
	}
	ctx, span := tracing.Start(ctx, http.MethodPost+" "+Path+call, trace.SpanKindClient,
		attribute.String("http.request.method", http.MethodPost), attribute.String("url.template", Path+call),
		attribute.String("network.peer.address", address))
	answered, err := c.post(ctx, c.scheme+address+Path+call, body)
	tracing.End(span, err)
	return answered, err
}

func (c *Client) post(ctx context.Context, url string, body []byte) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	// Go repeats a request when a kept connection turns out to be closed. Without GetBody, it does not repeat a request of
	// which bytes were sent.
	req.GetBody = nil
	if c.prove != nil {
		if err := c.prove(req, body); err != nil {
			return nil, err
		}
	}
	if deadline, ok := ctx.Deadline(); ok {
		req.Header.Set(waitsFor, time.Until(deadline).String())
	}
	if value := tracing.Value(trace.SpanContextFromContext(ctx)); value != nil {
		req.Header.Set(tracing.Header, string(value))
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	trace.SpanFromContext(ctx).SetAttributes(attribute.Int("http.response.status_code", resp.StatusCode))
	if resp.StatusCode != http.StatusOK {
		return nil, errorOf(resp)
	}
	answered, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer+1))
	if len(answered) > maxAnswer {
		return nil, fmt.Errorf("answer of more than %d bytes", maxAnswer)
	}
	if err == nil {
		err = jsonbound.Check(answered, maxValues)
	}
	return answered, err
}

func (c *Client) count(call string, err error) {
	outcome := "answered"
	switch {
	case errors.Is(err, schemas.ErrElsewhere):
		outcome = "elsewhere"
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		outcome = "late"
	case err != nil && !errors.Is(err, schemas.ErrUnknownFeed):
		outcome = "failed"
	}
	c.asked.WithLabelValues(call, outcome).Inc()
}
