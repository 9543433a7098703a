package feature

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/smartfeed/smartfeed/internal/testkit/expect"
	"github.com/smartfeed/smartfeed/internal/testkit/must"
	"github.com/smartfeed/smartfeed/schemas"
	"github.com/smartfeed/smartfeed/topics"
)

// typical returns the i-th of many actions: two interests, four attributes, an embedding of 16.
func typical(user schemas.UserID, i int, age schemas.Micros) *schemas.EnrichedAction {
	embedding := make([]float32, 16)
	for j := range embedding {
		embedding[j] = float32(i+j) / 16
	}
	verbs := []schemas.Verb{schemas.View, schemas.Closeup, schemas.Click, schemas.Save}
	return &schemas.EnrichedAction{
		ID: fmt.Sprintf("e-%09d", i), Actor: user, Timestamp: now - age, Verb: verbs[i%len(verbs)],
		Object: schemas.ID(fmt.Sprintf("pin:%d", i%1000)),
		VerbAttributes: schemas.VerbAttributes{
			Surface: "home", Attributes: map[string]string{"device": "ios", "dwell": fmt.Sprint(i % 50)},
		},
		ObjectAttributes: schemas.ObjectAttributes{
			Facets: schemas.Facets{
				Author:    schemas.UserID(fmt.Sprintf("user:author-%d", i%30)),
				Interests: []schemas.InterestID{schemas.InterestID(fmt.Sprintf("interest:%d", i%12)), "interest:all"},
			},
			Attributes: map[string]string{"color": "blue", "price": fmt.Sprint(i % 90)}, Embedding: embedding,
		},
	}
}

// userFeatures returns the ten built-in features of a user that most requests name.
func userFeatures(b *testing.B) []Definition {
	return must.Get(Parse("f", []byte(`
features:
- {name: interests, entity: user, verbs: [click, save], window: 24h, group_by: objectAttributes.interests, aggregate: count}
- {name: authors, entity: user, verbs: [click, save], window: 24h, group_by: objectAttributes.author, aggregate: count}
- {name: top, entity: user, aggregate: top, of: objectAttributes.interests, n: 5}
- {name: verbs, entity: user, window: 1h, group_by: verb, aggregate: count}
- {name: rate, entity: user, window: 24h, aggregate: rate}
- {name: pins, entity: user, window: 24h, aggregate: distinct}
- {name: last, entity: user, aggregate: last, n: 20}
- {name: ios, entity: user, where: {verbAttributes.device: [ios]}, aggregate: count}
- {name: price, entity: user, verbs: [save], aggregate: mean, of: objectAttributes.price}
- {name: taste, entity: user, verbs: [click, save], window: 24h, aggregate: mean_embedding, of: objectAttributes.embedding}
`)))(b)
}

// BenchmarkTenFeaturesOf200Actions also measures the lower bound: reading the same rows without evaluating them.
func BenchmarkTenFeaturesOf200Actions(b *testing.B) {
	store := openTest(b, b.TempDir(), DefaultConfig())
	const users, each = 1000, 200
	for u := range users {
		var batch Batch
		for i := range each {
			batch.Actions = append(batch.Actions, typical(schemas.UserID(fmt.Sprint("user:", u)), i, schemas.Micros(i)*hour/4))
		}
		mustWrite(b, store, batch)
	}
	defs := userFeatures(b)
	b.Run("features", func(b *testing.B) {
		b.ReportAllocs()
		span := Span{AsOf: now, Now: now}
		for i := 0; b.Loop(); i++ {
			_, _, err := store.Actions(context.Background(), schemas.UserID(fmt.Sprint("user:", i%users)), span, defs)
			must.OK(b, err)
		}
	})
	b.Run("bare scan", func(b *testing.B) {
		b.ReportAllocs()
		for i := 0; b.Loop(); i++ {
			must.OK(b, bareScan(store, fmt.Sprint("user:", i%users)))
		}
	})
}

func bareScan(store *EmbeddedStore, user string) error {
	return store.db.Use(func(db *pebble.DB) error {
		return scanTable(context.Background(), db, actionTable, func(it *pebble.Iterator) error {
			for day := dayOf(floor(now)); day >= dayOf(floor(now)-durationMillis(Kept)); day-- {
				prefix := dayPrefix(nil, actionTable, day, user)
				end := append(dayPrefix(nil, actionTable, day, user)[:len(prefix)-1], 1)
				for it.SeekGE(prefix); it.Valid() && string(it.Key()) < string(end); it.Next() {
					if _, err := it.ValueAndErr(); err != nil {
						return err
					}
				}
			}
			return it.Error()
		})
	})
}

// BenchmarkItems reads the features of a thousand pins with actions in every step of a day, or in some.
func BenchmarkItems(b *testing.B) {
	for name, every := range map[string]schemas.Micros{"busy": 1, "ordinary": 24} {
		b.Run(name, func(b *testing.B) { benchmarkItems(b, every) })
	}
}

func benchmarkItems(b *testing.B, every schemas.Micros) {
	store := openTest(b, b.TempDir(), DefaultConfig())
	pins := writeItems(b, store, every)
	defs := must.Get(Parse("f", []byte(`
features:
- {name: a, entity: pin, window: 96h, aggregate: count, group_by: verb}
- {name: b, entity: pin, window: 1h, aggregate: rate}
- {name: c, entity: pin, window: 24h, aggregate: count, half_life: 6h}
- {name: d, entity: pin, window: 24h, aggregate: distinct}
- {name: e, entity: pin, aggregate: mean_embedding}
`)))(b)
	b.ReportAllocs()
	for b.Loop() {
		_, _, err := store.Items(context.Background(), pins, now, defs)
		must.OK(b, err)
	}
}

// writeItems writes a thousand pins with actions in one of so many steps of a day.
func writeItems(b *testing.B, store *EmbeddedStore, every schemas.Micros) (pins []schemas.PinID) {
	start := now / schemas.ItemStep * schemas.ItemStep
	for p := range 1000 {
		pins = append(pins, schemas.PinID(fmt.Sprint("pin:", p)))
		var batch Batch
		for s := schemas.Micros(0); s < 288; s += every {
			batch.Counts = append(batch.Counts, &schemas.ItemCounts{
				Pin: pins[p], Start: start - s*schemas.ItemStep, Counts: map[string]int64{"save": 1, "click": 3, "impression": 90},
				Actors: schemas.Sketch(nil).Add(fmt.Sprint(s)).Add(fmt.Sprint(p)), Embedding: make([]float32, 16),
			})
		}
		a := typical("user:1", p, 0).ObjectAttributes
		batch.Pins = []*schemas.PinAttributes{{Pin: pins[p], Version: 1, Facets: a.Facets, Attributes: a.Attributes, Embedding: a.Embedding}}
		mustWrite(b, store, batch)
	}
	return pins
}

// BenchmarkAnswer_1000Pins answers requests for a thousand pins and a feature set of twenty features, as JSON. The set has
// features of pins, or as for ranking, of a user with 200 actions, the pins, and the pairs of both.
func BenchmarkAnswer_1000Pins(b *testing.B) {
	store := openTest(b, b.TempDir(), DefaultConfig())
	req := Request{Pins: writeItems(b, store, 24), Users: []schemas.UserID{"user:1"}}
	var batch Batch
	for i := range 200 {
		batch.Actions = append(batch.Actions, typical("user:1", i, schemas.Micros(i)*hour/4))
	}
	mustWrite(b, store, batch)
	for _, pin := range req.Pins {
		req.Pairs = append(req.Pairs, UserPin{"user:1", pin})
	}
	of := map[Entity][]string{
		User: {"aggregate: count, group_by: [verb, objectAttributes.interests]", "aggregate: rate", "aggregate: distinct", "aggregate: last", "aggregate: count, group_by: objectAttributes.author"},
		Pin:  {"aggregate: count, group_by: verb", "aggregate: rate", "aggregate: count, half_life: 6h", "aggregate: distinct", "aggregate: mean_embedding"},
		Pair: {"aggregate: count, group_by: objectAttributes.author", "aggregate: cosine", "aggregate: count, group_by: objectAttributes.interests", "aggregate: count, group_by: object", "aggregate: mean, of: objectAttributes.price, group_by: [objectAttributes.author, objectAttributes.color]"},
	}
	for name, entities := range map[string][]Entity{"pins": {Pin, Pin, Pin, Pin}, "ranking": {User, Pin, Pin, Pair}} {
		text, names := "features:\n", []string(nil)
		for _, entity := range entities {
			for _, def := range of[entity] {
				names = append(names, fmt.Sprint("f", len(names)))
				text += fmt.Sprintf("- {name: %s, entity: %s, %s}\n", names[len(names)-1], entity, def)
			}
		}
		defs := must.Get(Parse("f", []byte(text+"feature_sets: {all: ["+strings.Join(names, ", ")+"]}\n")))(b)
		b.Run(name, func(b *testing.B) { benchmarkAnswer(b, store, defs, req) })
	}
}

// benchmarkAnswer reports percentiles of the time of an answer, and its length.
func benchmarkAnswer(b *testing.B, store Store, defs []Definition, req Request) {
	s, _ := serviceOf{store: store}.start(b)
	must.OK(b, s.Replace(defs))
	req.FeatureSets = []string{"all"}
	var took []time.Duration
	var text []byte
	b.ReportAllocs()
	for b.Loop() {
		start := time.Now()
		answer := must.Get(s.Answer(b.Context(), req))(b)
		text = must.Get(json.Marshal(answer))(b)
		took = append(took, time.Since(start))
		expect.Empty(b, answer.Degraded, "degraded")
	}
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Microseconds())/1000, "p50-ms")
	b.ReportMetric(float64(took[len(took)*99/100].Microseconds())/1000, "p99-ms")
	b.ReportMetric(float64(len(text)), "json-B")
}

// BenchmarkIngest writes actions as the sink does, in batches of the size of one poll, each synced to disk: once from
// encoded records, once from decoded ones.
func BenchmarkIngest(b *testing.B) {
	const batch = 5000
	w := newWire(b)
	var actions Batch
	var values [][]byte
	for i := range batch {
		a := typical(schemas.UserID(fmt.Sprint("user:", i%700)), i, schemas.Micros(i)*1e6)
		actions.Actions = append(actions.Actions, a)
		values = append(values, encoded(b, w.Streams.ActionsEnriched, a))
	}
	read := inputs(w.Streams)[topics.ActionsEnriched]
	rate := func(b *testing.B) {
		b.ReportMetric(float64(batch*b.N)/b.Elapsed().Seconds(), "rows/s")
	}
	b.Run("decode and write", func(b *testing.B) {
		for b.Loop() {
			var decoded Batch
			for i, v := range values {
				must.OK(b, read(&decoded, &kgo.Record{Key: []byte(actions.Actions[i].Actor), Value: v}))
			}
			mustWrite(b, w.store, decoded)
		}
		rate(b)
	})
	b.Run("write", func(b *testing.B) {
		for b.Loop() {
			mustWrite(b, w.store, actions)
		}
		rate(b)
	})
}
