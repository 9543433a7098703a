// Package client is an HTTP client of the smartfeed API, which /v1/openapi.json describes.
//
//	c, err := client.New(client.Config{Address: "https://feeds.example", Token: token})
//	for item, err := range c.Feed(ctx, "user:ada", client.VisitOptions{Limit: 25}) {
//		…
//	}
//
// PublishAll publishes events in batches, and repeats a batch without an answer. Feed reads a feed page by page.
//
// If the server rejects a request, the method returns an *Error with the server's reason. Apart from PublishAll, and a visit with
// a key, the client never repeats a request that changes something: the caller decides whether to repeat a visit without an
// answer.
//
// The package imports only the standard library. The folder clients has clients for TypeScript and Python.
package client

import (
	"bytes"
	"cmp"
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

// Config is the server and the credentials of a Client.
type Config struct {
	Address string        // host:port, or a base URL
	Token   string        // a bearer token; "": none
	TLS     *tls.Config   // for https; nil: the root certificates of the system
	Timeout time.Duration // of a call; 0: 30 seconds
	Most    int64         // maximum bytes of an answer, more is an error; 0: 64 MiB
}

const (
	defaultTimeout = 30 * time.Second
	defaultMost    = 64 << 20
)

// An AddressError is returned for an invalid address.
type AddressError struct{ Address string }

// Error returns the address and the expected form.
func (e *AddressError) Error() string {
	return fmt.Sprintf("server %q: want host:port or a URL", e.Address)
}

// An Error is returned when the server rejects a request. It is a problem document (RFC 9457).
type Error struct {
	Status     int      `json:"status"`
	Title      string   `json:"title"`
	Detail     string   `json:"detail"`
	Errors     []string `json:"errors"` // each problem of the request, if there are several
	RequestID  string   `json:"-"`      // identifies the request in the server's log
	RetryAfter int      `json:"-"`      // seconds to wait before the next request; 0: not given
}

// Error returns the status, the title and the detail.
func (e *Error) Error() string {
	text := fmt.Sprintf("%d %s", e.Status, e.Title)
	if e.Detail != "" {
		text += ": " + e.Detail
	}
	return text
}

// Client calls one server. It is safe for concurrent use. The caller must call Close.
type Client struct {
	base  *url.URL
	token string
	http  *http.Client
	most  int64
}

// New returns a Client, or an *AddressError. It does not connect yet.
func New(cfg Config) (*Client, error) {
	base, err := baseOf(cfg)
	if err != nil {
		return nil, err
	}
	transport := &http.Transport{
		Proxy: http.ProxyFromEnvironment, TLSClientConfig: cfg.TLS.Clone(), ForceAttemptHTTP2: true,
		MaxIdleConnsPerHost: 64, IdleConnTimeout: time.Minute, // servers close theirs after two
	}
	return &Client{base: base, token: cfg.Token, most: cmp.Or(cfg.Most, defaultMost), http: &http.Client{
		Timeout: cmp.Or(cfg.Timeout, defaultTimeout), Transport: transport,
		// The server sends no redirects, and the token is only for this server.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}, nil
}

// baseOf returns the base URL. For host:port it uses https if cfg.TLS is set.
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

// Close closes idle connections.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// Get requests a path, given as unescaped segments, and returns the body of the answer.
func (c *Client) Get(ctx context.Context, query url.Values, path ...string) (json.RawMessage, error) {
	return c.call(ctx, http.MethodGet, query, "", nil, path)
}

// Post sends a value as JSON and returns the body of the answer.
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
	return c.do(req)
}

// do sends a request and returns the body of the answer.
func (c *Client) do(req *http.Request) (json.RawMessage, error) {
	res, err := c.http.Do(req)
	if err != nil {
		return nil, fmt.Errorf("call server: %w", err) // err names the method and the address
	}
	defer func() { _ = res.Body.Close() }()
	return c.answer(res)
}

// once is an empty body that makes net/http send a request at most once. If a kept connection ends before the answer starts,
// net/http repeats a GET, but not one with a body that it cannot rewind. Over HTTP/1.1 the body adds no byte.
type once struct{}

func (once) Read([]byte) (int, error) { return 0, io.EOF }

// request returns a request with the client's token.
func (c *Client) request(ctx context.Context, method, to string, body io.Reader) (*http.Request, error) {
	req, err := http.NewRequestWithContext(ctx, method, to, body)
	if err != nil {
		return nil, fmt.Errorf("call %s: %w", to, err)
	}
	if c.token != "" {
		req.Header.Set("Authorization", "Bearer "+c.token)
	}
	return req, nil
}

// answer reads an answer. A status other than 200 and 202 is an error.
func (c *Client) answer(res *http.Response) (json.RawMessage, error) {
	from := res.Request.URL
	answer, err := io.ReadAll(io.LimitReader(res.Body, c.most+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("read answer of %s: %w", from, err)
	case int64(len(answer)) > c.most:
		return nil, fmt.Errorf("answer of %s is longer than %d bytes", from, c.most)
	case res.StatusCode != http.StatusOK && res.StatusCode != http.StatusAccepted:
		return nil, fmt.Errorf("call %s: %w", from, refusal(res, answer))
	}
	return answer, nil
}

// at returns the URL of a call.
func (c *Client) at(query url.Values, path []string) string {
	segments := make([]string, len(path))
	for i, s := range path {
		segments[i] = url.PathEscape(s)
	}
	to := c.base.JoinPath(segments...)
	to.RawQuery = query.Encode()
	return to.String()
}

// refusal returns the error for an answer with an error status.
func refusal(res *http.Response, body []byte) *Error {
	e := &Error{}
	isProblem := strings.HasPrefix(res.Header.Get("Content-Type"), "application/problem+json")
	if !isProblem || json.Unmarshal(body, e) != nil || e.Status == 0 {
		e = &Error{Title: http.StatusText(res.StatusCode)}
	}
	e.Status, e.RequestID = res.StatusCode, res.Header.Get("X-Request-Id")
	e.RetryAfter, _ = strconv.Atoi(res.Header.Get("Retry-After")) // the server sends seconds, not a date
	return e
}
