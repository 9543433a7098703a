package feature

import (
	"context"
	"encoding/json"
	"errors"
	"runtime"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/sony/gobreaker/v2"

	"github.com/smartfeed/smartfeed/internal/testkit/expect"
	"github.com/smartfeed/smartfeed/internal/testkit/metricstest"
	"github.com/smartfeed/smartfeed/internal/testkit/must"
	"github.com/smartfeed/smartfeed/schemas"
)

func TestBreaker_OpensAndCloses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		metrics := must.Get(NewMetrics(prometheus.NewRegistry()))(t)
		b := newBreaker(Config{BreakerFailures: 3, BreakerOpenTime: time.Second}, metrics)
		for _, s := range []struct {
			name    string
			pass    time.Duration
			rejects bool
			outcome error
			state   gobreaker.State
		}{
			{"first failure", 0, false, errIncomplete, gobreaker.StateClosed},
			{"a success in between", 0, false, nil, gobreaker.StateClosed},
			{"first of three", 0, false, errIncomplete, gobreaker.StateClosed},
			{"second", 0, false, errIncomplete, gobreaker.StateClosed},
			{"an inconclusive call", 0, false, errInconclusive, gobreaker.StateClosed},
			{"third", 0, false, errIncomplete, gobreaker.StateOpen},
			{"open", time.Second, true, nil, gobreaker.StateOpen},
			{"a probe that fails", 1, false, errIncomplete, gobreaker.StateOpen},
			{"open again", time.Second, true, nil, gobreaker.StateOpen},
			{"an inconclusive probe", 1, false, errInconclusive, gobreaker.StateHalfOpen},
			{"a probe that succeeds", 0, false, nil, gobreaker.StateClosed},
			{"closed", 0, false, errIncomplete, gobreaker.StateClosed},
		} {
			time.Sleep(s.pass)
			done, err := b.Allow()
			must.Equal(t, err != nil, s.rejects, "%s: rejected, with %v", s.name, err)
			if err == nil {
				if _, second := b.Allow(); second == nil && b.State() == gobreaker.StateHalfOpen {
					t.Fatalf("%s: want one probe at a time", s.name)
				}
				done(s.outcome)
			}
			must.Equal(t, b.State(), s.state, "%s: state", s.name)
		}
	})
}

// While the store hangs, the breaker opens: answers return at once and no scans pile up. It closes after the store has
// recovered.
func TestAnswer_BreakerOpensWhileStoreHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var down atomic.Bool
		release := make(chan struct{})
		store := &faulty{Store: empty{}, actions: func(context.Context, schemas.UserID) error {
			if down.Load() {
				<-release // ignores its context
			}
			return nil
		}}
		cfg := DefaultConfig()
		cfg.MaxConcurrentScans, cfg.BreakerFailures = 2, 3
		s, metrics := serviceOf{store: store, cfg: cfg, now: time.Now}.start(t)
		req := Request{Features: []string{"saves"}, Users: []schemas.UserID{"user:1", "user:2", "user:3"}}
		ask := func() (Answer, time.Duration) {
			t.Helper()
			start := time.Now()
			answer := must.Get(s.Answer(t.Context(), req))(t)
			return answer, time.Since(start)
		}
		down.Store(true)
		for range cfg.BreakerFailures {
			if answer, took := ask(); took != cfg.Timeout || answer.Degraded[0] != "deadline" {
				t.Fatalf("took %v, degraded %v, want the deadline", took, answer.Degraded)
			}
		}
		before, hits := runtime.NumGoroutine(), store.hits.Load()
		for range 100 {
			answer, took := ask()
			if diff := cmp.Diff([]string{"store"}, answer.Degraded); diff != "" || took != 0 || len(answer.Missing) != 3 {
				t.Fatalf("after %v: %v, missing %v", took, answer.Degraded, answer.Missing)
			}
		}
		expect.AtMost(t, runtime.NumGoroutine(), before, "goroutines")
		expect.Equal(t, store.hits.Load(), hits, "scans")
		expect.Equal(t, metricstest.Sum(t, metrics, "smartfeed_features_circuit_breaker_open"), 1, "gauge")
		down.Store(false)
		close(release)
		time.Sleep(cfg.BreakerOpenTime + 1)
		if answer, _ := ask(); len(answer.Degraded) > 0 {
			t.Errorf("when it has recovered: degraded %v", answer.Degraded)
		}
		expect.Equal(t, metricstest.Sum(t, metrics, "smartfeed_features_circuit_breaker_open"), 0, "gauge")
	})
}

// cardAlone is a store that has cards of pins, but no attributes or embeddings.
type cardAlone struct{ empty }

func (cardAlone) Pins(_ context.Context, pins []schemas.PinID, _ bool) (map[schemas.PinID]PinAttributes, time.Time, error) {
	known := map[schemas.PinID]PinAttributes{}
	for _, pin := range pins {
		known[pin] = PinAttributes{}
	}
	return known, time.Time{}, nil
}

func TestAttributes(t *testing.T) {
	s, _ := serviceOf{store: history(t)}.start(t)
	req := AttributesRequest{Pins: []schemas.PinID{"pin:1", "pin:4", "pin:1", "pin:none"}, Embeddings: true}
	got := must.Get(s.Attributes(t.Context(), req))(t)
	want := AttributesAnswer{
		Pins: map[schemas.PinID]Attributes{"pin:1": {
			Author: "user:ada", Interests: []schemas.InterestID{"interest:1", "interest:2"},
			Attributes: map[string]string{"color": "blue", "price": "10"}, Embedding: []float32{0, 1},
		}},
		Missing: []MissingPin{{"pin:4", Unknown}, {"pin:none", Unknown}}, Degraded: []string{},
	}
	same(t, "answer", want, got)
	cards, _ := serviceOf{store: cardAlone{}}.start(t)
	got = must.Get(cards.Attributes(t.Context(), AttributesRequest{Pins: []schemas.PinID{"pin:1"}}))(t)
	expect.Contains(t, string(must.Get(json.Marshal(got.Pins["pin:1"]))(t)), `"attributes":{}`, "attributes of a pin with a card alone")
	for _, req := range []AttributesRequest{{}, {Pins: []schemas.PinID{"user:1"}}} {
		must.As[*RequestError](t, expect.ErrorOf(s.Attributes(t.Context(), req)))
	}
	down, _ := serviceOf{store: &faulty{Store: empty{}, pins: func(context.Context) error { return errors.New("down") }}}.start(t)
	got = must.Get(down.Attributes(t.Context(), AttributesRequest{Pins: []schemas.PinID{"pin:1"}}))(t)
	expect.Equal(t, len(got.Degraded), 1, "reasons of the degradation with the store down")
	expect.Equal(t, got.Missing[0].Reason, Failed, "reason with the store down")
}
