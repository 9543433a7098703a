package pinot

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/smartfeed/smartfeed/internal/testkit/deletedtest"
	"github.com/smartfeed/smartfeed/internal/testkit/expect"
	"github.com/smartfeed/smartfeed/internal/testkit/metricstest"
	"github.com/smartfeed/smartfeed/internal/testkit/must"
	"github.com/smartfeed/smartfeed/schemas"
	"github.com/smartfeed/smartfeed/serving/feature"
)

// queryTime is the default deadline of a features answer.
const queryTime = 500 * time.Millisecond

// standIn is a broker in memory. One without an answer function refuses connections.
type standIn struct {
	answer  http.HandlerFunc
	hits    atomic.Int64
	healthy atomic.Bool // it answers in spite of its fault
}

const one = `{"resultTable":{"rows":[[1]]},"numServersQueried":1,"numServersResponded":1}`

// none is an answer without rows, which has any width.
const none = `{"resultTable":{"rows":[]},"numServersQueried":1,"numServersResponded":1}`

func (s *standIn) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body) // otherwise the server does not notice that the caller cancels
	s.answer(w, r)
}

// after answers after d, and stops when the caller cancels.
func after(d time.Duration) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		select {
		case <-time.After(d):
			says(one)(w, r)
		case <-r.Context().Done():
		}
	}
}

// Faults of a broker that does not answer. The first refuses connections.
var faults = map[string]http.HandlerFunc{
	"refuses": nil,
	"503":     func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusServiceUnavailable) },
	"cuts": func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "100")
		_, _ = io.WriteString(w, "{")
	},
	"hangs": after(time.Hour),
}

// connections is a listener.
type connections chan net.Conn

func (c connections) Accept() (net.Conn, error) {
	if conn, ok := <-c; ok {
		return conn, nil
	}
	return nil, net.ErrClosed
}
func (connections) Close() error   { return nil }
func (connections) Addr() net.Addr { return &net.TCPAddr{} }

// among returns a client of stand-ins, inside a synctest bubble.
func among(t *testing.T, all ...*standIn) *Client {
	t.Helper()
	cfg, listeners := DefaultConfig(), map[string]connections{}
	for i, s := range all {
		address := fmt.Sprintf("broker-%d:8099", i)
		cfg.Brokers = append(cfg.Brokers, address)
		listener := make(connections)
		listeners[address] = listener
		server := &http.Server{Handler: s}
		go func() { _ = server.Serve(listener) }()
		t.Cleanup(func() { close(listener); _ = server.Close() })
	}
	c := must.Get(NewClient(cfg))(t)
	t.Cleanup(c.Close)
	c.transport.DisableKeepAlives = true // so that nothing remains after an answer
	c.transport.DialContext = func(_ context.Context, _, address string) (net.Conn, error) {
		s := all[int(address[len("broker-")]-'0')]
		s.hits.Add(1)
		if s.answer == nil && !s.healthy.Load() {
			return nil, &net.OpError{Op: "dial", Err: errors.New("connection refused")}
		}
		near, far := net.Pipe()
		listeners[address] <- far
		return near, nil
	}
	return c
}

// query sends one query with the deadline of a features answer, and returns how long it took.
func query(t *testing.T, c *Client) (time.Duration, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), queryTime)
	defer cancel()
	began := time.Now()
	_, err := c.query(ctx, "SELECT 1", 1)
	return time.Since(began), err
}

// faulty returns a broker with a fault until its healthy is set.
func faulty(fault http.HandlerFunc) *standIn {
	s := &standIn{}
	if fault != nil {
		s.answer = func(w http.ResponseWriter, r *http.Request) {
			if s.healthy.Load() {
				fault = says(one)
			}
			fault(w, r)
		}
	}
	return s
}

// One of several brokers is unavailable. Every query is answered, the broker is tried once a second, and it takes its
// turn again after it has recovered.
func TestBrokers_AvoidFailedBroker(t *testing.T) {
	for name, fault := range faults {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				bad, good := faulty(fault), &standIn{answer: says(one)}
				c := among(t, bad, good)
				ask := func(times int, tries int64) {
					t.Helper()
					for n := range times {
						took, err := query(t, c)
						if err != nil || took > queryTime/2 {
							t.Fatalf("query %d: got %v after %s", n, err, took)
						}
					}
					expect.Equal(t, bad.hits.Swap(0), tries, "queries received")
				}
				ask(100, 1)
				for range 3 {
					time.Sleep(avoidFor)
					ask(100, 1)
				}
				if fault == nil {
					bad.answer = says(one)
				}
				bad.healthy.Store(true)
				time.Sleep(avoidFor)
				ask(100, 50)
			})
		})
	}
}

// Many scans of an answer that meet an unavailable broker at the same time do not open the circuit breaker.
func TestBrokers_FailureKeepsCircuitBreakerClosed(t *testing.T) {
	for name, fault := range faults {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				bad := faulty(fault)
				reg := prometheus.NewRegistry()
				metrics := must.Get(feature.NewMetrics(reg))(t)
				s := must.Get(feature.NewService(feature.DefaultConfig(), feature.Deps{
					Store: NewStore(feature.DefaultConfig(), among(t, bad, &standIn{answer: says(none)})), Deleted: deletedtest.Of(),
					Definitions: define(t, "- {name: n, entity: user, aggregate: count}\n"), Metrics: metrics,
					Log: slog.New(slog.DiscardHandler), Now: time.Now,
				}))(t)
				defer s.Close()
				for n := range 30 {
					answer, err := s.Answer(t.Context(), feature.Request{
						Features: []string{"n"}, Users: []schemas.UserID{"user:1", "user:2", "user:3"},
					})
					if err != nil || len(answer.Degraded) > 0 {
						t.Fatalf("answer %d: degraded %v, %v", n, answer.Degraded, err)
					}
				}
				expect.AtLeast(t, bad.hits.Load(), 1, "received queries")
				expect.Equal(t, metricstest.Sum(t, reg, "smartfeed_features_circuit_breaker_open"), 0, "open circuit breaker")
			})
		})
	}
}

// A query that is slow on every broker gets the whole deadline. If all brokers are slow, not every query is sent twice.
func TestClient_SlowQueryGetsItsDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := &standIn{answer: after(400 * time.Millisecond)}, &standIn{answer: after(400 * time.Millisecond)}
		c := among(t, a, b)
		const times, atOnce = 5, 16
		for range times {
			var queries sync.WaitGroup
			for range atOnce {
				queries.Go(func() {
					expect.Equal(t, must.Get(query(t, c))(t), 400*time.Millisecond, "duration")
				})
			}
			queries.Wait()
		}
		// If queries find the first broker silent at the same moment, at most those of one broker are sent to the other
		// one, which is not known to be silent yet.
		const once = times * atOnce
		expect.Between(t, a.hits.Load()+b.hits.Load(), once, once+once/2, "requests for %d queries", once)
	})
}

// One query probes a broker that hangs, while other queries are answered at once.
func TestBrokers_OneQueryProbesFailedBroker(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		bad := faulty(after(time.Hour))
		c := among(t, bad, &standIn{answer: says(one)})
		for bad.hits.Load() == 0 {
			_, _ = query(t, c)
		}
		time.Sleep(avoidFor)
		var late atomic.Int64
		var queries sync.WaitGroup
		for range 16 {
			queries.Go(func() {
				took, err := query(t, c)
				expect.Error(t, err, "", "query")
				if took > 0 {
					late.Add(1)
				}
			})
		}
		queries.Wait()
		expect.Equal(t, bad.hits.Load(), 2, "received queries")
		expect.Equal(t, late.Load(), 1, "queries that waited")
	})
}

// A canceled query does not count against a broker.
func TestBrokers_CanceledQueryIsNotAFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := &standIn{answer: after(time.Hour)}, &standIn{answer: after(time.Hour)}
		c := among(t, a, b)
		for range 10 {
			ctx, cancel := context.WithTimeout(t.Context(), queryTime)
			time.AfterFunc(queryTime/4, cancel)
			expect.Is(t, expect.ErrorOf(c.query(ctx, "SELECT 1", 1)), context.Canceled, "error")
		}
		if a.hits.Load() != 5 || b.hits.Load() != 5 || c.brokers.all[0].failed || c.brokers.all[1].failed {
			t.Errorf("sent %d and %d requests, want five each, and no broker avoided", a.hits.Load(), b.hits.Load())
		}
	})
}

// If no broker answers, the error names those that were tried, and none of them is dropped.
func TestClient_AllBrokersFail(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b, d := faulty(nil), faulty(nil), faulty(nil)
		c := among(t, a, b, d)
		for n := range 30 {
			if _, err := query(t, c); err == nil || strings.Count(err.Error(), "refused") != 2 || strings.Contains(err.Error(), "\n") {
				t.Fatalf("query %d: got %v, want the errors of two brokers", n, err)
			}
		}
		for i, s := range []*standIn{a, b, d} {
			expect.Equal(t, s.hits.Load(), 20, "queries that broker %d received", i)
		}
		hanging := among(t, faulty(after(time.Hour)), faulty(after(time.Hour)))
		for range 3 {
			if took, err := query(t, hanging); !errors.Is(err, context.DeadlineExceeded) || took != queryTime {
				t.Errorf("both hang: got %v after %s", err, took)
			}
		}
	})
}

// An answer that every broker would give is not requested again.
func TestClient_ErrorAnswersAreNotRetried(t *testing.T) {
	for name, answer := range map[string]http.HandlerFunc{
		"an exception": says(`{"exceptions":[{"errorCode":150}]}`),
		"no login":     func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusUnauthorized) },
		"too large":    func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(make([]byte, 65<<10)) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a, b := &standIn{answer: answer}, &standIn{answer: answer}
				c := among(t, a, b)
				c.maxBytes = 64 << 10
				for range 10 {
					expect.Error(t, expect.ErrorOf(query(t, c)), "query pinot: ", "query")
				}
				expect.True(t, a.hits.Load() == 5 && b.hits.Load() == 5, "sent %d and %d requests, want five each", a.hits.Load(), b.hits.Load())
			})
		})
	}
}

// The check of the doctor queries every broker, including those that queries avoid.
func TestTry_ReportsFailedBrokers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := among(t, faulty(nil), &standIn{answer: says(one)}, faulty(after(time.Hour)))
		for range 2 {
			ctx, cancel := context.WithTimeout(t.Context(), queryTime)
			well, away := c.Try(ctx)
			expect.Error(t, ctx.Err(), "", "context before the deadline")
			cancel()
			if well != 1 || len(away) != 2 || !strings.Contains(away[0].Error(), "broker-0") || !strings.Contains(away[1].Error(), "broker-2") {
				t.Errorf("%d are healthy, failed are %v", well, away)
			}
		}
	})
}
