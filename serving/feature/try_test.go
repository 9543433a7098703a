package feature

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sony/gobreaker/v2"

	"github.com/smartfeed/smartfeed/internal/testkit/expect"
	"github.com/smartfeed/smartfeed/internal/testkit/must"
	"github.com/smartfeed/smartfeed/schemas"
)

// tried returns the values of an answer as JSON.
func tried(t *testing.T, s *Service, req TryRequest) string {
	t.Helper()
	a := must.Get(s.Try(t.Context(), req))(t)
	text := must.Get(json.Marshal(a.Values))(t)
	return string(text)
}

// A definition has the same value in a trial and in the file, in each form in which it can be written.
func TestTry_EqualsDefinedFeature(t *testing.T) {
	s, _ := serviceOf{store: history(t)}.start(t)
	ask := func(name string, users []schemas.UserID, pins []schemas.PinID) string {
		a := must.Get(s.Answer(t.Context(), Request{Features: []string{name}, Users: users, Pins: pins}))(t)
		text := must.Get(json.Marshal(a.Values))(t)
		return string(text)
	}
	users := []schemas.UserID{"user:1", "user:none"}
	for name, text := range map[string]string{
		"one":    "{name: saves, entity: user, verbs: save, aggregate: count}",
		"block":  "name: saves\nentity: user\nverbs: save\naggregate: count\n",
		"a list": "- {name: saves, entity: user, verbs: save, aggregate: count}",
		"a file": "features:\n- {name: saves, entity: user, verbs: save, aggregate: count}",
	} {
		same(t, name, ask("saves", users, nil), tried(t, s, TryRequest{Definition: text, Users: users}))
	}
	pins := []schemas.PinID{"pin:1"}
	got := tried(t, s, TryRequest{Definition: "{name: pin_saves, entity: pin, verbs: save, aggregate: count}", Pins: pins})
	expect.Equal(t, got, ask("pin_saves", nil, pins), "of a pin")
	for _, d := range s.Definitions() {
		expect.False(t, d.Name == "tried", "a tried feature is defined")
	}
}

func TestTry_ReportsEveryProblem(t *testing.T) {
	s, _ := serviceOf{store: empty{}}.start(t)
	many := make([]schemas.UserID, MaxTryEntities+1)
	for i := range many {
		many[i] = "user:1"
	}
	const good = "{name: a, entity: user, aggregate: count}"
	tests := map[string]struct {
		req  TryRequest
		want []string
	}{
		"nothing":       {TryRequest{}, []string{"definition:1: no features: want a list under the key features"}},
		"no entity":     {TryRequest{Definition: good}, []string{"no users, pins or pairs"}},
		"bad id":        {TryRequest{Definition: good, Users: []schemas.UserID{"pin:1"}}, []string{"users: "}},
		"too many":      {TryRequest{Definition: good, Users: many}, []string{"users: 21: at most 20"}},
		"too long":      {TryRequest{Definition: strings.Repeat(" ", MaxTryBytes+1), Users: many[:1]}, []string{"definition: 16385 bytes: at most 16384"}},
		"two mistakes":  {TryRequest{Definition: "name: A\nentity: house\n", Users: many[:1]}, []string{"definition:1: feature A: name", "definition:2: feature A: entity"}},
		"no YAML":       {TryRequest{Definition: "{", Users: many[:1]}, []string{"definition:1: "}},
		"a text":        {TryRequest{Definition: "saves", Users: many[:1]}, []string{"definition:1: the file: want keys with values", "definition:1: no features"}},
		"eleven":        {TryRequest{Definition: "features:" + strings.Repeat("\n- "+good, 11), Users: many[:1]}, []string{"definition:3: feature a: name: already"}},
		"part not here": {TryRequest{Definition: "{name: a, entity: user, aggregate: ratio, numerator: saves, denominator: all}", Users: many[:1]}, []string{`definition:1: feature a: numerator "saves"`, `definition:1: feature a: denominator "all"`}},
		"itself in it":  {TryRequest{Definition: "&a {name: *a}", Users: many[:1]}, []string{"definition:1: "}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			bad := must.As[*RequestError](t, expect.ErrorOf(s.Try(t.Context(), tt.req)))
			for i, want := range tt.want {
				if i >= len(bad.Problems) || !strings.HasPrefix(bad.Problems[i], want) {
					t.Errorf("got %q, want %q first", bad.Problems, tt.want)
				}
			}
		})
	}
}

// However many trials fail, other answers are not affected. While the breaker is open, a trial does not read from the
// store.
func TestTry_DoesNotAffectBreaker(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := DefaultConfig()
		cfg.BreakerFailures = 2
		store := &faulty{Store: empty{}, actions: func(context.Context, schemas.UserID) error { return errors.New("down") }}
		s, _ := serviceOf{store: store, cfg: cfg, now: time.Now}.start(t)
		req := TryRequest{Definition: "{name: tried, entity: user, aggregate: count}", Users: []schemas.UserID{"user:1"}}
		failed := []Missing{{"user:1", "tried", Failed}}
		for range 5 {
			a := must.Get(s.Try(t.Context(), req))(t)
			expect.NoDiff(t, a.Missing, failed, "missing")
			expect.NoDiff(t, a.Degraded, []string{"store"}, "degraded")
		}
		expect.Equal(t, s.breaker.State(), gobreaker.StateClosed, "breaker after trials")
		for range 2 {
			must.Get(s.Answer(t.Context(), Request{Features: []string{"saves"}, Users: req.Users}))(t)
		}
		expect.Equal(t, s.breaker.State(), gobreaker.StateOpen, "breaker after two failed answers")
		reads := store.hits.Load()
		expect.NoDiff(t, must.Get(s.Try(t.Context(), req))(t).Missing, failed, "while it is open: missing")
		expect.Equal(t, store.hits.Load(), reads, "while it is open: reads")
		time.Sleep(cfg.BreakerOpenTime + 1)
		must.Get(s.Try(t.Context(), req))(t)
		expect.True(t, store.hits.Load() > reads, "after that: the store was read")
		expect.Equal(t, s.breaker.State(), gobreaker.StateHalfOpen, "breaker after a trial")
	})
}

func TestTry_ReturnsContextErrorToCaller(t *testing.T) {
	s, _ := serviceOf{store: empty{}}.start(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := s.Try(ctx, TryRequest{Definition: "{name: a, entity: user, aggregate: count}", Users: []schemas.UserID{"user:1"}})
	expect.Is(t, err, context.Canceled, "error")
}
