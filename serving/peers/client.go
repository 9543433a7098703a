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
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"
	"golang.org/x/sync/errgroup"

	"github.com/smartfeed/smartfeed/internal/jsonbound"
	"github.com/smartfeed/smartfeed/internal/tracing"
	"github.com/smartfeed/smartfeed/schemas"
	"github.com/smartfeed/smartfeed/topics"
)

// Deps are the dependencies of a Client.
type Deps struct {
	Owners     map[string]Directory // owners of partitions, by group
	Processes  ProcessLister        // lists the processes
	Partitions int32                // number of partitions of each group
	Prove      Prove                // signs a call; nil: no authentication
	Check      func(string) error   // returns an error for addresses that must not be called; nil: all are permitted
	TLS        *tls.Config          // for calls over https; nil: over plain HTTP
}

// Prove adds to a request with a body the proof that it is from another process of the deployment, as auth.Peers.Sign does.
type Prove func(r *http.Request, body []byte) error

// Client is the content generator of all users, and returns the neighbors of all pins and interests, by calls to the owners
// of their partitions. It is safe for concurrent use. The caller must call Close.
type Client struct {
	deps      Deps
	owners    map[string]*owners // by group
	processes processes
	timeout   time.Duration // processTimeout
	http      *http.Client

	running  context.Context // of settlements
	stop     context.CancelFunc
	settling errgroup.Group
}

const (
	// maxSettling is how many settlements may be in flight. Further ones are dropped, and the generator settles them itself.
	maxSettling   = 256
	settleTimeout = 2 * time.Second

	// callTimeout limits a call whose caller has no deadline, such as an HTTP request. The request occupies one of the
	// server's slots. Without a limit, an owner that hangs, or a missing owner, would occupy it forever. A rebalance often
	// ends within this time.
	callTimeout = 2 * time.Second

	// lookUpEvery is the interval between two lookups of an owner that the group does not know yet.
	lookUpEvery = 10 * time.Millisecond

	idlePerPeer = 128 // idle connections: the usual number of calls in flight to one generator
)

// NewClient returns a Client. It does not connect yet.
func NewClient(deps Deps) *Client {
	transport := &http.Transport{
		DialContext:         (&net.Dialer{Timeout: time.Second}).DialContext, // short, because a peer may be down
		MaxIdleConnsPerHost: idlePerPeer,
		IdleConnTimeout:     time.Minute,
		TLSClientConfig:     deps.TLS,
	}
	c := &Client{
		deps: deps, owners: map[string]*owners{},
		processes: processes{lister: deps.Processes, timeout: listTimeout}, timeout: processTimeout,
		http: &http.Client{Transport: transport},
	}
	for group, directory := range deps.Owners {
		c.owners[group] = &owners{directory: directory}
	}
	c.running, c.stop = context.WithCancel(context.Background())
	c.settling.SetLimit(maxSettling)
	return c
}

// Close aborts the settlements in flight. No other call may be in flight.
func (c *Client) Close() {
	c.stop()
	_ = c.settling.Wait() // the generator settles the others itself
	c.http.CloseIdleConnections()
}

// Settle sends the outcome of a Served record to the generator. It does not block. If the outcome cannot be sent, the
// generator settles the record itself, later.
func (c *Client) Settle(user schemas.UserID, served string, o schemas.Outcome) {
	c.settling.TryGo(func() error {
		ctx, cancel := context.WithTimeout(c.running, settleTimeout)
		defer cancel()
		_, err := callSettle.send(ctx, c, c.rowsOf(topics.Pools, string(user)), settlement{user, served, o})
		return err
	})
}

// rows are the rows that a call reads: a group, the owner of the rows, and its partition.
type rows struct {
	group, owner string
	partition    int32
}

func (c *Client) rowsOf(group, owner string) rows {
	return rows{group, owner, topics.Partition(owner, c.deps.Partitions)}
}

// rowsIn returns the rows of a whole partition.
func rowsIn(group string, partition int32) rows {
	return rows{group, fmt.Sprintf("partition %d", partition), partition}
}

// send sends a call to the owner of the rows. While the called process is not the owner, it looks up the owner again until
// ctx ends, or for callTimeout if ctx has no deadline.
func (k call[Req, Resp]) send(ctx context.Context, c *Client, rows rows, request Req) (resp Resp, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("request %s of %s: %w", k, rows.owner, err)
		}
	}()
	if _, bounded := ctx.Deadline(); !bounded {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, callTimeout)
		defer cancel()
	}
	body, err := json.Marshal(request)
	if err != nil {
		return resp, err
	}
	var elsewhere error
	for {
		resp, err = k.once(ctx, c, rows, body)
		if !errors.Is(err, schemas.ErrNotOwner) {
			break
		}
		elsewhere = err
		select {
		case <-time.After(lookUpEvery):
			continue
		case <-ctx.Done():
		}
		break
	}
	if err != nil && elsewhere != nil && ctx.Err() != nil { // the time was spent on lookups, whatever was in flight at the end
		err = elsewhere
	}
	return resp, err
}

// once calls the last known owner. If that process is not the owner, or does not listen, the call was not processed, and the
// error is schemas.ErrNotOwner. After any error, the next call looks up the owner again: a process that hangs does not
// answer 421, and the group soon assigns another owner.
func (k call[Req, Resp]) once(ctx context.Context, c *Client, rows rows, body []byte) (resp Resp, err error) {
	owners := c.owners[rows.group]
	if owners == nil {
		return resp, fmt.Errorf("no directory of the group %q", rows.group)
	}
	address, err := owners.owner(ctx, rows.partition)
	if err != nil {
		return resp, err
	}
	answered, err := c.call(ctx, string(k), address, body)
	if err == nil {
		err = json.Unmarshal(answered, &resp)
	}
	if failed, ok := errors.AsType[*net.OpError](err); ok && failed.Op == "dial" {
		err = fmt.Errorf("%w: %w", schemas.ErrNotOwner, err)
	}
	if err != nil && !errors.Is(err, schemas.ErrUnknownFeed) {
		owners.forget(rows.partition, address)
	}
	return resp, err
}

// call sends a call to an address.
func (c *Client) call(ctx context.Context, call, address string, body []byte) ([]byte, error) {
	if c.deps.Check != nil {
		if err := c.deps.Check(address); err != nil {
			return nil, err
		}
	}
	ctx, span := tracing.Start(ctx, http.MethodPost+" "+Path+call, trace.SpanKindClient,
		attribute.String("http.request.method", http.MethodPost), attribute.String("url.template", Path+call),
		attribute.String("network.peer.address", address))
	scheme := "http://"
	if c.deps.TLS != nil {
		scheme = "https://"
	}
	answered, err := c.post(ctx, scheme+address+Path+call, body)
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
	if c.deps.Prove != nil {
		if err := c.deps.Prove(req, body); err != nil {
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
