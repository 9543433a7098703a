package feature

import (
	"context"
	"encoding/json"
	"errors"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/smartfeed/smartfeed/schemas"
)

func TestBreakerOpensAndCloses(t *testing.T) {
	at := time.Unix(0, 0)
	b := newBreaker(Config{BreakAfter: 3, BreakFor: time.Second}, func() time.Time { return at })
	steps := []struct {
		name  string
		pass  time.Duration
		allow bool
		then  outcome
		open  bool
	}{
		{"first failure", 0, true, broke, false},
		{"a success in between", 0, true, went, false},
		{"first of three", 0, true, broke, false},
		{"second", 0, true, broke, false},
		{"who left says nothing", 0, true, unknown, false},
		{"third", 0, true, broke, true},
		{"left alone", 999 * time.Millisecond, false, 0, true},
		{"a try that fails", time.Millisecond, true, broke, true},
		{"left alone again", 999 * time.Millisecond, false, 0, true},
		{"a try that nobody waits for", time.Millisecond, true, unknown, true},
		{"a try that goes well", 0, true, went, false},
		{"as before", 0, true, broke, false},
	}
	for _, s := range steps {
		at = at.Add(s.pass)
		if got := b.allow(); got != s.allow {
			t.Fatalf("%s: allowed %v, want %v", s.name, got, s.allow)
		}
		if s.allow {
			b.done(s.then)
		}
		if got := b.open(); got != s.open {
			t.Fatalf("%s: open %v, want %v", s.name, got, s.open)
		}
	}
}

func TestOneTriesWhileTheBreakerIsOpen(t *testing.T) {
	b := newBreaker(Config{BreakAfter: 1, BreakFor: time.Second}, time.Now)
	b.allow()
	b.done(broke)
	b.until = time.Now()
	if !b.allow() || b.allow() {
		t.Error("want one that tries, and no other")
	}
}

// While the store hangs, the breaker opens: answers return at once and no scans pile up. It closes after the store has
// recovered.
func TestAHangingStoreIsLeftAloneAndFoundAgain(t *testing.T) {
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
		cfg.Concurrency, cfg.BreakAfter = 2, 3
		s, metrics := serviceOf{store: store, cfg: cfg, now: time.Now}.start(t)
		req := Request{Features: []string{"saves"}, Users: []schemas.UserID{"user:1", "user:2", "user:3"}}
		ask := func() (Answer, time.Duration) {
			t.Helper()
			start := time.Now()
			answer, err := s.Answer(t.Context(), req)
			if err != nil {
				t.Fatal(err)
			}
			return answer, time.Since(start)
		}
		down.Store(true)
		for range cfg.BreakAfter {
			if answer, took := ask(); took != cfg.Deadline || answer.Degraded[0] != "deadline" {
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
		if after := runtime.NumGoroutine(); after > before || store.hits.Load() != hits {
			t.Errorf("%d goroutines before, %d after; %d more scans", before, after, store.hits.Load()-hits)
		}
		if got := counted(t, metrics, "smartfeed_features_breaker_open"); got != 1 {
			t.Errorf("gauge: got %v, want 1", got)
		}
		down.Store(false)
		close(release)
		time.Sleep(cfg.BreakFor)
		if answer, _ := ask(); len(answer.Degraded) > 0 {
			t.Errorf("when it has recovered: degraded %v", answer.Degraded)
		}
		if got := counted(t, metrics, "smartfeed_features_breaker_open"); got != 0 {
			t.Errorf("gauge: got %v, want 0", got)
		}
	})
}

// cardAlone is a store that has cards of pins, but no attributes or embeddings.
type cardAlone struct{ empty }

func (cardAlone) Pins(_ context.Context, pins []schemas.PinID, _ bool) (map[schemas.PinID]PinAttributes, error) {
	known := map[schemas.PinID]PinAttributes{}
	for _, pin := range pins {
		known[pin] = PinAttributes{}
	}
	return known, nil
}

func TestAttributesByKey(t *testing.T) {
	s, _ := serviceOf{store: history(t)}.start(t)
	req := AttributesRequest{Pins: []schemas.PinID{"pin:1", "pin:4", "pin:1", "pin:none"}, Embeddings: true}
	got, err := s.Attributes(t.Context(), req)
	if err != nil {
		t.Fatal(err)
	}
	want := AttributesAnswer{
		Pins: map[schemas.PinID]Attributes{"pin:1": {
			Author: "user:ada", Interests: []schemas.InterestID{"interest:1", "interest:2"},
			Attributes: map[string]string{"colour": "blue", "price": "10"}, Embedding: []float32{0, 1},
		}},
		Missing: []MissingPin{{"pin:4", Unknown}, {"pin:none", Unknown}}, Degraded: []string{},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	cards, _ := serviceOf{store: cardAlone{}}.start(t)
	got, err = cards.Attributes(t.Context(), AttributesRequest{Pins: []schemas.PinID{"pin:1"}})
	if text, _ := json.Marshal(got.Pins["pin:1"]); err != nil || !strings.Contains(string(text), `"attributes":{}`) {
		t.Errorf("of a pin with a card alone: got %s, %v, want no attributes", text, err)
	}
	var bad *RequestError
	for _, req := range []AttributesRequest{{}, {Pins: []schemas.PinID{"user:1"}}} {
		if _, err := s.Attributes(t.Context(), req); !errors.As(err, &bad) {
			t.Errorf("%v: got %v, want a RequestError", req, err)
		}
	}
	down, _ := serviceOf{store: &faulty{Store: empty{}, pins: func(context.Context) error { return errors.New("down") }}}.start(t)
	got, err = down.Attributes(t.Context(), AttributesRequest{Pins: []schemas.PinID{"pin:1"}})
	if err != nil || len(got.Degraded) != 1 || got.Missing[0].Reason != Failed {
		t.Errorf("with the store down: got %+v, %v", got, err)
	}
}
