// Package external calls external HTTP services while a client waits for a response: candidate sources and models of the
// content generator. It limits the cost of a slow or failing service:
//
//   - A call has a deadline: its timeout, or half of the caller's remaining time, whichever is shorter.
//   - A response must be JSON, or JSON and tensors, with status 200, of at most MaxResponseBytes. It has at most as many values as the caller
//     expects. Redirects are not followed.
//   - At most MaxCalls calls are in flight, and their responses take at most MaxHeldBytes. Calls beyond that fail immediately.
//   - After Failures failures in a row, the circuit breaker opens for OpenFor and calls fail immediately. Then it is half-open:
//     one call tests the service, and the others fail until that call succeeds. A late response is a failure.
//
// Requests are JSON, sent by POST. The caller decides which addresses may be connected to, see Dial. Errors contain only the
// host and path of a URL. A Guard applies the same deadline and circuit breaker to functions of this process.
package external

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/smartfeed/smartfeed/internal/jsonbound"
	"github.com/smartfeed/smartfeed/internal/secure"
	"github.com/smartfeed/smartfeed/internal/settings"
	"github.com/smartfeed/smartfeed/internal/tensors"
)

// Limits of a call and of a service, see the package comment.
const (
	MaxResponseBytes = 4 << 20
	MaxCalls         = 64
	MaxHeldBytes     = 64 << 20 // per service; each decoded value counts as its text plus valueBytes
	MaxTimeout       = 10 * time.Second
	Failures         = 5
	OpenFor          = 2 * time.Second

	// Fair is the least time that a call must have had for a late response to count as a failure. A shorter configured timeout
	// replaces it. A late response to a caller whose own deadline was near does not show that the service is slow.
	Fair = 20 * time.Millisecond
)

// ErrOpen is returned while the circuit breaker is open. ErrBusy is returned when MaxCalls calls are in flight, or when the
// responses in flight exceed MaxHeldBytes.
var (
	ErrOpen = errors.New("circuit breaker is open")
	ErrBusy = errors.New("too many calls or responses in flight")
)

// Config configures one service.
type Config struct {
	URL string `yaml:"url" help:"http or https URL; empty: none"`

	// A call waits for at most half of the caller's remaining time: 75 ms if a feed waits 150 ms for a chunk, which is the
	// default of feed.generator_timeout.
	Timeout time.Duration `yaml:"timeout" range:"1ms..10s" help:"timeout of a call"`
}

// Validate reports every value that is out of bounds.
func (c Config) Validate() error {
	errs := []error{settings.Validate(c)}
	switch u, err := url.Parse(c.URL); {
	case secure.CheckURL(c.URL) != nil:
		errs = append(errs, fmt.Errorf("url: %w", secure.CheckURL(c.URL)))
	case err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https":
		errs = append(errs, fmt.Errorf("url: %q: want an http or https address", nameOf(c.URL)))
	}
	return errors.Join(errs...)
}

// Service is a client of an external service. It is safe for concurrent use.
type Service struct {
	url    string
	name   string // for errors
	guard  *Guard
	client *http.Client
	calls  *semaphore.Weighted // limits the calls in flight
	held   *semaphore.Weighted // limits the bytes of responses
}

// Dial opens a connection, like net.Dialer.DialContext.
type Dial func(ctx context.Context, network, address string) (net.Conn, error)

// New returns a client of a service. cfg must be valid. A nil dial connects to any address. Call Close after use.
func New(cfg Config, dial Dial) *Service {
	transport := &http.Transport{
		DialContext: dial, MaxIdleConnsPerHost: MaxCalls, IdleConnTimeout: time.Minute, TLSHandshakeTimeout: cfg.Timeout,
	}
	return &Service{
		url: cfg.URL, name: nameOf(cfg.URL), guard: NewGuard(cfg.Timeout),
		calls: semaphore.NewWeighted(MaxCalls), held: semaphore.NewWeighted(MaxHeldBytes),
		client: &http.Client{
			Transport:     transport,
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
	}
}

// Close closes the idle connections.
func (s *Service) Close() { s.client.CloseIdleConnections() }

// Call sends request and decodes the response into response. The response may have at most values values, see
// jsonbound.Check.
//
// The error wraps ErrOpen or ErrBusy if Call rejects the call or the response, and context.DeadlineExceeded if the response is
// late. Otherwise, it wraps the cause. Guard.Do describes which calls count as a failure of the service.
func (s *Service) Call(ctx context.Context, request, response any, values int) error {
	return s.CallTensors(ctx, Body{JSON: request}, &Body{JSON: response}, values, func() error { return nil })
}

// Body is the body of a request or of a response: a value in JSON, and the bytes of tensors after it. With tensors, the
// header tensors.Header has the length of the JSON, as the binary tensor data extension of the Open Inference Protocol
// defines it: https://kserve.github.io/website/docs/concepts/architecture/data-plane/v2-protocol.
type Body struct {
	JSON    any
	Tensors []byte // nil: none
}

// CallTensors is Call with tensors. check is called with the decoded response. Its error is a failure of the service.
func (s *Service) CallTensors(ctx context.Context, request Body, response *Body, values int, check func() error) error {
	if !s.calls.TryAcquire(1) {
		return fmt.Errorf("call %s: %w", s.name, ErrBusy)
	}
	defer s.calls.Release(1)
	err := s.guard.Do(ctx, func(ctx context.Context) error {
		if err := s.post(ctx, request, response, values); err != nil {
			return err
		}
		return check()
	})
	if err != nil {
		return fmt.Errorf("call %s: %w", s.name, err)
	}
	return nil
}

// nameOf returns an address without its query and credentials, which may be secret.
func nameOf(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return "a service" // Validate rejects it
	}
	return (&url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path}).String()
}

func (s *Service) post(ctx context.Context, request Body, response *Body, values int) error {
	text, err := json.Marshal(request.JSON)
	if err != nil {
		return fmt.Errorf("encode request: %w", err)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.url, bytes.NewReader(slices.Concat(text, request.Tensors)))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	if request.Tensors != nil {
		req.Header.Set("Content-Type", "application/octet-stream")
		req.Header.Set(tensors.Header, strconv.Itoa(len(text)))
	}
	res, err := s.client.Do(req)
	if err != nil {
		if failed, ok := errors.AsType[*url.Error](err); ok { // its text contains the whole URL
			err = failed.Err
		}
		return err
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return fmt.Errorf("status %s", res.Status)
	}
	if err := s.decode(res, response, values); err != nil {
		return fmt.Errorf("read response: %w", err)
	}
	return nil
}

// valueBytes is the memory of a decoded value beyond its text. The largest value, a candidate without fields, takes 88
// bytes.
const valueBytes = 128

// decode reads a response. It enforces the limits of one response and of all responses in flight.
func (s *Service) decode(res *http.Response, response *Body, values int) error {
	m := &metered{from: io.LimitReader(res.Body, MaxResponseBytes+1), held: s.held}
	defer m.release()
	text, err := io.ReadAll(m)
	if err != nil {
		return err
	}
	if len(text) > MaxResponseBytes {
		return fmt.Errorf("response exceeds %d bytes", MaxResponseBytes)
	}
	if length := res.Header.Get(tensors.Header); length != "" {
		n, err := strconv.Atoi(length)
		if err != nil || n < 0 || n > len(text) {
			return fmt.Errorf("%s: %q: want 0 to %d, the length of the body", tensors.Header, length, len(text))
		}
		text, response.Tensors = text[:n], text[n:]
	}
	if err := jsonbound.Check(text, values); err != nil {
		return err
	}
	if err := m.take(int64(jsonbound.Values(text)) * valueBytes); err != nil {
		return err
	}
	return json.Unmarshal(text, response.JSON)
}

// metered is a reader that acquires from held each byte that it reads, until release is called.
type metered struct {
	from  io.Reader
	held  *semaphore.Weighted
	taken int64
}

// Read implements io.Reader. It returns ErrBusy if held is exhausted.
func (m *metered) Read(p []byte) (int, error) {
	n, err := m.from.Read(p)
	if busy := m.take(int64(n)); busy != nil {
		return 0, busy
	}
	return n, err
}

func (m *metered) take(n int64) error {
	if !m.held.TryAcquire(n) {
		return ErrBusy
	}
	m.taken += n
	return nil
}

func (m *metered) release() { m.held.Release(m.taken) }
