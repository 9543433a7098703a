// Package outside asks services of others over HTTP while an answer waits: sources of candidates and models of the
// content generator. Whatever such a service does, it costs an answer no more than its time-out, and leaves it half of
// the time that it has:
//
//   - a call has a deadline: its time-out, or half of what whoever asks has left, whichever is first
//   - an answer is JSON with status 200, at most MaxAnswerBytes, and at most as many values as the question can have as its
//     answer; redirects are not followed
//   - at most MaxCalls calls are under way, with answers of at most MaxHeldBytes; what comes above fails at once
//   - after Failures failures in a row the service is left alone for Rest; then one call tries it, and the others go on
//     failing at once until that one has come back well. An answer that is too late is a failure
//
// A question is POSTed as JSON. Where connections may lead to is decided by who makes them, see Dial; what an address has
// beside host and path is in no error. A Guard keeps functions of the own process to the same deadline and rest.
package outside

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
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/smartfeed/smartfeed/internal/bounds"
	"github.com/smartfeed/smartfeed/internal/jsonbound"
	"github.com/smartfeed/smartfeed/internal/secure"
)

// The bounds, see the package.
const (
	MaxAnswerBytes = 4 << 20
	MaxCalls       = 64
	MaxHeldBytes   = 64 << 20 // of one service; each value counts as valueBytes beside its text
	MaxTimeout     = 10 * time.Second
	Failures       = 5
	Rest           = 2 * time.Second

	// Fair is how much time a call must have had for it to be a failure that it was too late, unless that was its whole
	// time-out. A caller who comes with its own time nearly over says nothing about a service.
	Fair = 20 * time.Millisecond
)

// Reasons for not asking at all.
var (
	ErrResting = errors.New("left alone after failures")
	ErrBusy    = errors.New("too many calls or answers under way")
)

// Config is one service.
type Config struct {
	URL string `yaml:"url"` // http or https; "" for none

	// Timeout is how long an answer is waited for, 1ms to 10s. It is never longer than half of what is left of the time
	// that whoever asks has: of the 150 ms that a feed waits for a chunk by default (feed.generator_timeout) 75 ms.
	Timeout time.Duration `yaml:"timeout"`
}

// Validate reports every value that is out of its bounds.
func (c Config) Validate() error {
	errs := []error{bounds.Within("timeout", c.Timeout, time.Millisecond, MaxTimeout)}
	switch u, err := url.Parse(c.URL); {
	case secure.CheckURL(c.URL) != nil:
		errs = append(errs, fmt.Errorf("url: %w", secure.CheckURL(c.URL)))
	case err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https":
		errs = append(errs, fmt.Errorf("url %q: no http or https address", nameOf(c.URL)))
	}
	return errors.Join(errs...)
}

// Service is a service of others. It is safe for concurrent use.
type Service struct {
	url    string
	name   string // in errors
	guard  *Guard
	client *http.Client
	held   *semaphore.Weighted // bytes of answers
}

// Dial makes a connection, as that of net.Dialer does.
type Dial func(ctx context.Context, network, address string) (net.Conn, error)

// New returns a service; cfg must be valid, and a nil dial connects to wherever the address leads. Close it.
func New(cfg Config, dial Dial, now func() time.Time) *Service {
	transport := &http.Transport{
		DialContext: dial, MaxIdleConnsPerHost: MaxCalls, IdleConnTimeout: time.Minute, TLSHandshakeTimeout: cfg.Timeout,
	}
	guard := NewGuard(cfg.Timeout, now)
	guard.most = MaxCalls
	return &Service{url: cfg.URL, name: nameOf(cfg.URL), guard: guard, held: semaphore.NewWeighted(MaxHeldBytes), client: &http.Client{
		Transport:     transport,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

// Close gives the idle connections up.
func (s *Service) Close() { s.client.CloseIdleConnections() }

// Ask sends a question and reads the answer, which has at most so many values, see jsonbound.Check. It fails with an error that is ErrResting or ErrBusy without asking, with one
// that is context.DeadlineExceeded when the answer is too late, and with what went wrong otherwise; see Guard.Do for what
// counts as a failure of the service.
func (s *Service) Ask(ctx context.Context, question, answer any, values int) error {
	err := s.guard.Do(ctx, func(ctx context.Context) error { return s.ask(ctx, question, answer, values) })
	if err != nil {
		return fmt.Errorf("ask %s: %w", s.name, err)
	}
	return nil
}

// nameOf is an address without its query, which may hold a key.
func nameOf(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return "a service" // Validate refuses it
	}
	return (&url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path}).String()
}

func (s *Service) ask(ctx context.Context, question, answer any, values int) error {
	body, err := json.Marshal(question)
	if err != nil {
		return fmt.Errorf("encode question: %w", err)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.url, bytes.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	res, err := s.client.Do(req)
	if err != nil {
		var failed *url.Error // its text has the whole address
		if errors.As(err, &failed) {
			err = failed.Err
		}
		return err
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return fmt.Errorf("status %s", res.Status)
	}
	if err := s.decode(res.Body, answer, values); err != nil {
		return fmt.Errorf("read answer: %w", err)
	}
	return nil
}

// valueBytes is what a decoded value takes beside its text: a candidate without anything is the largest, with 88 bytes.
const valueBytes = 128

// decode reads an answer within the bounds of one and of all that are under way.
func (s *Service) decode(body io.Reader, answer any, values int) error {
	m := &metered{from: io.LimitReader(body, MaxAnswerBytes+1), held: s.held}
	defer m.release()
	text, err := io.ReadAll(m)
	if err != nil {
		return err
	}
	if len(text) > MaxAnswerBytes {
		return fmt.Errorf("more than %d bytes", MaxAnswerBytes)
	}
	if err := jsonbound.Check(text, values); err != nil {
		return err
	}
	if err := m.take(int64(jsonbound.Values(text)) * valueBytes); err != nil {
		return err
	}
	return json.Unmarshal(text, answer)
}

// metered takes what is read from it off held, until release.
type metered struct {
	from  io.Reader
	held  *semaphore.Weighted
	taken int64
}

// Read implements io.Reader. It fails with ErrBusy.
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
