package api

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// clientTimeout is for one call of a command, and maxAnswer for what it may answer.
const (
	clientTimeout = 30 * time.Second
	maxAnswer     = 64 << 20
)

// client calls a server of this API.
type client struct {
	base *url.URL
	http *http.Client
	most int64 // bytes of an answer
}

// newClient takes host:port or a URL.
func newClient(addr string) (*client, error) {
	if !strings.Contains(addr, "://") {
		if strings.HasPrefix(addr, ":") {
			addr = "127.0.0.1" + addr
		}
		addr = "http://" + addr
	}
	base, err := url.Parse(addr)
	if err != nil || base.Host == "" || (base.Scheme != "http" && base.Scheme != "https") {
		return nil, &UsageError{fmt.Sprintf("server %q: want host:port or a URL", addr)}
	}
	return &client{base: base, http: &http.Client{Timeout: clientTimeout}, most: maxAnswer}, nil
}

// get asks path, whose segments are given unescaped, and returns the answer as it is.
func (c *client) get(ctx context.Context, query url.Values, path ...string) (json.RawMessage, error) {
	return c.call(ctx, http.MethodGet, query, nil, path...)
}

func (c *client) post(ctx context.Context, body any, path ...string) (json.RawMessage, error) {
	text, err := json.Marshal(body)
	if err != nil {
		return nil, fmt.Errorf("write request: %w", err)
	}
	return c.call(ctx, http.MethodPost, nil, text, path...)
}

func (c *client) call(ctx context.Context, method string, query url.Values, body []byte, path ...string) (json.RawMessage, error) {
	segments := make([]string, len(path))
	for i, s := range path {
		segments[i] = url.PathEscape(s)
	}
	to := c.base.JoinPath(segments...)
	to.RawQuery = query.Encode()
	req, err := http.NewRequestWithContext(ctx, method, to.String(), bytes.NewReader(body))
	if err != nil {
		return nil, fmt.Errorf("ask %s: %w", to, err)
	}
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	res, err := c.http.Do(req)
	if err != nil {
		return nil, fmt.Errorf("ask the server: %w", err) // it names method and address
	}
	defer func() { _ = res.Body.Close() }()
	answer, err := io.ReadAll(io.LimitReader(res.Body, c.most+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("read answer of %s: %w", to, err)
	case int64(len(answer)) > c.most:
		return nil, fmt.Errorf("answer of %s is longer than %d bytes", to, c.most)
	case res.StatusCode != http.StatusOK:
		return nil, refusal(to, res, answer)
	}
	return answer, nil
}

// refusal makes an error of an answer that is none: a *Problem if the server said what is wrong.
func refusal(to *url.URL, res *http.Response, body []byte) error {
	p := new(Problem)
	if !isProblem(res.Header) || json.Unmarshal(body, p) != nil || p.Status == 0 {
		return fmt.Errorf("ask %s: %s", to, res.Status)
	}
	problems := []error{fmt.Errorf("ask %s: %w", to, p)}
	if len(p.Errors) > 1 {
		for _, e := range p.Errors {
			problems = append(problems, errors.New("  "+printed(e)))
		}
	}
	return errors.Join(problems...)
}

func isProblem(h http.Header) bool {
	return strings.HasPrefix(h.Get("Content-Type"), "application/problem+json")
}
