package app

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/smartfeed/smartfeed/internal/testkit/eventually"
	"github.com/smartfeed/smartfeed/internal/testkit/expect"
	"github.com/smartfeed/smartfeed/internal/testkit/must"
	"github.com/smartfeed/smartfeed/schemas"
	"github.com/smartfeed/smartfeed/serving/feature"
	"github.com/smartfeed/smartfeed/serving/featurelog"
	"github.com/smartfeed/smartfeed/topics"
)

// publish posts events and waits until all are processed.
func (s *started) publish(events ...map[string]any) {
	s.t.Helper()
	if status, text := s.api().send("/v1/events", lines(s.t, events...)); status != http.StatusAccepted {
		s.t.Fatalf("events: %d %s", status, text)
	}
	s.wait()
}

// wait waits until all published events have been processed, but not by a fake Pinot.
func (s *started) wait() {
	s.t.Helper()
	if s.cfg.usesPinot() {
		ctx, cancel := context.WithTimeout(s.t.Context(), time.Minute)
		defer cancel()
		must.OK(s.t, topics.Wait(ctx, s.kafka, schemas.MicrosOf(time.Now()), nil, s.readers()...))
		return
	}
	if out, err := s.run("wait", "--timeout", processingTimeout); err != nil {
		s.t.Fatalf("wait: %v %s", err, out)
	}
}

// liking returns pins with embeddings and attributes, users with embeddings, and the users' actions on the pins.
func liking(at time.Time) []map[string]any {
	var s story
	for i := range 5 {
		s.addAt(at.Add(-time.Hour), "pins", "user:author", "create", fmt.Sprint("pin:", i), map[string]any{
			"interests": []string{fmt.Sprint("interest:", i%2)}, "embedding": []float64{float64(i), 1}, "attributes": map[string]string{"price": fmt.Sprint(10 * i)},
		})
	}
	for u := range 3 {
		user := fmt.Sprint("user:", u)
		s.addAt(at.Add(-time.Hour), "users", user, "update", user, map[string]any{"embedding": []float64{1, float64(u)}})
		for i := range 4 {
			verb := []string{"view", "click", "save", "save"}[i]
			s.addAt(at.Add(-time.Duration(i)*time.Minute), "actions", user, verb, fmt.Sprint("pin:", i), nil)
		}
	}
	return s.events
}

// The feature log records responses exactly once. "verify" recomputes the same values, and reports late actions.
func TestFeatureLog_RecordsAndVerifiesResponses(t *testing.T) {
	t.Parallel()
	cfg := testConfig(t.TempDir())
	cfg.FeatureLog.Rules = []featurelog.Rule{{Entity: feature.User, Share: 1}, {Entity: feature.Pin, Share: 1}, {Entity: feature.Pair, Share: 1}}
	cfg.FeatureLog.MaxFileAge = time.Second
	cfg.FeaturesFile, cfg.Feature.ReloadInterval = filepath.Join(cfg.Dir, "features.yaml"), 100*time.Millisecond
	definitions := feature.Builtin + `
  - {name: pair_price, entity: pair, aggregate: count, group_by: objectAttributes.price}
`
	define(t, cfg.FeaturesFile, definitions)
	s := start(t, cfg)
	at := time.Now().Truncate(time.Millisecond)
	s.publish(liking(at)...)

	for call, want := range map[string]string{
		"xd28s": `{"days":1,"users":3}`, "funnel?steps=save,click,view": `{"verb":"view","users":3}`, "popularity?limit=1": `"actions":6`,
		"retention?weeks=1": `"users":3`, "growth?days=1": `"new":3`,
	} {
		expect.Contains(t, s.api().get("/v1/insights/"+call), want, "%s", call)
	}

	names := []string{"interests_24h", "verbs_1h", "last_actions", "taste_24h", "taste_6h", "pins_24h", "pin_actions_24h", "pin_actors_24h", "pin_saves_per_hour_1h", "pin_impressions_24h",
		"pair_author_96h", "pair_taste", "pair_price"}
	req := feature.Request{
		Features: names, Users: []schemas.UserID{"user:0", "user:1", "user:2", "user:none"}, Pins: []schemas.PinID{"pin:0", "pin:4", "pin:none"},
		Pairs: []feature.UserPin{{User: "user:0", Pin: "pin:1"}, {User: "user:none", Pin: "pin:4"}, {User: "user:1", Pin: "pin:none"}, {User: "user:other", Pin: "pin:0"}},
	}
	s.api().ask(req)
	drifts := s.verify()
	for _, d := range drifts {
		if want := 4; d.Feature[:4] != "pin_" && d.Compared != want || d.Equal != d.Compared || d.Compared == 0 {
			t.Errorf("%+v: want all equal", d)
		}
	}
	expect.Equal(t, len(drifts), len(names), "features in the log")

	// A late action: the responses were correct before it arrived.
	s.publish(event(at.Add(-time.Second), "late", "actions", "user:0", "save", "pin:4", nil))
	untouched := []string{"pin_impressions_24h", "pair_price"} // do not include that action
	for _, d := range s.verify() {
		if d.Late == 0 && !slices.Contains(untouched, d.Feature) || d.Bad() > 0 {
			t.Errorf("%+v: want a late value, and no other difference", d)
		}
	}
	must.Get(s.run("features", "verify", "--features_file", cfg.FeaturesFile))(t)
	define(t, cfg.FeaturesFile, definitions+"  - {name: added, entity: user, aggregate: count}\n")
	eventually.True(t, "the added definition is active", func() bool {
		return slices.ContainsFunc(s.features.Definitions(), func(d feature.Definition) bool { return d.Name == "added" })
	})
	s.stop() // closes the files
	counts := map[string]int{}
	err := featurelog.ReadFiles(filepath.Join(cfg.Dir, "feature-log"), func(rec *schemas.FiledFeatures) error {
		counts[rec.Entity]++
		return nil
	})
	if err != nil || len(counts) != 11 {
		t.Errorf("got %v in files, error %v, want 11 entities", counts, err)
	}
	for entity, n := range counts {
		expect.Equal(t, n, 1, "%s in the files", entity)
	}
}

// sevenActions returns rows of a broker's answer to the count of all actions of user:0.
func sevenActions() string {
	rows := make([]string, 7)
	for i := range rows {
		rows[i] = fmt.Sprintf(`["%d","user:0",%d]`, i, time.Now().Add(-time.Minute).UnixMilli())
	}
	return "[" + strings.Join(rows, ",") + "]"
}

// With Pinot, all features come from Pinot, and serve keeps no feature store.
func TestPinot_ReplacesEmbeddedStore(t *testing.T) {
	t.Parallel()
	pinot := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var query struct{ SQL string }
		_ = json.NewDecoder(r.Body).Decode(&query)
		rows := sevenActions()
		switch {
		case strings.Contains(query.SQL, "FROM pin_counts"):
			rows = fmt.Sprintf(`[["pin:0","{\"save\":9}",%d]]`, time.Now().Truncate(5*time.Minute).UnixMilli())
		case strings.Contains(query.SQL, "FROM pins"):
			rows = `[["pin:0","user:ada","",[""],"","{\"price\":\"5\"}"]]`
		}
		_, _ = io.WriteString(w, `{"resultTable":{"rows":`+rows+`},"numServersQueried":1,"numServersResponded":1,"minConsumingFreshnessTimeMs":1000}`)
	}))
	defer pinot.Close()
	cfg := testConfig(t.TempDir())
	cfg.Pinot.Brokers, cfg.Pinot.Controller = []string{pinot.URL}, pinot.URL
	cfg.FeaturesFile = filepath.Join(cfg.Dir, "features.yaml")
	define(t, cfg.FeaturesFile, `
features:
- {name: all, entity: user, aggregate: count}
- {name: pin_all, entity: pin, aggregate: count}
`)
	s := start(t, cfg)
	got := s.api().ask(feature.Request{Features: []string{"all", "pin_all"}, Users: []schemas.UserID{"user:0"}, Pins: []schemas.PinID{"pin:0"}})
	want := map[string]map[string]any{"user:0": {"all": 7.0}, "pin:0": {"pin_all": 9.0}}
	expect.NoDiff(t, got, want, "result")
	attributes, err := s.features.Attributes(t.Context(), feature.AttributesRequest{Pins: []schemas.PinID{"pin:0"}})
	if err != nil || attributes.Pins["pin:0"].Attributes["price"] != "5" || attributes.Pins["pin:0"].Author != "user:ada" {
		t.Errorf("attributes: %+v, %v", attributes, err)
	}
	if attributes.Fresh == nil || !attributes.Fresh.Equal(time.Unix(1, 0)) {
		t.Errorf("attributes fresh to %v, want the value in the response of Pinot", attributes.Fresh)
	}
	expect.Is(t, expect.ErrorOf(os.Stat(filepath.Join(cfg.Dir, "features"))), os.ErrNotExist, "feature store")
	if slices.ContainsFunc(s.readers(), func(r topics.Reader) bool { return r.Group == topics.Features }) {
		t.Error("the sink of features is a reader")
	}
}

// fakePinot returns the address of a fake Pinot with a behavior: well, down, slow, partial.
func fakePinot(t *testing.T, does *atomic.Value) string {
	t.Helper()
	answer := func(w http.ResponseWriter, responded int) {
		fmt.Fprintf(w, `{"resultTable":{"rows":%s},"numServersQueried":2,"numServersResponded":%d}`, sevenActions(), responded)
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // otherwise the server does not detect that the caller has disconnected
		switch does.Load() {
		case "well":
			answer(w, 2)
		case "down":
			w.WriteHeader(http.StatusBadGateway)
		case "slow":
			<-r.Context().Done()
		case "partial":
			answer(w, 1)
		}
	}))
	t.Cleanup(server.Close)
	return server.URL
}

// While the feature store is down, slow, or returns partial results, feeds are unchanged, and every features response has
// the missing values with reasons. The circuit breaker opens and closes again, and no goroutines leak. (Not parallel: it
// counts goroutines.)
func TestFeed_DoesNotDependOnFeatureStore(t *testing.T) {
	var does atomic.Value
	does.Store("well")
	cfg := testConfig(t.TempDir())
	pinot := fakePinot(t, &does)
	cfg.Pinot.Brokers, cfg.Pinot.Controller = []string{pinot}, pinot
	cfg.Feature.Timeout, cfg.Feature.BreakerFailures, cfg.Feature.BreakerOpenTime = 50*time.Millisecond, 3, 500*time.Millisecond
	cfg.FeaturesFile = filepath.Join(cfg.Dir, "features.yaml")
	define(t, cfg.FeaturesFile, "features: [{name: all, entity: user, aggregate: count}]")
	s := start(t, cfg)
	at := time.Now()
	s.publish(append(liking(at), event(at, "follow", "follows", "user:0", "follow", "interest:0", nil))...)
	s.feedOf("user:0")
	s.awaitFeatures()
	before := runtime.NumGoroutine()
	for fault, reason := range map[string]string{"down": "store", "slow": "deadline", "partial": "store"} {
		does.Store(fault)
		opened, reasons := false, map[string]bool{}
		for range 20 {
			value, degraded := s.askAll()
			if value != "null" || degraded != "store" && degraded != "deadline" { // store while the breaker is open, deadline on a busy machine
				t.Errorf("%s: got %s, degraded %q", fault, value, degraded)
			}
			reasons[degraded] = true
			s.feedOf("user:0")
			opened = opened || s.metric("smartfeed_features_circuit_breaker_open") == "1"
		}
		if !opened || !reasons[reason] || !reasons["store"] {
			t.Errorf("%s: breaker open %v, degraded %v, want open and %s", fault, opened, reasons, reason)
		}
		does.Store("well")
		s.awaitFeatures()
		expect.Equal(t, s.metric("smartfeed_features_circuit_breaker_open"), "0", "%s: after the recovery the gauge", fault)
	}
	eventually.True(t, "connections are closed", func() bool { return runtime.NumGoroutine() <= before+20 })
}

// feedOf visits, and expects two items and no degradation.
func (s *started) feedOf(user string) {
	s.t.Helper()
	page := get[struct {
		Items    []any
		Degraded []string
	}](s.api(), "/v1/users/"+user+"/feed?limit=2")
	expect.Equal(s.t, len(page.Items), 2, "items of the feed")
	expect.Empty(s.t, page.Degraded, "reasons of the degradation")
}

// askAll requests the feature all of user:0, and returns its value and the degraded reasons.
func (s *started) askAll() (value, degraded string) {
	s.t.Helper()
	answer := post[struct {
		Values   map[string]map[string]json.RawMessage
		Missing  []struct{ Reason string }
		Degraded []string
	}](s.api(), "/v1/features", `{"features":["all"],"users":["user:0"]}`)
	expect.Equal(s.t, len(answer.Missing), len(answer.Degraded), "degraded of the missing features in %+v", answer)
	return string(answer.Values["user:0"]["all"]), strings.Join(answer.Degraded, " ")
}

// awaitFeatures sends requests until a response is complete. On a busy machine, some may exceed the deadline.
func (s *started) awaitFeatures() {
	s.t.Helper()
	eventually.True(s.t, "the response is complete", func() bool {
		value, degraded := s.askAll()
		return value == "7" && degraded == ""
	})
}

// metric returns the value of a metric without labels.
func (s *started) metric(name string) string {
	s.t.Helper()
	_, after, _ := strings.Cut(s.api().get("/metrics"), "\n"+name+" ")
	value, _, _ := strings.Cut(after, "\n")
	return value
}

// define writes a definitions file.
func define(t testing.TB, path, text string) {
	t.Helper()
	must.OK(t, os.WriteFile(path+".new", []byte(text), 0o600))
	must.OK(t, os.Rename(path+".new", path)) // no reader sees half of it
}

func (s *started) verify() []featurelog.Drift {
	s.t.Helper()
	return runJSON[[]featurelog.Drift](s, "features", "verify", "--features_file", s.cfg.FeaturesFile)
}

// ingestingPinot is a fake Pinot whose servers have ingested all records, or none. Their offsets stay before the
// transaction marker after the last record, because Pinot does not count markers.
type ingestingPinot struct {
	url  string
	done atomic.Bool
	log  atomic.Pointer[topics.Log] // of the process, once it has started
}

func newIngestingPinot(t *testing.T) *ingestingPinot {
	t.Helper()
	c := new(ingestingPinot)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		table, isTable := strings.CutSuffix(strings.TrimPrefix(r.URL.Path, "/tables/"), "/consumingSegmentsInfo")
		if !isTable {
			_, _ = io.WriteString(w, `{"resultTable":{"rows":`+sevenActions()+`},"numServersQueried":1,"numServersResponded":1,"minConsumingFreshnessTimeMs":1000}`)
			return
		}
		topic := map[string]string{"actions_enriched": topics.ActionsEnriched, "sequences": topics.ActionsEnriched, "pins": topics.PinAttributes}[table]
		if topic == "" {
			topic = topics.ItemFeatures
		}
		log := c.log.Load()
		if log == nil {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		ends, err := log.Ends(r.Context(), topic)
		if r.Context().Err() != nil { // the caller has disconnected
			return
		}
		expect.Error(t, err, "", "ends of %s", topic)
		segments := map[string]any{}
		for p, end := range ends[topic] {
			at := int64(0)
			if c.done.Load() {
				at = max(0, end-1)
			}
			offsets := map[string]string{fmt.Sprint(p): fmt.Sprint(at)}
			segments[fmt.Sprintf("%s__%d__0__x", table, p)] = []any{map[string]any{"partitionToOffsetMap": offsets}}
		}
		_ = json.NewEncoder(w).Encode(map[string]any{"_segmentToConsumingInfoMap": segments})
	}))
	t.Cleanup(server.Close)
	c.url = server.URL
	return c
}

// While Pinot does not ingest actions, wait does not return and the freshness gauge grows. Both recover when Pinot has
// ingested the actions.
func TestWait_IncludesPinot(t *testing.T) {
	t.Parallel()
	behind := newIngestingPinot(t)
	cfg := testConfig(t.TempDir())
	cfg.Pinot.Brokers, cfg.Pinot.Controller = []string{behind.url}, behind.url
	cfg.FeaturesFile = filepath.Join(cfg.Dir, "features.yaml")
	define(t, cfg.FeaturesFile, "features: [{name: all, entity: user, aggregate: count}]")
	s := launch(t, cfg, slog.New(slog.DiscardHandler), everything())
	behind.log.Store(s.ends)
	must.OK(t, s.Ready(t.Context()))
	s.publish(liking(time.Now())...) // does not wait for Pinot
	wait := func(timeout string) (string, error) {
		return s.run("wait", "-o", "json", "--timeout", timeout, "--pinot.brokers", behind.url, "--pinot.controller", behind.url)
	}
	eventually.True(t, "the command wait names Pinot", func() bool { // on a busy machine it may time out before the first check
		out, err := wait("500ms")
		if err == nil {
			t.Fatalf("Pinot has no action, but the command wait succeeds: %s", out)
		}
		return strings.Contains(err.Error(), "unprocessed: pinot: ") && strings.Contains(out, `"group": "pinot"`)
	})
	eventually.True(t, "Wait names Pinot", func() bool {
		ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
		defer cancel()
		err := s.Wait(ctx)
		if err == nil {
			t.Fatal("Pinot has no action, but Wait returns nil")
		}
		return strings.Contains(err.Error(), "pinot")
	})
	seconds := func() float64 {
		return must.Get(strconv.ParseFloat(s.metric("smartfeed_features_lag_seconds"), 64))(t)
	}
	eventually.True(t, "the gauge reports waiting actions", func() bool { return seconds() > 1 })
	behind.done.Store(true)
	if out, err := wait("1m"); err != nil {
		t.Errorf("Pinot has all actions, but the command wait fails: %v, %s", err, out)
	}
	must.OK(t, s.Wait(t.Context()))
	eventually.True(t, "the gauge reports no waiting actions", func() bool { return seconds() < 1 })
	answer, err := s.features.Answer(t.Context(), feature.Request{Features: []string{"all"}, Users: []schemas.UserID{"user:0"}})
	if err != nil || answer.Fresh == nil || !answer.Fresh.Equal(time.Unix(1, 0)) {
		t.Errorf("fresh to %v, %v, want the value in the response of Pinot", answer.Fresh, err)
	}
}
