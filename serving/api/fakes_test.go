package api

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/smartfeed/smartfeed/internal/experiment"
	"github.com/smartfeed/smartfeed/internal/testkit/logtest"
	"github.com/smartfeed/smartfeed/internal/testkit/must"
	"github.com/smartfeed/smartfeed/schemas"
	"github.com/smartfeed/smartfeed/serving/feature"
	"github.com/smartfeed/smartfeed/serving/feed"
	"github.com/smartfeed/smartfeed/serving/insight"
	"github.com/smartfeed/smartfeed/topics"
)

// now is the server's clock in these tests.
var now = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

var errBroken = errors.New("secret inside")

// fakes implements all dependencies of the server. The zero value succeeds; fail makes every call fail.
type fakes struct {
	fail    error
	hold    func(context.Context) // called by visits, publications and counts; nil: no delay
	missing []string

	mu        sync.Mutex
	count     int
	counted   int // number of calls of Waiting
	visits    []visit
	published [][]schemas.Line
	publisher string // operator of the last publication
	requests  []feature.Request
	seen      []any // viewers of lists and related pins, and whether whys were masked
}

func (f *fakes) sees(v any) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.seen = append(f.seen, v)
}

type visit struct {
	user  schemas.UserID
	feed  string
	limit int
	how   string // "": a visit; "peek", or the key of the visit
}

const goodCursor = "good"

func text(s string) *string { return &s }

func somePin() feed.Pin {
	board := schemas.BoardID("board:b")
	return feed.Pin{ID: "pin:1", Time: now, Author: "user:a", Board: &board, Interests: []schemas.InterestID{"interest:tea"},
		Title: "Oolong", Link: "https://pins.example/1"}
}

func (f *fakes) held(ctx context.Context) error {
	if f.hold != nil {
		f.hold(ctx)
	}
	return f.fail
}

func (f *fakes) Visit(ctx context.Context, user schemas.UserID, name string, limit int) (feed.Page, error) {
	return f.newest(ctx, visit{user, name, limit, ""})
}

func (f *fakes) VisitOnce(ctx context.Context, user schemas.UserID, name string, limit int, key string) (feed.Page, error) {
	return f.newest(ctx, visit{user, name, limit, key})
}

func (f *fakes) Peek(ctx context.Context, user schemas.UserID, name string, limit int) (feed.Page, error) {
	return f.newest(ctx, visit{user, name, limit, "peek"})
}

func (f *fakes) newest(ctx context.Context, v visit) (feed.Page, error) {
	name := v.feed
	f.mu.Lock()
	f.visits = append(f.visits, v)
	f.mu.Unlock()
	if name != "home" && name != "plain" {
		return feed.Page{}, schemas.ErrUnknownFeed
	}
	return feed.Page{
		Items: []feed.Item{{Pin: somePin(), New: true, Source: "following", RankScore: 1.5}}, Next: text(goodCursor), Degraded: []string{},
	}, f.held(ctx)
}

func (f *fakes) Older(ctx context.Context, _ schemas.UserID, cursor string, _ int) (feed.Page, error) {
	if cursor != goodCursor {
		return feed.Page{}, feed.ErrBadCursor
	}
	pin := somePin()
	pin.ID, pin.Board, pin.Interests = "pin:2", nil, []schemas.InterestID{}
	return feed.Page{Items: []feed.Item{{Pin: pin, Source: "interest", RankScore: 1}}, Degraded: []string{"store"}}, f.held(ctx)
}

func (f *fakes) Why(ctx context.Context, user schemas.UserID, name string, pin schemas.PinID, masked bool) (*schemas.Why, error) {
	f.sees(masked)
	w := &schemas.Why{User: user, Pin: pin, Feed: name}
	switch {
	case name != "home" && name != "plain":
		return w, schemas.ErrUnknownFeed
	case pin == "pin:shown":
		score := schemas.RankScore(1.5)
		w.Fate, w.Reason, w.By = schemas.FateShown, schemas.ReasonBlock, []schemas.ID{"user:a"}
		w.Shown = &schemas.Shown{Time: schemas.Timestamp(schemas.MicrosOf(now)), Position: 7, Source: "following", RankScore: &score}
	default:
		w.Fate, w.Place, w.Since, w.Arm = schemas.FateNext, 3, schemas.Timestamp(schemas.MicrosOf(now)), "calm"
		w.Candidates = []schemas.WhyCandidate{
			{Source: "interest", Rank: 2, Edges: []schemas.ID{"interest:tea"}, RankScore: 3, Parts: map[string]float64{"created": 2, "edge": 1}},
			{Source: "related", Reason: schemas.ReasonSeen, Edges: []schemas.ID{}, Parts: map[string]float64{}},
		}
	}
	return w, f.held(ctx)
}

func (f *fakes) Waiting(ctx context.Context, _ schemas.UserID) (int, error) {
	err := f.held(ctx)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.counted++
	return f.count, err
}

func (f *fakes) set(count int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.count = count
}

func (f *fakes) List(ctx context.Context, _ schemas.Followee, viewer schemas.UserID, cursor string, _ int) (feed.ListPage, error) {
	f.sees(viewer)
	if cursor != "" && cursor != goodCursor {
		return feed.ListPage{}, feed.ErrBadCursor
	}
	return feed.ListPage{Items: []feed.Pin{somePin()}, Degraded: []string{}}, f.held(ctx)
}

func (f *fakes) RelatedPins(ctx context.Context, _ schemas.PinID, viewer schemas.UserID, _ int) (feed.RelatedPins, error) {
	f.sees(viewer)
	item := feed.RelatedPin{Pin: somePin(), Share: 0.25}
	return feed.RelatedPins{Items: []feed.RelatedPin{item}, Degraded: []string{}}, f.held(ctx)
}

func (f *fakes) RelatedInterests(ctx context.Context, _ schemas.InterestID, _ int) (feed.RelatedInterests, error) {
	item := feed.RelatedInterest{Interest: "interest:tea", Share: 0.5}
	return feed.RelatedInterests{Items: []feed.RelatedInterest{item}, Degraded: []string{}}, f.held(ctx)
}

func (f *fakes) Pool(_ context.Context, _ schemas.UserID, source schemas.Source, limit int) (*schemas.Pool, error) {
	items := []schemas.PoolItem{
		{Pin: "pin:1", PoolScore: 2, Time: schemas.Timestamp(schemas.MicrosOf(now)), Facets: schemas.Facets{Author: "user:a", Board: "board:b"}},
		{Pin: "pin:2", PoolScore: 1, Time: -1 << 63, Facets: schemas.Facets{Author: "user:a"}},
		{Pin: "pin:3", PoolScore: 0, Time: 1<<63 - 1, Facets: schemas.Facets{Author: "user:a"}},
	}
	return &schemas.Pool{Source: source, Total: 7, Items: items[:min(limit, len(items))]}, f.fail
}

func (f *fakes) FeedState(_ context.Context, _ schemas.UserID, name string) (*schemas.FeedState, error) {
	if name != "home" && name != "plain" {
		return nil, schemas.ErrUnknownFeed
	}
	if name == "plain" {
		return &schemas.FeedState{Feed: name}, f.fail
	}
	return &schemas.FeedState{
		Feed: name, Arm: "calm", Degraded: []string{"items"},
		Sources:    []schemas.SourceState{{Source: "following", Waiting: 7, Target: 1, Shown: 2.5}},
		Deferred:   []schemas.DeferredCandidate{{Pin: "pin:1", Reason: schemas.ReasonDeferredEarlier, Since: schemas.Timestamp(schemas.MicrosOf(now))}, {Pin: "pin:2", Reason: schemas.ReasonWeak}},
		Affinities: []schemas.Affinity{{Facet: "interest:tea", Value: 0.5}},
	}, f.fail
}

// Users returns the users whose ids start with a prefix of user:abc, but none without a prefix.
func (f *fakes) Users(_ context.Context, prefix string, limit int) ([]schemas.UserID, error) {
	if prefix == "user:" {
		return nil, f.fail
	}
	all := []schemas.UserID{"user:a", "user:ab", "user:abc"}
	return all[:min(limit, len(all))], f.fail
}

func (f *fakes) Graph(_ context.Context, user schemas.UserID, limit int) (*schemas.UserGraph, error) {
	return &schemas.UserGraph{User: user, Follows: []schemas.Followed{{ID: "interest:tea", Weight: 1.5}}, Following: limit, Followers: 3}, f.fail
}

func (f *fakes) config(changed bool) (any, error) {
	if changed {
		return map[string]any{}, f.fail
	}
	return map[string]any{"pools": map[string]any{"max_candidates": 600}}, f.fail
}

// deadLetters implements DeadLetters.
type deadLetters struct{ fail error }

func (l deadLetters) List(_ context.Context, limit int) ([]DeadLetter, error) {
	list := []DeadLetter{
		{Partition: 1, Offset: 2, Unreadable: "no record"},
		{Partition: 3, Offset: 4, Retried: true, DeadLetter: schemas.DeadLetter{
			Topic: topics.Actions, Partition: 5, Offset: 6, Group: topics.Objects, Reason: "unknown verb", Attempts: 2, FirstPartition: 5, FirstOffset: 3,
			Time: schemas.MicrosOf(now), Key: []byte("pin:1"), Value: []byte{0, 255},
		}},
	}
	return list[len(list)-min(limit, len(list)):], l.fail
}

func (l deadLetters) Retry(context.Context, string) (Retried, error) {
	return Retried{Published: 2, Topics: map[string]int{topics.Actions: 2}, Skipped: 1}, l.fail
}

func (l deadLetters) Kinds(context.Context) ([]schemas.RetryKind, error) {
	at := new(schemas.Timestamp(schemas.MicrosOf(now)))
	states := map[schemas.RetryState]int64{schemas.RetryWaiting: 3, schemas.RetrySent: 0, schemas.RetryDone: 1, schemas.RetryParked: 0}
	return []schemas.RetryKind{
		{Kind: "actions/objects/a", Topic: topics.Actions, Group: topics.Objects, Reason: "a", Rate: 2.5, States: states, Next: at},
		{Kind: "actions/objects/b", Topic: topics.Actions, Group: topics.Objects, Reason: "b", Operator: "ann", States: states},
	}, l.fail
}

func (l deadLetters) Retries(_ context.Context, kind string, state schemas.RetryState, limit int) ([]schemas.RetriedDeadLetter, error) {
	at := new(schemas.Timestamp(schemas.MicrosOf(now)))
	return []schemas.RetriedDeadLetter{
		{Kind: kind, Topic: topics.Actions, Offset: 7, Group: topics.Objects, Reason: "odd", State: schemas.RetryWaiting, Attempts: int32(limit), Since: *at, Due: at},
		{Kind: "k", Topic: topics.Actions, Group: topics.Objects, Reason: "bad", State: schemas.RetryParked, Why: "because", Since: *at},
	}, l.fail
}

func (l deadLetters) Limit(_ context.Context, limit schemas.RetryLimit, _ string) error {
	if limit.Scope == "nothing" {
		return schemas.Bad("there is no topic")
	}
	return l.fail
}

// terms implements Dictionary.
type terms struct{ fail error }

func (d terms) Terms(_ context.Context, state schemas.TermState, limit int) ([]schemas.DictionaryTerm, error) {
	t := schemas.DictionaryTerm{Term: "oolong tea", State: state, Score: 1.5, Pins: int64(limit), People: 3, Recent: 0.5}
	if state == schemas.TermRejected {
		t.Reason, t.Operator, t.Decided = "a brand", "ann", new(schemas.Timestamp(schemas.MicrosOf(now)))
	}
	return []schemas.DictionaryTerm{t}, d.fail
}

func (d terms) Fold(text string) string { return strings.ToLower(text) }

func (d terms) Blocked(term string) string {
	if term == "sale" {
		return "advertising"
	}
	return ""
}

// Decided has a decision on one term, which was reopened an hour ago.
func (d terms) Decided(term string) (schemas.InterestDecision, bool) {
	at := schemas.MicrosOf(now.Add(-time.Hour))
	return schemas.InterestDecision{Term: term, State: schemas.TermCandidate, Time: at}, term == "reopened"
}

func (d terms) Decide(context.Context, schemas.InterestDecision) error { return d.fail }

func (d terms) Interests(_ context.Context, _ schemas.UserID, limit int) ([]schemas.UserInterest, error) {
	e := schemas.Evidence{Pin: "pin:1", Verb: "save", Weight: float64(limit), Time: schemas.Timestamp(schemas.MicrosOf(now))}
	return []schemas.UserInterest{{Interest: "interest:tea", Strength: 2, Share: 1, Evidence: []schemas.Evidence{e}}, {Interest: "interest:none"}}, d.fail
}

func (d terms) Engagement(_ context.Context, _ schemas.InterestID, days int) ([]schemas.SourceEngagement, error) {
	return []schemas.SourceEngagement{
		{Source: schemas.DirectSource, Counts: map[string]int64{"click": 4, "\x1b[2J": 5}},
		{Source: "following", Counts: map[string]int64{schemas.ImpressionCount: 120, "save": int64(days)}},
	}, d.fail
}

func (f *fakes) Answer(_ context.Context, req feature.Request) (feature.Answer, error) {
	f.mu.Lock()
	f.requests = append(f.requests, req)
	f.mu.Unlock()
	if len(req.Features)+len(req.FeatureSets) == 0 {
		return feature.Answer{}, &feature.RequestError{Problems: []string{"features: want at least one name", "no users, pins or pairs"}}
	}
	return feature.Answer{
		Values: map[string]map[string]feature.Value{"user:a": {
			"interests": feature.Groups{"interest:tea": 2, "interest:art": 3}, "number": feature.Number(1.25), "none": nil,
			"last":  feature.Last{{Object: "pin:1", Verb: "save", Timestamp: now}},
			"top":   feature.Top{{Value: "interest:tea", Count: 1234567}},
			"taste": feature.Vector{0.5, 1, 2, 3, 4},
			"sequence": feature.Sequence{Times: []int64{1}, Columns: map[string]feature.Column{
				"verb": {Texts: []string{"save"}}, "objectAttributes.embedding": {Vectors: [][]float32{nil}, Scales: []float32{0}},
			}},
		}},
		Missing:  []feature.Missing{{Entity: "user:a", Feature: "none", Reason: feature.Empty}},
		Degraded: []string{}, AsOf: now,
	}, f.fail
}

func (f *fakes) Attributes(_ context.Context, req feature.AttributesRequest) (feature.AttributesAnswer, error) {
	if len(req.Pins) == 0 {
		return feature.AttributesAnswer{}, &feature.RequestError{Problems: []string{"no pins"}}
	}
	return feature.AttributesAnswer{
		Pins: map[schemas.PinID]feature.Attributes{"pin:1": {
			Author: "user:a", Board: "board:b", Interests: []schemas.InterestID{"interest:tea"},
			Attributes: map[string]string{"color": "red"}, Embedding: []float32{0.5, 1},
		}},
		Missing: []feature.MissingPin{{Entity: "pin:2", Reason: feature.Unknown}}, Degraded: []string{}, Fresh: &now,
	}, f.fail
}

// within rejects the values that insight.Service rejects.
func within(name string, n, most int) error {
	if n < 1 || n > most {
		return &insight.RequestError{Problem: fmt.Sprintf("%s: want 1 to %d", name, most)}
	}
	return nil
}

func (f *fakes) Growth(_ context.Context, days int) ([]schemas.GrowthDay, error) {
	if err := within("days", days, insight.MaxDays); err != nil {
		return nil, err
	}
	return []schemas.GrowthDay{{Day: "2026-11-20", New: 1, Daily: 3, Active: 5, Resurrected: 1, Dormant: 2}}, f.fail
}

func (f *fakes) Xd28s(context.Context) ([]schemas.Xd28, error) {
	return []schemas.Xd28{{Days: 1, Users: 7}}, f.fail
}

func (f *fakes) Retention(_ context.Context, weeks int) ([]schemas.Cohort, error) {
	if err := within("weeks", weeks, insight.MaxWeeks); err != nil {
		return nil, err
	}
	return []schemas.Cohort{{Week: "2026-11-16", Users: 4, Active: []int{4, 2}}}, f.fail
}

func (f *fakes) Funnel(_ context.Context, steps []schemas.Verb, _ time.Duration, days int) ([]schemas.FunnelStep, error) {
	if err := within("days", days, 35); err != nil {
		return nil, err
	}
	return []schemas.FunnelStep{{Verb: steps[0], Users: 9}}, f.fail
}

func (f *fakes) Experiments(_ context.Context, verbs []schemas.Verb, days int) ([]experiment.Experiment, error) {
	if err := within("days", days, 35); err != nil {
		return nil, err
	}
	estimate, needed := experiment.Estimate{Value: 0.3, Low: 0.2, High: 0.4, StdErr: 0.05}, 12.5
	return []experiment.Experiment{{Feed: "home", SampleRatio: &experiment.SampleRatio{PValue: 0.5}, Arms: []experiment.Arm{{
		Count:   experiment.Count{Arm: "calm", Share: 0.5, Users: 7},
		Actions: []experiment.Rate{{Verb: string(verbs[0]), PerItem: &estimate, DaysNeeded: &needed}},
	}}}}, f.fail
}

func (f *fakes) Popularity(_ context.Context, limit int) ([]schemas.Popular, error) {
	if err := within("limit", limit, insight.MaxPopular); err != nil {
		return nil, err
	}
	return []schemas.Popular{{Interest: "interest:tea", Actions: 3}}, f.fail
}

func (f *fakes) Try(_ context.Context, req feature.TryRequest) (feature.TryAnswer, error) {
	if req.Definition == "" {
		return feature.TryAnswer{}, &feature.RequestError{Problems: []string{"definition:1: no features: want a list under the key features"}}
	}
	return feature.TryAnswer{
		Definitions: defined,
		Answer: feature.Answer{
			Values:  map[string]map[string]feature.Value{"user:a": {"interests": feature.Groups{"interest:tea": 2}}},
			Missing: []feature.Missing{}, Degraded: []string{}, AsOf: now,
		},
	}, f.fail
}

func (f *fakes) Definitions() []feature.Definition {
	if f.fail != nil {
		panic(f.fail) // Definitions has no other way to fail
	}
	return defined
}

var defined = []feature.Definition{{Name: "interests", Description: "what it counts", Entity: feature.User, Window: time.Hour, Aggregate: feature.Count, Sets: []string{"ranking"}}, {Name: "number", Entity: feature.User, Window: time.Hour, Aggregate: feature.Count}}

func (f *fakes) PublishAs(ctx context.Context, operator string, lines []schemas.Line) error {
	if err := f.held(ctx); err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.published, f.publisher = append(f.published, lines), operator
	return nil
}

func (f *fakes) Known(context.Context, schemas.UserID) (bool, error) { return true, f.fail }

// brokenMetric cannot be gathered.
type brokenMetric struct{ err error }

func (m brokenMetric) desc() *prometheus.Desc {
	return prometheus.NewDesc("broken", "Broken.", nil, nil)
}
func (m brokenMetric) Describe(to chan<- *prometheus.Desc) { to <- m.desc() }
func (m brokenMetric) Collect(to chan<- prometheus.Metric) {
	to <- prometheus.NewInvalidMetric(m.desc(), m.err)
}

func (f *fakes) status(context.Context) any {
	if f.fail != nil {
		return f.hold // a function cannot be encoded as JSON
	}
	return map[string]any{
		"version": "v1", "ready": true, "missing": []string{},
		"components": []any{map[string]any{"name": "pools", "condition": "running", "since": now, "restarts": 2, "last_error": "it broke"}},
		"processes": []any{
			map[string]any{"address": "here:1", "version": "v1", "ready": true, "missing": []string{}, "components": []any{}},
			map[string]any{"address": "there:1", "version": "v0", "ready": false, "missing": []string{"pools is waiting"}, "components": []any{
				map[string]any{"name": "pools", "condition": "waiting", "since": now, "restarts": 4, "last_error": "it broke there"},
			}},
		},
		"dir":         "/var/lib/smartfeed",
		"unavailable": []any{map[string]any{"source": "other:1", "reason": "it does not answer"}},
		"stores":      []any{map[string]any{"name": "primary", "kind": "cassandra", "connected": true}, map[string]any{"name": "features", "kind": "pinot"}},
		"groups": []any{map[string]any{
			"group": "pools", "starts": 1, "restarts": 4, "joined": true, "ready": true,
			"partitions": []any{map[string]any{"partition": 0, "process": "there:1", "stage": "running", "table_offset": 5}},
			"counters":   map[string]any{"records": 12, "dead_letters": 3}, "records_per_second": 1.5, "lag": map[string]any{"served": 2, "edges": 1},
		}},
		"flows": []any{map[string]any{
			"topic": "served", "key": "user", "writers": []string{"serving"}, "records": 9,
			"readers": []any{map[string]any{"group": "pools", "topic": "served", "records": 2}},
		}},
		"shares": []any{map[string]any{"feed": "home", "source": "following", "target": 0.6, "items": 7}},
	}
}

func (f *fakes) ready() []string {
	if f.fail != nil {
		panic(f.fail)
	}
	return f.missing
}

func (f *fakes) deps() Deps {
	registry := prometheus.NewRegistry()
	if f.fail != nil {
		registry.MustRegister(brokenMetric{f.fail})
	}
	return Deps{
		Feed: f, Directory: f, Config: f.config, Features: f, Insights: f, Publisher: f, Known: f, DeadLetters: deadLetters{f.fail}, Dictionary: terms{f.fail}, Verbs: schemas.DefaultVerbs, Status: f.status, Ready: f.ready,
		Metrics: registry, Gatherer: registry, Now: func() time.Time { return now },
		Console: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/html; charset=utf-8")
			_, _ = w.Write([]byte("the console"))
		}),
	}
}

// listen returns a server on a free port. Tests call its handler or Run.
func listen(t testing.TB, f *fakes, change func(*Config, *Deps)) *Server {
	t.Helper()
	cfg, deps := DefaultConfig(), f.deps()
	if change != nil {
		change(&cfg, &deps)
	}
	s := must.Get(Listen("127.0.0.1:0", cfg, deps))(t)
	t.Cleanup(func() { must.OK(t, s.Close()) })
	return s
}

// recorder accepts deadlines, as a connection does.
type recorder struct{ *httptest.ResponseRecorder }

func (recorder) SetReadDeadline(time.Time) error  { return nil }
func (recorder) SetWriteDeadline(time.Time) error { return nil }

// withoutDeadlines hides the support for deadlines from h.
func withoutDeadlines(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h.ServeHTTP(struct{ http.ResponseWriter }{w}, r)
	})
}

// roundTrip sends one request to the server's handler. A stream ends after its first event.
func roundTrip(s *Server, method, path, body string, header ...string) *http.Response {
	return roundTripTo(s.handler(), method, path, strings.NewReader(body), header...)
}

func roundTripTo(h http.Handler, method, path string, body io.Reader, header ...string) *http.Response {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	if strings.Contains(path, "/feed/events") {
		cancel()
	}
	r := httptest.NewRequestWithContext(ctx, method, "http://127.0.0.1:8080"+path, body)
	for i := 0; i+1 < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	w := recorder{httptest.NewRecorder()}
	if r.Header.Get("Transfer-Encoding") == "chunked" {
		r.ContentLength = -1
	}
	h.ServeHTTP(w, r)
	return w.Result()
}

// logged keeps the log of a server.
type logged struct{ logtest.Log }

func (l *logged) logger(level slog.Level) *slog.Logger {
	return slog.New(slog.NewTextHandler(l, &slog.HandlerOptions{Level: level}))
}
