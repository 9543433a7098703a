package conformance

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/smartfeed/smartfeed/internal/testkit/expect"
	"github.com/smartfeed/smartfeed/internal/testkit/must"
	"github.com/smartfeed/smartfeed/schemas"
	"github.com/smartfeed/smartfeed/serving/feature"
)

// Benchmarks on a real Pinot, which ingests from an embedded broker in the process of the benchmark: `make
// bench-pinot`.
const (
	benchUsers   = 500
	benchActions = 200 // per user
)

// BenchmarkRealPinot measures typical reads of recommenders at a fixed rate: ten features of one user, or four features of
// 500 pins. It also measures how long after its acknowledgement an action is visible in features.
func BenchmarkRealPinot(b *testing.B) {
	c := startCluster(b)
	must.OK(b, c.setup.Apply(b.Context()))
	began := time.Now()
	c.fill(b)
	b.Run("ingesting", func(b *testing.B) {
		b.ReportMetric(benchUsers*benchActions/time.Since(began).Seconds(), "actions/s")
		b.ReportMetric(0, "ns/op")
	})
	defs := tenFeatures(b)
	ten := func(i int) error {
		now, user := schemas.MicrosOf(time.Now()), schemas.UserID(fmt.Sprint("user:", i%benchUsers))
		_, _, err := c.store.Actions(context.Background(), user, feature.Span{Now: now, AsOf: now}, defs)
		return err
	}
	four := func(i int) error {
		_, _, err := c.store.Items(context.Background(), benchPins(i), schemas.MicrosOf(time.Now()), fourFeatures(b))
		return err
	}
	atRate(b, ten, 100, 100) // the first query of each kind loads classes
	atRate(b, four, 20, 100)
	for _, state := range []string{"in the first minute", "then"} { // the JVM compiles the code of queries in the first minute
		b.Run("ten features of a user, 100 a second, "+state, func(b *testing.B) { report(b, atRate(b, ten, 100, 1000)) })
		b.Run("four features of 500 pins, 20 a second, "+state, func(b *testing.B) { report(b, atRate(b, four, 20, 400)) })
	}
	b.Run("action to feature, meanwhile", func(b *testing.B) {
		var asking sync.WaitGroup
		asking.Go(func() { atRate(b, ten, 100, 1000) })
		report(b, c.freshAfter(b, 200))
		asking.Wait()
	})
}

func report(b *testing.B, took []time.Duration) {
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Microseconds())/1000, "p50-ms")
	b.ReportMetric(float64(took[len(took)*99/100].Microseconds())/1000, "p99-ms")
	b.ReportMetric(0, "ns/op") // the time of the run is meaningless
}

// fill produces the actions of all users and the counts of 2,000 pins, spread over a day, and waits until queries return
// them.
func (c *cluster) fill(b *testing.B) {
	now := schemas.MicrosOf(time.Now())
	for i := range 4 {
		var batch feature.Batch
		for _, pin := range benchPins(i) {
			for step := range schemas.Micros(12) { // one step every two hours
				batch.Counts = append(batch.Counts, &schemas.ItemCounts{
					Pin: pin, Start: (now/schemas.ItemStep - 24*step) * schemas.ItemStep, Counts: map[string]int64{"save": int64(step), "click": 3, "impression": 90},
					Actors: schemas.Sketch(nil).Add(string(pin)).Add(fmt.Sprint(step)),
				})
			}
		}
		c.produceBatch(b, batch)
	}
	for u := range benchUsers {
		actions := make([]*schemas.EnrichedAction, benchActions)
		for i := range actions {
			actions[i] = typical(schemas.UserID(fmt.Sprint("user:", u)), u*benchActions+i, now-schemas.Micros(i)*7*60e6)
		}
		c.produce(b, actions...)
	}
	c.await(b, benchUsers*benchActions)
}

// typical returns the i-th of many actions: two interests, three attributes, an embedding of 16.
func typical(user schemas.UserID, i int, at schemas.Micros) *schemas.EnrichedAction {
	embedding := make([]float32, 16)
	for j := range embedding {
		embedding[j] = float32(i%97+j) / 16
	}
	verbs := []schemas.Verb{schemas.View, schemas.Closeup, schemas.Click, schemas.Save}
	return &schemas.EnrichedAction{
		ID: fmt.Sprint("e-", i), Actor: user, Timestamp: at, Verb: verbs[i%len(verbs)], Object: schemas.ID(fmt.Sprint("pin:", i%1000)),
		VerbAttributes: schemas.VerbAttributes{Surface: "home", Attributes: map[string]string{"device": "ios"}},
		ObjectAttributes: schemas.ObjectAttributes{
			Facets: schemas.Facets{
				Author:    schemas.UserID(fmt.Sprint("user:author-", i%30)),
				Interests: []schemas.InterestID{schemas.InterestID(fmt.Sprint("interest:", i%12)), "interest:all"},
			},
			Attributes: map[string]string{"color": "blue", "price": fmt.Sprint(i % 90)}, Embedding: embedding,
		},
	}
}

// tenFeatures returns ten built-in features, the same as in the benchmark of the embedded store.
func tenFeatures(b *testing.B) []feature.Definition {
	names := []string{
		"interests_24h", "authors_24h", "top_interests_96h", "verbs_1h", "actions_per_hour_24h", "pins_24h", "last_actions", "last_hides", "taste_24h", "taste_6h",
	}
	all := must.Get(feature.Load(""))(b)
	defs := slices.DeleteFunc(all, func(d feature.Definition) bool { return !slices.Contains(names, d.Name) })
	expect.Equal(b, len(defs), len(names), "definitions")
	return defs
}

// benchPins returns 500 of 2,000 pins.
func benchPins(i int) []schemas.PinID {
	pins := make([]schemas.PinID, 500)
	for n := range pins {
		pins[n] = schemas.PinID(fmt.Sprint("pin:", i%4*len(pins)+n))
	}
	return pins
}

// fourFeatures returns features of pins, the same as in the benchmark of the embedded store.
func fourFeatures(b *testing.B) []feature.Definition {
	return define(b, `
- {name: a, entity: pin, window: 96h, aggregate: count, group_by: verb}
- {name: b, entity: pin, window: 1h, aggregate: rate}
- {name: c, entity: pin, window: 24h, aggregate: count, half_life: 6h}
- {name: d, entity: pin, window: 24h, aggregate: distinct}
`)
}

// atRate sends n queries at the given rate per second, whether or not earlier ones have been answered.
func atRate(b *testing.B, query func(i int) error, rate, n int) []time.Duration {
	took := make([]time.Duration, n)
	var asking sync.WaitGroup
	start := time.Now()
	for i := range n {
		time.Sleep(time.Until(start.Add(time.Duration(i) * time.Second / time.Duration(rate))))
		asking.Go(func() {
			began := time.Now()
			expect.Error(b, query(i), "", "query %d", i)
			took[i] = time.Since(began)
		})
	}
	asking.Wait()
	return took
}
