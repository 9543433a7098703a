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
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
	"golang.org/x/sync/semaphore"

	"github.com/smartfeed/smartfeed/internal/testkit/eventually"
	"github.com/smartfeed/smartfeed/internal/testkit/expect"
	"github.com/smartfeed/smartfeed/internal/testkit/must"
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
	must.OK(t, s.Call(t.Context(), map[string]int{"a": 1}, &answer, 1<<20))
	expect.Equal(t, answer.Got["a"], 1, "response")
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
			expect.Error(t, s.Call(t.Context(), 1, new(any), 1<<20), c.want, "error")
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
		expect.Equal(t, calls, Failures+3, "calls")
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
			must.OK(t, s.Call(t.Context(), 1, new(any), 1<<20))
		})
		<-hanging
	}
	expect.Is(t, s.Call(t.Context(), 1, new(any), 1<<20), ErrBusy, "error")
	close(hang)
	calls.Wait()
}

func TestCall_CancellationIsNoFailure(t *testing.T) {
	s := serve(t, patience, func(http.ResponseWriter, *http.Request) {})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for range Failures + 1 {
		expect.Is(t, s.Call(ctx, 1, new(any), 1<<20), context.Canceled, "error")
	}
}

func TestConfig_Validate(t *testing.T) {
	must.OK(t, (Config{URL: "https://example.com/x", Timeout: time.Second}).Validate())
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
	expect.Equal(t, fmt.Sprint(err), "call https://ranker.example/scores: refused by dial", "error, with the address without its query")
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

// largest has the size of a decoded candidate.
type largest struct{ Values [11]uint64 }

// A response within MaxResponseBytes could take hundreds of MiB when decoded. Call limits that.
func TestCall_BoundsDecodedSize(t *testing.T) {
	list := []byte(`{"candidates":[` + strings.Repeat("{},", MaxResponseBytes/3-10) + `{}]}`)
	scores := []byte(`{"scores":{` + strings.Repeat(`"":0,`, MaxResponseBytes/5-10) + `"":0}}`)
	nested := []byte(`{"candidates":[{"interests":[` + strings.Repeat(`"",`, MaxResponseBytes/3-20) + `""]}]}`)
	for name, text := range map[string][]byte{"list": list, "map": scores, "nested list": nested} {
		t.Run(name, func(t *testing.T) {
			s := New(Config{URL: "http://source.example/", Timeout: time.Minute}, nil)
			s.client = &http.Client{Transport: roundTrip(func() (int, []byte) { return http.StatusOK, text })}
			var answer struct {
				Candidates []struct {
					largest
					Interests []string
				}
				Scores map[string]float64
			}
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			err := s.Call(t.Context(), 1, &answer, 1000*128)
			runtime.ReadMemStats(&after)
			expect.Error(t, err, "JSON values: want at most 128000", "error")
			expect.AtMost(t, (after.TotalAlloc-before.TotalAlloc)>>20, 32, "allocated MiB")
		})
	}
}

// All responses in flight share one budget, whether they are decoded or not.
func TestCall_BoundsResponsesInFlight(t *testing.T) {
	const size, calls = 128 << 10, 3
	release := make(chan struct{})
	s := serve(t, patience, func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write(bytes.Repeat([]byte(" "), size))
		_ = http.NewResponseController(w).Flush()
		<-release
		_, _ = w.Write([]byte("1"))
	})
	s.held = semaphore.NewWeighted(calls*size + size/2)
	ask := func() error { return s.Call(t.Context(), 1, new(any), 10) }
	errs := make(chan error, calls)
	for range calls {
		go func() { errs <- ask() }()
	}
	eventually.True(t, "all responses are held", func() bool {
		room := s.held.TryAcquire(size)
		if room {
			s.held.Release(size)
		}
		return !room
	})
	for range Failures + 1 { // ErrBusy is no failure of the service: its circuit breaker stays closed
		expect.Is(t, ask(), ErrBusy, "error")
	}
	close(release)
	for range calls {
		expect.Error(t, <-errs, "", "a call")
	}
	expect.Error(t, ask(), "", "after the last call ended")
	expect.True(t, s.held.TryAcquire(calls*size+size/2), "the budget is released")
}

// Decoded values count in addition to their text.
func TestCall_CountsDecodedValues(t *testing.T) {
	s := New(Config{URL: "http://source.example/", Timeout: time.Minute}, nil)
	s.client = &http.Client{Transport: roundTrip(func() (int, []byte) {
		return http.StatusOK, []byte("[" + strings.Repeat("{},", 1000) + "{}]")
	})}
	s.held = semaphore.NewWeighted(100 << 10)
	expect.Is(t, s.Call(t.Context(), 1, new(any), 1<<20), ErrBusy, "error")
}
