package featurelog

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/smartfeed/smartfeed/schemas"
	"github.com/smartfeed/smartfeed/serving/feature"
	"github.com/smartfeed/smartfeed/topics"
)

// Producer sends a record without blocking. *kgo.Client implements it.
type Producer interface {
	TryProduce(ctx context.Context, r *kgo.Record, promise func(*kgo.Record, error))
}

// Recorder sends answers to the log. It is safe for concurrent use.
type Recorder struct {
	rules   []Rule
	to      Producer
	stream  topics.Stream[schemas.LoggedFeatures]
	run     string // distinguishes the answers of this process from those of others
	answers atomic.Uint64
	metrics *Metrics
}

// NewRecorder returns a recorder. run must be different for each process that ever ran, such as a start time.
func NewRecorder(cfg Config, to Producer, stream topics.Stream[schemas.LoggedFeatures], run string, metrics *Metrics) *Recorder {
	return &Recorder{rules: cfg.Rules, to: to, stream: stream, run: run, metrics: metrics}
}

// Record logs the entities that the rules select from the answer to a request made at the given time. It does not block. Records
// that do not fit into the producer's memory, and records that the brokers reject, are counted as lost.
func (r *Recorder) Record(req feature.Request, answer feature.Answer, at time.Time) {
	if len(r.rules) == 0 {
		return
	}
	a := &answered{r: r, answer: answer, seen: map[string]bool{}}
	a.head = schemas.LoggedFeatures{
		Answer: fmt.Sprintf("%s-%d", r.run, r.answers.Add(1)), AsOf: schemas.MicrosOf(answer.AsOf), Logged: schemas.MicrosOf(at),
	}
	if answer.Fresh != nil {
		a.head.Fresh = schemas.MicrosOf(*answer.Fresh)
	}
	for _, u := range req.Users {
		a.entity(feature.User, string(u), u, "")
	}
	for _, p := range req.Pins {
		a.entity(feature.Pin, string(p), "", p)
	}
	for _, p := range req.Pairs {
		a.entity(feature.Pair, p.String(), p.User, p.Pin)
	}
}

// answered is an answer that is being logged.
type answered struct {
	r      *Recorder
	answer feature.Answer
	head   schemas.LoggedFeatures // common fields of its records
	seen   map[string]bool        // entities
	absent map[[2]string][]string // reasons by entity and feature; nil until needed
}

// entity logs an entity once, if the first rule for its kind samples it.
func (a *answered) entity(kind feature.Entity, name string, user schemas.UserID, pin schemas.PinID) {
	i := slices.IndexFunc(a.r.rules, func(r Rule) bool { return r.Entity == kind })
	if i < 0 || a.seen[name] || !a.r.rules[i].samples(name, a.answer.AsOf) {
		return
	}
	a.seen[name] = true
	rule, rec := a.r.rules[i], a.head
	rec.Entity, rec.User, rec.Pin, rec.Share = name, user, pin, rule.Share
	for featureName, v := range a.answer.Values[name] {
		if len(rule.Features) == 0 || slices.Contains(rule.Features, featureName) {
			rec.Values = append(rec.Values, logged(featureName, v, a.reasons(name, featureName)))
		}
	}
	if len(rec.Values) == 0 {
		return
	}
	slices.SortFunc(rec.Values, func(a, b schemas.FeatureValue) int { return strings.Compare(a.Feature, b.Feature) })
	a.r.send(&rec)
}

func (a *answered) reasons(entity, name string) []string {
	if a.absent == nil {
		a.absent = map[[2]string][]string{}
		for _, m := range a.answer.Missing {
			key := [2]string{m.Entity, m.Feature}
			a.absent[key] = append(a.absent[key], string(m.Reason))
		}
	}
	return a.absent[[2]string{entity, name}]
}

// samples decides by a hash of the entity; see schemas.Sampled.
func (r Rule) samples(entity string, asOf time.Time) bool {
	if !r.SampleEntities {
		entity += fmt.Sprint("@", asOf.UnixMilli())
	}
	return schemas.Sampled(entity, r.Share)
}

func (r *Recorder) send(rec *schemas.LoggedFeatures) {
	value, err := r.stream.Encode(rec)
	if err != nil { // above the maximum size of a record
		r.metrics.dropped.Inc()
		return
	}
	out := &kgo.Record{Topic: r.stream.Name, Key: []byte(rec.Entity), Value: value}
	// The request's context must not cancel the record.
	r.to.TryProduce(context.Background(), out, func(_ *kgo.Record, err error) {
		if err != nil {
			r.metrics.dropped.Inc()
			return
		}
		r.metrics.written.Inc()
	})
}
