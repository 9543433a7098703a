package featurelog

import (
	"context"
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/smartfeed/smartfeed/internal/testkit/expect"
	"github.com/smartfeed/smartfeed/internal/testkit/metricstest"
	"github.com/smartfeed/smartfeed/internal/testkit/must"
	"github.com/smartfeed/smartfeed/schemas"
	"github.com/smartfeed/smartfeed/serving/feature"
	"github.com/smartfeed/smartfeed/topics"
)

// sent stores produced records, and rejects all if it is full.
type sent struct {
	records []*kgo.Record
	full    bool
}

func (s *sent) TryProduce(_ context.Context, r *kgo.Record, promise func(*kgo.Record, error)) {
	if s.full {
		promise(r, kgo.ErrMaxBuffered)
		return
	}
	s.records = append(s.records, r)
	promise(r, nil)
}

type recording struct {
	*Recorder
	sent *sent
	reg  *prometheus.Registry
	logs topics.Stream[schemas.LoggedFeatures]
}

func record(t *testing.T, w *wire, rules ...Rule) recording {
	t.Helper()
	reg := prometheus.NewRegistry()
	metrics := must.Get(NewMetrics(reg))(t)
	s := &sent{}
	return recording{NewRecorder(Config{Rules: rules}, s, w.Streams.FeatureLog, "run", metrics), s, reg, w.Streams.FeatureLog}
}

func (r recording) logged(t *testing.T) []schemas.LoggedFeatures {
	t.Helper()
	var all []schemas.LoggedFeatures
	for _, out := range r.sent.records {
		rec := must.Get(r.logs.Decode(out.Value))(t)
		expect.Equal(t, string(out.Key), rec.Entity, "key")
		all = append(all, *rec)
	}
	return all
}

func TestRecorder_AppliesRules(t *testing.T) {
	w := newWire(t)
	at := time.UnixMilli(1_700_000_000_123).UTC()
	fresh := at.Add(-time.Second)
	pair := feature.UserPin{User: "user:1", Pin: "pin:1"}
	req := feature.Request{Users: []schemas.UserID{"user:1", "user:1"}, Pins: []schemas.PinID{"pin:1"}, Pairs: []feature.UserPin{pair}}
	answer := feature.Answer{
		AsOf: at, Fresh: &fresh,
		Values: map[string]map[string]feature.Value{
			"user:1": {
				"n": feature.Number(2), "none": nil, "g": feature.Groups{"x": 1}, "v": feature.Vector{1, 2},
				"l": feature.Last{{Object: "pin:1", Verb: "save", Timestamp: at}}, "t": feature.Top{{Value: "x", Count: 3}},
				"s": feature.Sequence{Times: []int64{1}, Columns: map[string]feature.Column{"verb": {Texts: []string{"save"}}}},
			},
			"pin:1":       {"p": feature.Number(1), "q": feature.Number(2)},
			pair.String(): {"c": feature.Number(0.5)},
		},
		Missing: []feature.Missing{{Entity: "user:1", Feature: "none", Reason: feature.Empty}, {Entity: "user:1", Feature: "n", Reason: feature.Window}},
	}
	r := record(t, w, Rule{Entity: feature.Pin, Features: []string{"q", "z"}, Share: 1}, Rule{Entity: feature.User, Share: 1})
	r.Record(req, answer, at.Add(time.Millisecond))
	two, one, second := 2.0, 2.0, schemas.MicrosOf(at)
	head := schemas.LoggedFeatures{Answer: "run-1", AsOf: second, Logged: second + 1000, Fresh: second - 1e6, Share: 1}
	user, pin := head, head
	user.Entity, user.User = "user:1", "user:1"
	user.Values = []schemas.FeatureValue{
		{Feature: "g", Groups: map[string]float64{"x": 1}},
		{Feature: "l", Last: []schemas.LoggedAction{{Object: "pin:1", Verb: "save", Time: second}}},
		{Feature: "n", Number: &two, Reasons: []string{"window"}},
		{Feature: "none", Reasons: []string{"empty"}},
		{Feature: "s", Sequence: `{"time":[1],"verb":["save"]}`},
		{Feature: "t", Top: []schemas.LoggedCount{{Value: "x", Count: 3}}},
		{Feature: "v", Vector: []float64{1, 2}},
	}
	pin.Entity, pin.Pin, pin.Values = "pin:1", "pin:1", []schemas.FeatureValue{{Feature: "q", Number: &one}}
	expect.NoDiffBut(t, cmpopts.EquateEmpty(), r.logged(t), []schemas.LoggedFeatures{user, pin}, "logged features")
	r.sent.full = true
	r.Record(req, answer, at)
	expect.Equal(t, metricstest.Sum(t, r.reg, "smartfeed_feature_log_records_dropped_total"), 2, "dropped records")
	expect.Equal(t, metricstest.Sum(t, r.reg, "smartfeed_feature_log_records_written_total"), 2, "written records")
}

func TestRule_SamplesItsShare(t *testing.T) {
	const n = 20_000
	for _, share := range []float64{0.001, 0.1, 0.5, 1} {
		counts := map[bool]int{}
		for i := range n {
			at := time.UnixMilli(int64(i))
			for _, whole := range []bool{false, true} {
				if (Rule{Share: share, SampleEntities: whole}).samples(fmt.Sprint("user:", i%1000), at) {
					counts[whole]++
				}
			}
		}
		sigma := math.Sqrt(n * share * (1 - share))
		expect.Near(t, float64(counts[false]), n*share, 4*sigma, "share %v: answers of %d", share, n)
		expect.Equal(t, counts[true]%(n/1000), 0, "share %v: answers of entities in part, of %d", share, counts[true])
	}
}

func TestConfig_ReportsEveryProblem(t *testing.T) {
	must.OK(t, DefaultConfig().Validate())
	bad := Config{Rules: []Rule{{Entity: "board", Share: math.NaN()}, {Entity: feature.User, Share: 1.1}}}
	err := bad.Validate()
	for _, want := range []string{
		"max_file_bytes: 0", "max_file_age: 0s", "dir: is empty", `rules[0].entity: "board"`, "rules[0].share: NaN", "rules[1].share: 1.1: want above 0 to 1",
	} {
		expect.Error(t, err, want, "Validate")
	}
}
