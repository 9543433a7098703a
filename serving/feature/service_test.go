package feature

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/smartfeed/smartfeed/internal/testkit/expect"
	"github.com/smartfeed/smartfeed/internal/testkit/metricstest"
	"github.com/smartfeed/smartfeed/internal/testkit/must"
	"github.com/smartfeed/smartfeed/schemas"
)

const serviceDefinitions = `
features:
- {name: saves, entity: user, verbs: save, aggregate: count}
- {name: mean_price, entity: user, aggregate: mean, of: objectAttributes.price}
- {name: newest, entity: user, aggregate: last, n: 1}
- {name: pin_saves, entity: pin, verbs: save, aggregate: count}
- {name: pair_author, entity: pair, group_by: objectAttributes.author, aggregate: count}
- {name: pair_pin, entity: pair, group_by: object, aggregate: count}
- {name: pair_interests, entity: pair, group_by: objectAttributes.interests, aggregate: count}
- {name: decayed, entity: user, verbs: save, aggregate: count, half_life: 1h}
- {name: save_share, entity: user, aggregate: ratio, numerator: saves, denominator: all}
- {name: all, entity: user, aggregate: count}
- {name: price_share, entity: user, aggregate: ratio, numerator: all, denominator: price}
- {name: price, entity: user, aggregate: sum, of: objectAttributes.price, where: {objectAttributes.color: red}}
- {name: taste, entity: user, verbs: save, aggregate: mean_embedding, of: objectAttributes.embedding}
- {name: pin_actors, entity: pin, aggregate: distinct}
- {name: pin_crowd, entity: pin, aggregate: mean_embedding}
- {name: pin_decayed, entity: pin, aggregate: count, half_life: 90m}
- {name: pin_save_share, entity: pin, aggregate: ratio, numerator: pin_saves, denominator: pin_all}
- {name: pin_all, entity: pin, aggregate: count}
- {name: pair_close, entity: pair, aggregate: cosine}
- {name: pair_author_saves, entity: pair, verbs: save, group_by: objectAttributes.author, aggregate: count}
- {name: pair_author_share, entity: pair, aggregate: ratio, numerator: pair_author_saves, denominator: pair_author}
- {name: pair_price, entity: pair, group_by: objectAttributes.color, aggregate: mean, of: objectAttributes.price}
feature_sets:
  saving: [pair_author, pin_saves, saves]
  all_of_pins: [pin_saves, pin_actors]
`

// deleted is the set of deleted users.
type deleted map[schemas.UserID]bool

func (d deleted) Has(u schemas.UserID) bool { return d[u] }

type serviceOf struct {
	store   Store
	cfg     Config
	log     *slog.Logger
	deleted deleted
	now     func() time.Time
}

// start returns a service over a store, with the tests' definitions.
func (o serviceOf) start(t testing.TB) (*Service, *prometheus.Registry) {
	t.Helper()
	defs := must.Get(Parse("f", []byte(serviceDefinitions)))(t)
	reg := prometheus.NewRegistry()
	metrics := must.Get(NewMetrics(reg))(t)
	if o.cfg == (Config{}) {
		o.cfg = DefaultConfig()
	}
	if o.log == nil {
		o.log = slog.New(slog.DiscardHandler)
	}
	if o.now == nil {
		o.now = func() time.Time { return now.Time() }
	}
	s := must.Get(NewService(o.cfg, Deps{Store: o.store, Definitions: defs, Deleted: o.deleted, Metrics: metrics, Log: o.log, Now: o.now}))(t)
	t.Cleanup(s.Close)
	return s, reg
}

// history returns a store with a few actions of user:1 on pins of two authors.
func history(t *testing.T) *EmbeddedStore {
	s := openTest(t, t.TempDir(), DefaultConfig())
	on := func(id string, age schemas.Micros, verb schemas.Verb, pin schemas.ID, own schemas.ObjectAttributes) *schemas.EnrichedAction {
		return &schemas.EnrichedAction{ID: id, Actor: "user:1", Timestamp: now - age, Verb: verb, Object: pin, ObjectAttributes: own}
	}
	vase := schemas.ObjectAttributes{
		Facets:     schemas.Facets{Author: "user:ada", Interests: []schemas.InterestID{"interest:1", "interest:2"}},
		Attributes: map[string]string{"color": "blue", "price": "10"}, Embedding: []float32{3, 4},
	}
	mustWrite(t, s, Batch{
		Actions: []*schemas.EnrichedAction{
			on("a", hour, schemas.Save, "pin:1", vase), on("b", 2*hour, schemas.Click, "pin:1", vase),
			on("c", 3*hour, schemas.Save, "pin:2", schemas.ObjectAttributes{Facets: schemas.Facets{Author: "user:bob"}}),
		},
		Counts: []*schemas.ItemCounts{{Pin: "pin:1", Start: now / schemas.ItemStep * schemas.ItemStep, Counts: map[string]int64{"save": 7, "click": 3}, Actors: schemas.Sketch(nil).Add("user:1").Add("user:2"), Embedding: []float32{0.5, 2}}},
		Pins: []*schemas.PinAttributes{
			{Pin: "pin:1", Version: 1, Facets: vase.Facets, Attributes: vase.Attributes, Embedding: []float32{0, 1}}, // a newer version, from another model
			{Pin: "pin:2", Version: 1, Facets: schemas.Facets{Author: "user:bob"}, Embedding: []float32{2, 1}},
			{Pin: "pin:3", Version: 1, Facets: schemas.Facets{Author: "user:ada", Interests: []schemas.InterestID{"interest:2", "interest:9"}}, Embedding: []float32{4, 3}},
			{Pin: "pin:4", Version: 1, Facets: schemas.Facets{Author: "user:ada"}, Deleted: true, Embedding: []float32{4, 3}},
		},
	})
	return s
}

func TestAnswer(t *testing.T) {
	tests := map[string]struct{ request, want string }{
		"user": {
			`{"features":["saves","mean_price","newest"],"users":["user:1","user:2"]}`,
			`{"values":{
				"user:1":{"mean_price":10,"newest":[{"object":"pin:1","verb":"save","timestamp":"2023-11-14T21:13:20.123Z"}],"saves":2},
				"user:2":{"mean_price":null,"newest":[],"saves":0}},
			 "missing":[{"entity":"user:2","feature":"mean_price","reason":"empty"}],
			 "degraded":[],"as_of":"2023-11-14T22:13:20.123Z","fresh":null}`,
		},
		"pins, at changes nothing": {
			`{"features":["pin_saves"],"pins":["pin:1","pin:none"],"at":"2001-01-01T00:00:00Z","fresh":null}`,
			`{"values":{"pin:1":{"pin_saves":7},"pin:none":{"pin_saves":0}},"missing":[],"degraded":[],"as_of":"2001-01-01T00:00:00Z","fresh":null}`,
		},
		"at": {
			`{"features":["saves"],"users":["user:1"],"at":"2023-11-14T20:00:00.0009+00:00"}`,
			`{"values":{"user:1":{"saves":1}},
			 "missing":[{"entity":"user:1","feature":"saves","reason":"window"}],"degraded":[],"as_of":"2023-11-14T20:00:00Z","fresh":null}`,
		},
		"each feature for its kind, repeats once": {
			`{"features":["saves","pin_saves","saves"],"users":["user:1","user:1"],"pins":["pin:1"],"pairs":[["user:1","pin:1"]]}`,
			`{"values":{"user:1":{"saves":2},"pin:1":{"pin_saves":7},"user:1|pin:1":{}},"missing":[],"degraded":[],"as_of":"2023-11-14T22:13:20.123Z","fresh":null}`,
		},
		"pairs": {
			`{"features":["pair_author","pair_pin","pair_interests","pair_price"],"pairs":[["user:1","pin:1"],["user:1","pin:3"],["user:1","pin:4"],["user:2","pin:1"]]}`,
			`{"values":{
				"user:1|pin:1":{"pair_author":2,"pair_interests":{"interest:1":2,"interest:2":2},"pair_pin":2,"pair_price":10},
				"user:1|pin:3":{"pair_author":2,"pair_interests":{"interest:2":2},"pair_pin":0,"pair_price":null},
				"user:1|pin:4":{"pair_author":null,"pair_interests":null,"pair_pin":0,"pair_price":null},
				"user:2|pin:1":{"pair_author":0,"pair_interests":{},"pair_pin":0,"pair_price":null}},
			 "missing":[
				{"entity":"user:1|pin:3","feature":"pair_price","reason":"attribute"},
				{"entity":"user:1|pin:4","feature":"pair_author","reason":"pin"},
				{"entity":"user:1|pin:4","feature":"pair_interests","reason":"pin"},
				{"entity":"user:1|pin:4","feature":"pair_price","reason":"pin"},
				{"entity":"user:2|pin:1","feature":"pair_price","reason":"empty"}],
			 "degraded":[],"as_of":"2023-11-14T22:13:20.123Z","fresh":null}`,
		},
		"decay, ratios": {
			`{"features":["decayed","save_share","price_share"],"users":["user:1","user:2"]}`,
			`{"values":{"user:1":{"decayed":0.625,"save_share":0.6666666666666666,"price_share":null},
			  "user:2":{"decayed":0,"save_share":null,"price_share":null}},
			 "missing":[{"entity":"user:1","feature":"price_share","reason":"empty"},
				{"entity":"user:2","feature":"save_share","reason":"empty"},{"entity":"user:2","feature":"price_share","reason":"empty"}],
			 "degraded":[],"as_of":"2023-11-14T22:13:20.123Z","fresh":null}`,
		},
		"embeddings": {
			`{"features":["taste"],"users":["user:1","user:2"]}`,
			`{"values":{"user:1":{"taste":[3,4]},"user:2":{"taste":null}},
			 "missing":[{"entity":"user:2","feature":"taste","reason":"empty"}],"degraded":[],"as_of":"2023-11-14T22:13:20.123Z","fresh":null}`,
		},
		"features of a pin's actors": {
			`{"features":["pin_actors","pin_crowd","pin_save_share"],"pins":["pin:1","pin:none"]}`,
			`{"values":{"pin:1":{"pin_actors":2,"pin_crowd":[0.5,2],"pin_save_share":0.7},"pin:none":{"pin_actors":0,"pin_crowd":null,"pin_save_share":null}},
			 "missing":[{"entity":"pin:none","feature":"pin_crowd","reason":"empty"},{"entity":"pin:none","feature":"pin_save_share","reason":"empty"}],
			 "degraded":[],"as_of":"2023-11-14T22:13:20.123Z","fresh":null}`,
		},
		"pairs compared": {
			`{"features":["pair_close","pair_author_share"],"pairs":[["user:1","pin:3"],["user:1","pin:4"],["user:2","pin:3"],["user:1","pin:2"]]}`,
			`{"values":{
				"user:1|pin:3":{"pair_close":0.96,"pair_author_share":0.5},
				"user:1|pin:4":{"pair_close":null,"pair_author_share":null},
				"user:2|pin:3":{"pair_close":null,"pair_author_share":null},
				"user:1|pin:2":{"pair_close":0.8944271909999159,"pair_author_share":1}},
			 "missing":[
				{"entity":"user:1|pin:4","feature":"pair_close","reason":"pin"},
				{"entity":"user:1|pin:4","feature":"pair_author_share","reason":"pin"},
				{"entity":"user:2|pin:3","feature":"pair_close","reason":"empty"},
				{"entity":"user:2|pin:3","feature":"pair_author_share","reason":"empty"}],
			 "degraded":[],"as_of":"2023-11-14T22:13:20.123Z","fresh":null}`,
		},
		"missing once": {
			`{"features":["mean_price","mean_price"],"users":["user:2","user:2"]}`,
			`{"values":{"user:2":{"mean_price":null}},"missing":[{"entity":"user:2","feature":"mean_price","reason":"empty"}],
			 "degraded":[],"as_of":"2023-11-14T22:13:20.123Z","fresh":null}`,
		},
		"a pair with its user": {
			`{"features":["newest","saves","pair_pin"],"users":["user:2"],"pairs":[["user:1","pin:2"]]}`,
			`{"values":{"user:2":{"newest":[],"saves":0},"user:1|pin:2":{"pair_pin":1}},"missing":[],"degraded":[],"as_of":"2023-11-14T22:13:20.123Z","fresh":null}`,
		},
		"deleted users": {
			`{"features":["saves","pair_pin"],"users":["user:deleted"],"pairs":[["user:deleted","pin:1"]]}`,
			`{"values":{"user:deleted":{"saves":null},"user:deleted|pin:1":{"pair_pin":null}},
			 "missing":[{"entity":"user:deleted","feature":"saves","reason":"deleted"},{"entity":"user:deleted|pin:1","feature":"pair_pin","reason":"deleted"}],
			 "degraded":[],"as_of":"2023-11-14T22:13:20.123Z","fresh":null}`,
		},
	}
	s, _ := serviceOf{store: history(t), deleted: deleted{"user:deleted": true}}.start(t)
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			var req Request
			must.OK(t, json.Unmarshal([]byte(tt.request), &req))
			answer := must.Get(s.Answer(t.Context(), req))(t)
			got := must.Get(json.Marshal(answer))(t)
			same(t, "body", decoded(t, tt.want), decoded(t, string(got)), equal)
		})
	}
}

func decoded(t *testing.T, text string) any {
	t.Helper()
	var v any
	must.OK(t, json.Unmarshal([]byte(text), &v))
	return v
}

func TestRequest_ReportsEveryProblem(t *testing.T) {
	many := func(n int, quoted string) string {
		list := make([]string, n)
		for i := range list {
			list[i] = fmt.Sprintf(quoted, i)
		}
		return "[" + strings.Join(list, ",") + "]"
	}
	tests := map[string]struct {
		request string
		want    []string
	}{
		"nothing":         {`{}`, []string{"features: want at least one name", "no users, pins or pairs"}},
		"unknown feature": {`{"features":["saves","nope","neither"],"users":["user:1"]}`, []string{`features: "nope" is not defined`, `features: "neither" is not defined`}},
		"unknown set":     {`{"feature_sets":["nope","saving"],"users":["user:1"]}`, []string{`feature_sets: "nope" is not defined`}},
		"too many sets":   {`{"feature_sets":` + many(101, `"s%d"`) + `,"users":["user:1"]}`, []string{"feature_sets: 101: at most 100"}},
		"bad ids": {
			`{"features":["saves"],"users":["pin:1","user:"],"pins":["x"],"pairs":[["user:1","board:1"],["","pin:1"]]}`,
			[]string{"users: ", "users: ", "pins: ", "pairs: ", "pairs: "},
		},
		"too many features":    {`{"features":` + many(101, `"saves%d"`) + `,"users":["user:1"]}`, []string{"features: 101: at most 100"}},
		"too many users":       {`{"features":["saves"],"users":` + many(1001, `"user:%d"`) + `}`, []string{"users: 1001: at most 1000", "no users"}},
		"too many pins":        {`{"features":["pin_saves"],"pins":` + many(1001, `"pin:%d"`) + `}`, []string{"pins: 1001: at most 1000", "no users"}},
		"too many pairs":       {`{"features":["pair_pin"],"pairs":` + many(1001, `["user:1","pin:%d"]`) + `}`, []string{"pairs: 1001: at most 1000", "no users"}},
		"after the last year":  {`{"features":["saves"],"users":["user:1"],"at":"9999-12-31T23:59:59-01:00"}`, []string{"at: it is in the year 10000 by UTC"}},
		"before the first one": {`{"features":["saves"],"users":["user:1"],"at":"0000-01-01T00:00:00+01:00"}`, []string{"at: it is in the year -1 by UTC"}},
		"many problems":        {`{"features":["saves"],"users":` + many(1000, `"other:%d"`) + `}`, nil},
	}
	s, _ := serviceOf{store: history(t)}.start(t)
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			var req Request
			must.OK(t, json.Unmarshal([]byte(tt.request), &req))
			bad := must.As[*RequestError](t, expect.ErrorOf(s.Answer(t.Context(), req)))
			if tt.want == nil {
				expect.Equal(t, len(bad.Problems), maxProblems, "problems")
				return
			}
			must.Equal(t, len(bad.Problems), len(tt.want), "problems, %q", bad.Problems)
			for i, want := range tt.want {
				expect.Contains(t, bad.Problems[i], want, "problem")
			}
		})
	}
}

func TestUserPin_RejectsOtherJSON(t *testing.T) {
	var req Request
	for _, text := range []string{`{"pairs":[["user:1"]]}`, `{"pairs":[["user:1","pin:1","pin:2"]]}`, `{"pairs":["user:1"]}`} {
		expect.Error(t, json.Unmarshal([]byte(text), &req), "read pair: ", "%s", text)
	}
	text := must.Get(json.Marshal([]UserPin{{"user:1", "pin:1"}}))(t)
	expect.Equal(t, string(text), `[["user:1","pin:1"]]`, "JSON")
}

// faulty is a store that is slow or fails where a test says so.
type faulty struct {
	Store
	actions func(ctx context.Context, user schemas.UserID) error
	items   func(ctx context.Context) error
	pins    func(ctx context.Context) error
	hits    atomic.Int64
}

func (f *faulty) Actions(ctx context.Context, user schemas.UserID, span Span, defs []Definition) ([]Result, time.Time, error) {
	f.hits.Add(1)
	if f.actions != nil {
		if err := f.actions(ctx, user); err != nil {
			return nil, time.Time{}, err
		}
	}
	return f.Store.Actions(ctx, user, span, defs)
}

func (f *faulty) Items(ctx context.Context, pins []schemas.PinID, now schemas.Micros, defs []Definition) ([][]Result, time.Time, error) {
	f.hits.Add(1)
	if f.items != nil {
		if err := f.items(ctx); err != nil {
			return nil, time.Time{}, err
		}
	}
	return f.Store.Items(ctx, pins, now, defs)
}

func (f *faulty) Pins(ctx context.Context, pins []schemas.PinID, embeddings bool) (map[schemas.PinID]PinAttributes, time.Time, error) {
	f.hits.Add(1)
	if f.pins != nil {
		if err := f.pins(ctx); err != nil {
			return nil, time.Time{}, err
		}
	}
	return f.Store.Pins(ctx, pins, embeddings)
}

// empty is a store without rows.
type empty struct{}

func (empty) Actions(_ context.Context, _ schemas.UserID, span Span, defs []Definition) ([]Result, time.Time, error) {
	return NewEvaluation(span, defs, 1).Results(), time.Time{}, nil
}

func (empty) Items(_ context.Context, pins []schemas.PinID, now schemas.Micros, defs []Definition) ([][]Result, time.Time, error) {
	out := make([][]Result, len(pins))
	p := NewItemEvaluation(defs, now)
	for i := range out {
		out[i] = p.Evaluate(nil)
	}
	return out, time.Time{}, nil
}

func (empty) Pins(context.Context, []schemas.PinID, bool) (map[schemas.PinID]PinAttributes, time.Time, error) {
	return nil, time.Time{}, nil
}

func TestAnswer_DegradesOnStoreFailure(t *testing.T) {
	down := errors.New("down")
	fail := func(context.Context) error { return down }
	tests := map[string]struct {
		store   *faulty
		request Request
		want    map[string]map[string]Value
		missing []Missing
	}{
		"one user": {
			&faulty{actions: func(_ context.Context, u schemas.UserID) error {
				if u == "user:2" {
					return down
				}
				return nil
			}},
			Request{Features: []string{"saves"}, Users: []schemas.UserID{"user:1", "user:2"}},
			map[string]map[string]Value{"user:1": {"saves": Number(0)}, "user:2": {"saves": nil}},
			[]Missing{{"user:2", "saves", Failed}},
		},
		"items": {
			&faulty{items: fail},
			Request{Features: []string{"saves", "pin_saves"}, Users: []schemas.UserID{"user:1"}, Pins: []schemas.PinID{"pin:1"}},
			map[string]map[string]Value{"user:1": {"saves": Number(0)}, "pin:1": {"pin_saves": nil}},
			[]Missing{{"pin:1", "pin_saves", Failed}},
		},
		"pins": {
			&faulty{pins: fail},
			Request{Features: []string{"pair_author", "pair_pin"}, Pairs: []UserPin{{"user:1", "pin:1"}}},
			map[string]map[string]Value{"user:1|pin:1": {"pair_author": nil, "pair_pin": Number(0)}},
			[]Missing{{"user:1|pin:1", "pair_author", Failed}},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			tt.store.Store = empty{}
			var log bytes.Buffer
			s, metrics := serviceOf{store: tt.store, log: slog.New(slog.NewTextHandler(&log, nil))}.start(t)
			got := must.Get(s.Answer(t.Context(), tt.request))(t)
			same(t, "answer", Answer{Values: tt.want, Missing: tt.missing, Degraded: []string{"store"}, AsOf: nowMS.Time()}, got)
			expect.AtLeast(t, tt.store.hits.Load(), 1, "reads of the store")
			expect.Equal(t, strings.Count(log.String(), "error=down"), 1, "times that the error is logged in %s", &log)
			expect.Equal(t, metricstest.Sum(t, metrics, "smartfeed_features_degraded_responses_total"), 1, "counted degraded answers")
		})
	}
}

func TestAnswer_KeepsDeadline(t *testing.T) {
	for name, fault := range map[string]func(release <-chan struct{}) func(context.Context, schemas.UserID) error{
		"slow": func(<-chan struct{}) func(context.Context, schemas.UserID) error {
			return func(ctx context.Context, u schemas.UserID) error {
				if u == "user:1" {
					return nil
				}
				<-ctx.Done()
				return ctx.Err()
			}
		},
		"ignores its context": func(release <-chan struct{}) func(context.Context, schemas.UserID) error {
			return func(_ context.Context, u schemas.UserID) error {
				if u != "user:1" {
					<-release
				}
				return nil
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				release := make(chan struct{})
				store := &faulty{Store: empty{}, actions: fault(release)}
				s, _ := serviceOf{store: store, now: time.Now}.start(t)
				start := time.Now()
				got := must.Get(s.Answer(t.Context(), Request{Features: []string{"saves"}, Users: []schemas.UserID{"user:1", "user:2"}}))(t)
				expect.Equal(t, time.Since(start), DefaultConfig().Timeout, "took")
				want := Answer{
					Values:  map[string]map[string]Value{"user:1": {"saves": Number(0)}, "user:2": {"saves": nil}},
					Missing: []Missing{{"user:2", "saves", Deadline}}, Degraded: []string{"deadline"}, AsOf: got.AsOf,
				}
				same(t, "answer", want, got)
				close(release)
				s.Close() // waits for the scan that ignores its context
			})
		})
	}
}

func TestFindings_IgnoresLateResults(t *testing.T) {
	s, _ := serviceOf{store: empty{}}.start(t)
	f := newFindings()
	s.gather(t.Context(), f, nil)
	f.close()
	f.note(t.Context(), task{}, func(*findings) { t.Error("noted") }, nil)
}

func TestAnswer_ReturnsContextErrorToCaller(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	store := &faulty{Store: empty{}, actions: func(ctx context.Context, _ schemas.UserID) error { cancel(); <-ctx.Done(); return ctx.Err() }}
	s, _ := serviceOf{store: store}.start(t)
	_, err := s.Answer(ctx, Request{Features: []string{"saves"}, Users: []schemas.UserID{"user:1"}})
	expect.Is(t, err, context.Canceled, "answer")
}

func TestAnswer_BoundsConcurrentScans(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var under, most atomic.Int64
		store := &faulty{Store: empty{}, actions: func(context.Context, schemas.UserID) error {
			if n := under.Add(1); n > most.Load() {
				most.Store(n)
			}
			<-time.After(time.Millisecond)
			under.Add(-1)
			return nil
		}}
		cfg := DefaultConfig()
		cfg.MaxConcurrentScans = 3
		s, _ := serviceOf{store: store, cfg: cfg, now: time.Now}.start(t)
		req := Request{Features: []string{"saves"}}
		for i := range 20 {
			req.Users = append(req.Users, schemas.UserID(fmt.Sprint("user:", i)))
		}
		done := make(chan error)
		for range 4 {
			go func() {
				answer, err := s.Answer(t.Context(), req)
				if err == nil && len(answer.Degraded) > 0 {
					err = fmt.Errorf("degraded: %v", answer.Degraded)
				}
				done <- err
			}()
		}
		for range 4 {
			expect.Error(t, <-done, "", "answer")
		}
		expect.Equal(t, most.Load(), 3, "scans at once")
	})
}

// parted is a store that reports a freshness per user, and per read of pins that of its first pin.
type parted struct {
	empty
	fresh map[schemas.UserID]time.Time
	pins  map[schemas.PinID]time.Time
}

func (p parted) Pins(_ context.Context, pins []schemas.PinID, _ bool) (map[schemas.PinID]PinAttributes, time.Time, error) {
	return nil, p.pins[pins[0]], nil
}

func (p parted) Actions(ctx context.Context, user schemas.UserID, span Span, defs []Definition) ([]Result, time.Time, error) {
	results, _, err := p.empty.Actions(ctx, user, span, defs)
	return results, p.fresh[user], err
}

// If the store reports a freshness with its results, an answer has that of its least fresh result. Other answers do not
// matter.
func TestAnswer_ReportsLeastFreshResult(t *testing.T) {
	early, late := now.Time().Add(-time.Hour), now.Time()
	s, _ := serviceOf{store: parted{fresh: map[schemas.UserID]time.Time{"user:early": early, "user:late": late}}}.start(t)
	for _, tt := range []struct {
		users []schemas.UserID
		pins  []schemas.PinID
		want  *time.Time
	}{
		{[]schemas.UserID{"user:late"}, nil, &late},
		{[]schemas.UserID{"user:early"}, nil, &early},
		{[]schemas.UserID{"user:late", "user:early"}, nil, &early},
		{[]schemas.UserID{"user:late", "user:silent"}, nil, nil},
		{nil, []schemas.PinID{"pin:1"}, nil},
	} {
		answer := must.Get(s.Answer(t.Context(), Request{Features: []string{"saves", "pin_saves"}, Users: tt.users, Pins: tt.pins}))(t)
		same(t, fmt.Sprintf("%v, %v", tt.users, tt.pins), tt.want, answer.Fresh)
	}
}

// Attributes of pins are read in parts. The answer has the freshness of the least fresh part.
func TestAttributes_ReportsLeastFreshPart(t *testing.T) {
	early, late := now.Time().Add(-time.Hour), now.Time()
	s, _ := serviceOf{store: parted{pins: map[schemas.PinID]time.Time{"pin:early": early, "pin:late": late}}}.start(t)
	of := func(first ...schemas.PinID) (pins []schemas.PinID) {
		for _, pin := range first {
			pins = append(pins, pin)
			for i := range DefaultPinsPerScan - 1 {
				pins = append(pins, schemas.PinID(fmt.Sprint(pin, "-", i)))
			}
		}
		return pins
	}
	for _, tt := range []struct {
		pins []schemas.PinID
		want *time.Time
	}{{of("pin:late"), &late}, {of("pin:late", "pin:early"), &early}, {of("pin:late", "pin:silent"), nil}} {
		answer := must.Get(s.Attributes(t.Context(), AttributesRequest{Pins: tt.pins}))(t)
		same(t, fmt.Sprintf("%d pins", len(tt.pins)), tt.want, answer.Fresh)
	}
	s.deps.Fresh = func() (time.Time, bool) { return early, true } // as the embedded store
	answer, err := s.Attributes(t.Context(), AttributesRequest{Pins: of("pin:late")})
	if err != nil || answer.Fresh == nil || !answer.Fresh.Equal(early) {
		t.Errorf("fresh to %v, %v, want %v", answer.Fresh, err, early)
	}
}

func TestAnswer_ScansEachUserOnce(t *testing.T) {
	store := &faulty{Store: empty{}}
	s, _ := serviceOf{store: store}.start(t)
	must.Get(s.Answer(t.Context(), Request{
		Features: []string{"saves", "mean_price", "newest", "pair_pin"},
		Users:    []schemas.UserID{"user:1", "user:2"},
		Pairs:    []UserPin{{"user:1", "pin:1"}, {"user:1", "pin:2"}, {"user:3", "pin:1"}},
	}))(t)
	expect.Equal(t, store.hits.Load(), 3, "scans: one for each of 3 users")
}

func TestDefinitions_ReturnsFileOrder(t *testing.T) {
	s, _ := serviceOf{store: empty{}}.start(t)
	text := must.Get(json.Marshal(s.Definitions()))(t)
	const first = `{"name":"saves","entity":"user","verbs":["save"],"window":"96h","aggregate":"count"}`
	expect.True(t, strings.HasPrefix(string(text), "["+first), "%s begins with %s", text, first)
}

func TestNewService_Rejects(t *testing.T) {
	defs := []Definition{{Name: "a"}, {Name: "a"}}
	expect.Error(t, expect.ErrorOf(NewService(DefaultConfig(), Deps{Definitions: defs})), "two definitions of a", "two of one name")
	expect.Error(t, expect.ErrorOf(NewService(Config{}, Deps{})), "feature service: timeout: 0s: want 1ms to 1m", "a zero configuration")
	expect.Error(t, expect.ErrorOf(NewSink(Config{}, SinkDeps{})), "feature sink: timeout: 0s: want 1ms to 1m", "a zero configuration")
	reg := prometheus.NewRegistry()
	must.Get(NewMetrics(reg))(t)
	expect.Error(t, expect.ErrorOf(NewMetrics(reg)), "register metrics: duplicate", "the same metrics")
}

func TestAttributes_DeletedAuthorsPinIsUnknown(t *testing.T) {
	s, _ := serviceOf{store: history(t), deleted: deleted{"user:ada": true}}.start(t)
	got := must.Get(s.Attributes(t.Context(), AttributesRequest{Pins: []schemas.PinID{"pin:1", "pin:2"}}))(t)
	if _, known := got.Pins["pin:2"]; !known || len(got.Pins) != 1 {
		t.Errorf("got %v, want only pin:2", got.Pins)
	}
	expect.NoDiff(t, got.Missing, []MissingPin{{"pin:1", Unknown}}, "missing")
}

// same fails the test if got differs from want. what describes the values.
func same[V any](t expect.T, what string, want, got V, opts ...cmp.Option) {
	t.Helper()
	expect.NoDiffBut(t, cmp.Options(opts), got, want, "%s", what)
}
