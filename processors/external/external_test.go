package external

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// serve starts a service with the given handler.
func serve(t *testing.T, timeout time.Duration, handle http.HandlerFunc) *Service {
	t.Helper()
	server := httptest.NewServer(handle)
	t.Cleanup(server.Close)
	s := New(Config{URL: server.URL, Timeout: timeout}, nil)
	t.Cleanup(s.Close)
	return s
}

const patience = 30 * time.Second

func TestCall(t *testing.T) {
	s := serve(t, patience, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if r.Method != http.MethodPost || r.Header.Get("Content-Type") != "application/json" {
			t.Errorf("got %s of %s", r.Method, r.Header.Get("Content-Type"))
		}
		_, _ = w.Write([]byte(`{"got":` + string(body) + `}`))
	})
	var answer struct{ Got map[string]int }
	if err := s.Call(t.Context(), map[string]int{"a": 1}, &answer, 1<<20); err != nil || answer.Got["a"] != 1 {
		t.Errorf("got %+v, %v", answer, err)
	}
}

func TestCall_RejectsBadResponses(t *testing.T) {
	for name, c := range map[string]struct {
		handle http.HandlerFunc
		want   string
	}{
		"status 503": {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(503) }, "status 503"},
		"a redirect": {func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "http://169.254.169.254/", http.StatusFound)
		}, "status 302"},
		"not JSON": {func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("<html>")) }, "read response"},
		"too large": {func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.Copy(w, strings.NewReader(strings.Repeat(" ", MaxResponseBytes+1)))
		}, "exceeds"},
		"cut short": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "100")
			_, _ = w.Write([]byte("{"))
		}, "read response"},
	} {
		t.Run(name, func(t *testing.T) {
			s := serve(t, patience, c.handle)
			if err := s.Call(t.Context(), 1, new(any), 1<<20); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want an error with %q", err, c.want)
			}
		})
	}
}

func TestCall_ReturnsAtTimeout(t *testing.T) {
	hang := make(chan struct{})
	s := serve(t, 20*time.Millisecond, func(http.ResponseWriter, *http.Request) { <-hang })
	defer close(hang)
	start := time.Now()
	if err := s.Call(t.Context(), 1, new(any), 1<<20); !errors.Is(err, context.DeadlineExceeded) || time.Since(start) > patience {
		t.Errorf("got %v after %s, want the deadline", err, time.Since(start))
	}
}

// After failures, the breaker opens. Then one call tests the service, and all calls pass once a test succeeds.
func TestCall_OpensAndCloses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		calls, status := 0, http.StatusInternalServerError
		s := New(Config{URL: "http://ranker.example/", Timeout: patience}, nil)
		s.client.Transport = roundTrip(func() (int, []byte) { calls++; return status, []byte("{}") })
		ask := func(name string, open, fails bool) {
			t.Helper()
			err := s.Call(t.Context(), 1, new(any), 1<<20)
			if errors.Is(err, ErrOpen) != open || (err != nil) != fails {
				t.Errorf("%s: got %v, want an error: %v, because the breaker is open: %v", name, err, fails, open)
			}
		}
		for range Failures {
			ask("a failing service", false, true)
		}
		for range 3 {
			ask("open", true, true)
		}
		time.Sleep(OpenFor + 1)
		ask("a failed test", false, true)
		ask("open again", true, true)
		status = http.StatusOK
		time.Sleep(OpenFor + 1)
		for range 2 {
			ask("a recovered service", false, false)
		}
		if calls != Failures+3 {
			t.Errorf("%d calls, want %d", calls, Failures+3)
		}
	})
}

func TestCall_BoundsCalls(t *testing.T) {
	hang, hanging := make(chan struct{}), make(chan struct{})
	s := serve(t, patience, func(w http.ResponseWriter, _ *http.Request) {
		hanging <- struct{}{}
		<-hang
		_, _ = w.Write([]byte("{}"))
	})
	var calls sync.WaitGroup
	for range MaxCalls {
		calls.Go(func() {
			if err := s.Call(t.Context(), 1, new(any), 1<<20); err != nil {
				t.Error(err)
			}
		})
		<-hanging
	}
	if err := s.Call(t.Context(), 1, new(any), 1<<20); !errors.Is(err, ErrBusy) {
		t.Errorf("got %v, want ErrBusy", err)
	}
	close(hang)
	calls.Wait()
}

func TestCall_CancellationIsNoFailure(t *testing.T) {
	s := serve(t, patience, func(http.ResponseWriter, *http.Request) {})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for range Failures + 1 {
		if err := s.Call(ctx, 1, new(any), 1<<20); !errors.Is(err, context.Canceled) {
			t.Fatalf("got %v, want context.Canceled", err)
		}
	}
}

func TestConfig_Validate(t *testing.T) {
	if err := (Config{URL: "https://example.com/x", Timeout: time.Second}).Validate(); err != nil {
		t.Error(err)
	}
	for _, url := range []string{"", "example.com", "ftp://example.com", "http://", "http://[::1"} {
		err := (Config{URL: url, Timeout: time.Minute}).Validate()
		if err == nil || strings.Count(err.Error(), "\n") != 1 {
			t.Errorf("%q: got %v, want both problems", url, err)
		}
	}
}

// Errors contain no query of a URL, because it may hold a key. URLs with user information are rejected.
func TestErrors_ContainNoSecret(t *testing.T) {
	refuse := func(context.Context, string, string) (net.Conn, error) { return nil, errors.New("refused by dial") }
	s := New(Config{URL: "https://ranker.example/scores?key=canary", Timeout: time.Second}, refuse)
	defer s.Close()
	err := s.Call(t.Context(), 1, new(any), 1<<20)
	if err == nil || err.Error() != "call https://ranker.example/scores: refused by dial" {
		t.Errorf("got %v, want the address without its query, and the error of dial", err)
	}
	for _, url := range []string{"https://ada:canary@ranker.example/", "ftp://ranker.example/?key=canary", "http://\x7fcanary"} {
		if err := (Config{URL: url, Timeout: time.Second}).Validate(); err == nil || strings.Contains(err.Error(), "canary") {
			t.Errorf("got %v, want an error without the secret", err)
		}
	}
}

// FuzzResponse feeds arbitrary responses to Call. An accepted response must be JSON.
func FuzzResponse(f *testing.F) {
	var text []byte
	serve := roundTrip(func() (int, []byte) { return http.StatusOK, text })
	s := New(Config{URL: "http://ranker.example/", Timeout: time.Minute}, nil)
	s.client = &http.Client{Transport: serve}
	f.Add([]byte(`{"candidates":[{"pin":"pin:1","score":1e999}]}`))
	f.Add([]byte(`{"scores":{"pin:1":null}}`))
	f.Fuzz(func(t *testing.T, answer []byte) {
		text = answer
		s.guard = NewGuard(time.Minute) // with a closed breaker
		var v any
		if err := s.Call(context.Background(), 1, &v, 1<<20); (err == nil) != json.Valid(answer) && len(answer) <= MaxResponseBytes && !errors.As(err, new(*json.UnmarshalTypeError)) {
			t.Errorf("%q: got %v, %v", answer, v, err)
		}
	})
}

// roundTrip is a transport without a server.
type roundTrip func() (status int, body []byte)

func (r roundTrip) RoundTrip(*http.Request) (*http.Response, error) {
	status, body := r()
	return &http.Response{StatusCode: status, Body: io.NopCloser(bytes.NewReader(body))}, nil
}
