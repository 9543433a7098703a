// Package client calls a server of this product over HTTP, as /v1/openapi.json describes it.
//
//	c, err := client.New(client.Config{Address: "https://feeds.example", Token: token})
//	page, err := c.Visit(ctx, "user:ada", client.VisitOptions{Limit: 25})
//	for err == nil && page.Next != nil {
//		page, err = c.Older(ctx, "user:ada", *page.Next, 25)
//	}
//
// What a server refuses is an *Error, with what it says is wrong. Nothing that changes something is sent twice: whether a
// visit that was not answered may be made again is the caller's to say, and so is when a stream that ended is asked for
// again. Events may always be published again, because they have ids.
package client

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// Config says whom to ask, and as whom.
type Config struct {
	Address string        // host:port, or a URL below which the calls are
	Token   string        // a bearer token; "": none
	TLS     *tls.Config   // for https; nil: what the system believes
	Timeout time.Duration // of one call, of a stream until it begins; 0: 30 seconds
	Most    int64         // bytes of an answer, more is an error; 0: 64 MiB
}

const (
	defaultTimeout = 30 * time.Second
	defaultMost    = 64 << 20
)

// An AddressError says that an address is none.
type AddressError struct{ Address string }

// Error has the address and what one is.
func (e *AddressError) Error() string {
	return fmt.Sprintf("server %q: want host:port or a URL", e.Address)
}

// An Error is an answer that refuses. It is what problem documents (RFC 9457) say.
type Error struct {
	Status     int      `json:"status"`
	Title      string   `json:"title"`
	Detail     string   `json:"detail"`
	Errors     []string `json:"errors"` // each problem of the request, where there are several
	RequestID  string   `json:"-"`      // names the request in the server's log
	RetryAfter int      `json:"-"`      // seconds, after which to ask again; 0: not said
}

// Error has everything that the server said is wrong.
func (e *Error) Error() string {
	text := fmt.Sprintf("%d %s", e.Status, e.Title)
	if e.Detail != "" {
		text += ": " + e.Detail
	}
	return text
}

// Client calls one server. It is safe for concurrent use. Close it.
type Client struct {
	base  *url.URL
	token string
	http  *http.Client
	most  int64
}

// New fails with an *AddressError. It connects to nobody yet.
func New(cfg Config) (*Client, error) {
	base, err := baseOf(cfg)
	if err != nil {
		return nil, err
	}
	if cfg.Timeout == 0 {
		cfg.Timeout = defaultTimeout
	}
	if cfg.Most == 0 {
		cfg.Most = defaultMost
	}
	transport := &http.Transport{
		Proxy: http.ProxyFromEnvironment, TLSClientConfig: cfg.TLS.Clone(), ForceAttemptHTTP2: true,
		MaxIdleConnsPerHost: 64, IdleConnTimeout: time.Minute, // servers close theirs after two
	}
	return &Client{base: base, token: cfg.Token, most: cfg.Most, http: &http.Client{
		Timeout: cfg.Timeout, Transport: transport,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }, // there are none, and tokens are for one server
	}}, nil
}

// baseOf takes host:port for https if there is something to check it with.
func baseOf(cfg Config) (*url.URL, error) {
	addr := cfg.Address
	if !strings.Contains(addr, "://") {
		if strings.HasPrefix(addr, ":") {
			addr = "127.0.0.1" + addr
		}
		scheme := "http://"
		if cfg.TLS != nil {
			scheme = "https://"
		}
		addr = scheme + addr
	}
	base, err := url.Parse(addr)
	if err != nil || base.Host == "" || base.Scheme != "http" && base.Scheme != "https" {
		return nil, &AddressError{cfg.Address}
	}
	return base, nil
}

// Close gives idle connections up.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// Get asks path, whose segments are given unescaped, and returns the answer as it is.
func (c *Client) Get(ctx context.Context, query url.Values, path ...string) (json.RawMessage, error) {
	return c.call(ctx, http.MethodGet, query, "", nil, path)
}

// Post sends a value as JSON and returns the answer as it is.
func (c *Client) Post(ctx context.Context, body any, path ...string) (json.RawMessage, error) {
	text, err := json.Marshal(body)
	if err != nil {
		return nil, fmt.Errorf("write request: %w", err)
	}
	return c.call(ctx, http.MethodPost, nil, "application/json", bytes.NewReader(text), path)
}

func (c *Client) call(ctx context.Context, method string, query url.Values, kind string, body io.Reader, path []string) (json.RawMessage, error) {
	req, err := c.request(ctx, method, c.at(query, path), body)
	if err != nil {
		return nil, err
	}
	if kind != "" {
		req.Header.Set("Content-Type", kind)
	}
	res, err := c.http.Do(req)
	if err != nil {
		return nil, fmt.Errorf("ask the server: %w", err) // it names method and address
	}
	defer func() { _ = res.Body.Close() }()
	return c.answer(res)
}

// once is an empty body, with which a request is sent once: net/http sends a GET anew by itself when a kept connection ends
// before the answer has begun, but not with a body that it cannot read anew. Over HTTP/1.1 no byte of it is sent.
type once struct{}

func (once) Read([]byte) (int, error) { return 0, io.EOF }

// request makes a request of whoever the client asks as.
func (c *Client) request(ctx context.Context, method, to string, body io.Reader) (*http.Request, error) {
	req, err := http.NewRequestWithContext(ctx, method, to, body)
	if err != nil {
		return nil, fmt.Errorf("ask %s: %w", to, err)
	}
	if c.token != "" {
		req.Header.Set("Authorization", "Bearer "+c.token)
	}
	return req, nil
}

// answer reads an answer that is not a stream; one that refuses is an error.
func (c *Client) answer(res *http.Response) (json.RawMessage, error) {
	from := res.Request.URL
	answer, err := io.ReadAll(io.LimitReader(res.Body, c.most+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("read answer of %s: %w", from, err)
	case int64(len(answer)) > c.most:
		return nil, fmt.Errorf("answer of %s is longer than %d bytes", from, c.most)
	case res.StatusCode != http.StatusOK && res.StatusCode != http.StatusAccepted:
		return nil, fmt.Errorf("ask %s: %w", from, refusal(res, answer))
	}
	return answer, nil
}

// at is the URL of a call.
func (c *Client) at(query url.Values, path []string) string {
	segments := make([]string, len(path))
	for i, s := range path {
		segments[i] = url.PathEscape(s)
	}
	to := c.base.JoinPath(segments...)
	to.RawQuery = query.Encode()
	return to.String()
}

// refusal makes an error of an answer that is none.
func refusal(res *http.Response, body []byte) *Error {
	e := &Error{}
	isProblem := strings.HasPrefix(res.Header.Get("Content-Type"), "application/problem+json")
	if !isProblem || json.Unmarshal(body, e) != nil || e.Status == 0 {
		e = &Error{Title: http.StatusText(res.StatusCode)}
	}
	e.Status, e.RequestID = res.StatusCode, res.Header.Get("X-Request-Id")
	e.RetryAfter, _ = strconv.Atoi(res.Header.Get("Retry-After")) // a date is not what the server sends
	return e
}
