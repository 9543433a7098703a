package feature

import (
	"context"
	"fmt"
	"log/slog"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/smartfeed/smartfeed/schemas"
)

// filled is a store that tests can write to.
type filled interface {
	Store
	Write(batch Batch) error
}

// conforms is the suite that every store passes: it answers what Reference and ReferenceItems do.
func conforms(t *testing.T, store filled) {
	users := 0
	for round := range rounds() { // of a hundred histories with some six definitions each
		t.Run(fmt.Sprintf("actions %d", round), rapid.MakeCheck(func(t *rapid.T) {
			users++
			checkActions(t, store, schemas.UserID(fmt.Sprintf("user:%d", users)))
		}))
	}
	pins := 0
	t.Run("items", rapid.MakeCheck(func(t *rapid.T) {
		pins++
		checkItems(t, store, schemas.PinID(fmt.Sprintf("pin:%d", pins)))
	}))
	t.Run("pins", rapid.MakeCheck(func(t *rapid.T) {
		pins++
		checkPins(t, store, schemas.PinID(fmt.Sprintf("pin:own-%d", pins)))
	}))
	t.Run("many different values", func(t *testing.T) { checkManyValues(t, store) })
	t.Run("rows of others", func(t *testing.T) { checkNeighbours(t, store) })
}

// equal is what stores are held to: sums of weights may be added in another order. Counts are whole numbers, and exact.
var equal = cmp.Options{
	cmpopts.EquateApprox(1e-9, 1e-12),
	cmp.Comparer(func(a, b Number) bool {
		return math.Abs(float64(a-b)) <= max(1e-12, 1e-9*math.Abs(float64(a)))
	}),
}

func rounds() int {
	if testing.Short() {
		return 2
	}
	return 10
}

func checkActions(t *rapid.T, store filled, user schemas.UserID) {
	span := Span{Now: now, AsOf: rapid.SampledFrom([]schemas.Micros{now, now - 5*hour, now - 90*hour, now - 97*hour, now + hour}).Draw(t, "as of")}
	all := actions(user, span.AsOf).Draw(t, "history")
	write(t, store, all)
	defs := rapid.SliceOfN(definitions(), 1, 12).Draw(t, "definitions")
	got, _, err := store.Actions(context.Background(), user, span, defs)
	if err != nil {
		t.Fatal(err)
	}
	for i, d := range defs {
		want := Reference(d, span, all)
		slices.Sort(want.Reasons)
		slices.Sort(got[i].Reasons)
		if diff := cmp.Diff(want, got[i], equal); diff != "" {
			t.Fatalf("%+v as of %d (-reference +store):\n%s", d, span.AsOf, diff)
		}
	}
}

// write writes actions in any order, in any number of batches, some again.
func write(t *rapid.T, store filled, all []schemas.EnrichedAction) {
	order := rapid.Permutation(all).Draw(t, "order")
	if len(all) > 0 {
		order = append(order, rapid.SliceOfN(rapid.SampledFrom(all), 0, 3).Draw(t, "again")...)
	}
	for batch := range slices.Chunk(order, rapid.IntRange(5, 30).Draw(t, "batch")) {
		b := Batch{}
		for i := range batch {
			b.Actions = append(b.Actions, &batch[i])
		}
		if err := store.Write(b); err != nil {
			t.Fatal(err)
		}
	}
}

func checkItems(t *rapid.T, store filled, pin schemas.PinID) {
	at := now + rapid.SampledFrom([]schemas.Micros{0, schemas.ItemStep, -hour / 2}).Draw(t, "later")
	at += schemas.Micros(rapid.Int64Range(-3e8, 3e8).Draw(t, "phase"))
	if rapid.Bool().Draw(t, "on a step") {
		at -= at % schemas.ItemStep
		at += rapid.SampledFrom([]schemas.Micros{0, -1, -1000, -1001, 1000}).Draw(t, "off")
	}
	steps := rapid.SliceOfNDistinct(rapid.IntRange(-1200, 3), 0, 12, rapid.ID[int]).Draw(t, "steps")
	steps = append(steps, 0, -1, -11, -12, -13, -288)
	slices.Sort(steps)
	var last []schemas.ItemCounts
	for _, s := range slices.Compact(steps) {
		c := schemas.ItemCounts{Pin: pin, Start: (at/schemas.ItemStep + schemas.Micros(s)) * schemas.ItemStep}
		c.Counts = rapid.MapOfN(rapid.SampledFrom([]string{"save", "click", schemas.ImpressionCount}), rapid.Int64Range(0, 5), 0, 3).Draw(t, "counts")
		for range rapid.IntRange(0, 5).Draw(t, "actors") {
			c.Actors = c.Actors.Add(fmt.Sprint("user:", rapid.IntRange(0, 20).Draw(t, "actor")))
		}
		c.Embedding = rapid.SliceOfN(rapid.Float32Range(-3, 3), 0, 2).Draw(t, "embedding")
		early := c
		early.Counts = map[string]int64{"save": 9, "view": 9} // replaced by what comes later
		early.Actors, early.Embedding = schemas.Sketch(nil).Add("user:early"), nil
		if err := store.Write(Batch{Counts: []*schemas.ItemCounts{&early, &c}}); err != nil {
			t.Fatal(err)
		}
		last = append(last, c)
	}
	defs := itemDefinitions(t)
	got, err := store.Items(context.Background(), []schemas.PinID{pin, pin + "-none", pin}, at, defs)
	if err != nil {
		t.Fatal(err)
	}
	for i, d := range defs {
		for j, all := range [][]schemas.ItemCounts{last, nil, last} {
			if diff := cmp.Diff(ReferenceItems(d, at, all), got[j][i], equal); diff != "" {
				t.Fatalf("%+v at %d of %d steps (-reference +store):\n%s", d, at, len(all), diff)
			}
		}
	}
}

// itemDefinitions are some of pins, of every aggregate that they have.
func itemDefinitions(t *rapid.T) []Definition {
	var defs []Definition
	for _, w := range rapid.SliceOfNDistinct(rapid.SampledFrom(append(windows(), 5*time.Minute)), 1, 3, rapid.ID[time.Duration]).Draw(t, "windows") {
		d := Definition{Entity: Pin, Window: w, Aggregate: rapid.SampledFrom([]Aggregate{Count, Count, Rate, CountDistinct, MeanEmbedding}).Draw(t, "aggregate")}
		switch d.Aggregate {
		case Count, Rate:
			d.Verbs = rapid.SampledFrom([][]schemas.Verb{nil, {"save"}, {"impression", "click"}}).Draw(t, "verbs")
			d.GroupBy = rapid.SampledFrom([]Path{{}, {part: verbPart}}).Draw(t, "group")
		case MeanEmbedding:
			d.Window, d.Of = 0, Path{part: actorEmbedding}
		case CountDistinct:
			d.Of = Path{part: actorPart}
		}
		if d.Aggregate == Count {
			d.HalfLife = rapid.SampledFrom([]time.Duration{0, MinHalfLife, 7 * time.Hour}).Draw(t, "half-life")
		}
		defs = append(defs, d)
	}
	return defs
}

// checkPins writes cards and attributes in any order, some again: the highest version of each counts.
func checkPins(t *rapid.T, store filled, pin schemas.PinID) {
	var want PinAttributes
	var batches []Batch
	known, deleted := false, false
	for v := range rapid.IntRange(0, 4).Draw(t, "cards") {
		c := &schemas.Card{PinVersion: schemas.PinVersion{Pin: pin, Version: schemas.Version(v)}}
		c.Author = rapid.SampledFrom([]schemas.UserID{"user:a", "user:b"}).Draw(t, "author")
		c.Interests = rapid.SliceOfNDistinct(rapid.SampledFrom([]schemas.InterestID{"interest:a", "interest:b"}), 0, 2, rapid.ID).Draw(t, "interests")
		c.Deleted = rapid.IntRange(0, 9).Draw(t, "deleted") == 0
		want.Facets, known, deleted = c.Facets, true, c.Deleted
		batches = append(batches, Batch{Cards: []*schemas.Card{c}})
	}
	for v := range rapid.IntRange(0, 4).Draw(t, "versions") {
		p := &schemas.PinAttributes{Pin: pin, Version: schemas.Version(v)}
		p.Attributes = rapid.MapOfN(rapid.SampledFrom([]string{"x", "y"}), rapid.SampledFrom([]string{"", "1"}), 0, 2).Draw(t, "attributes")
		p.Embedding = vectors().Draw(t, "embedding")
		want.Attributes, want.Embedding = p.Attributes, p.Embedding
		batches = append(batches, Batch{Pins: []*schemas.PinAttributes{p}})
	}
	for _, b := range rapid.Permutation(append(batches, batches...)).Draw(t, "order") {
		if err := store.Write(b); err != nil {
			t.Fatal(err)
		}
	}
	for _, embeddings := range []bool{true, false} {
		wanted := map[schemas.PinID]PinAttributes{}
		if !embeddings {
			want.Embedding = nil
		}
		if known && !deleted {
			wanted[pin] = want
		}
		got, err := store.Pins(context.Background(), []schemas.PinID{pin, pin + "-none"}, embeddings)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(wanted, got, cmpopts.EquateEmpty()); diff != "" {
			t.Fatalf("(-want +got):\n%s", diff)
		}
	}
}

// checkNeighbours looks at ids of which one is the beginning of another.
func checkNeighbours(t *testing.T, store filled) {
	names := []schemas.UserID{"user:n", "user:n:", "user:n0", "user:N", "user:n\u00e4"}
	for i, u := range names {
		for j := range i + 1 {
			a := &schemas.EnrichedAction{ID: strings.Repeat("x", j+1), Actor: u, Verb: "save", Object: "pin:1", Timestamp: now}
			if err := store.Write(Batch{Actions: []*schemas.EnrichedAction{a}}); err != nil {
				t.Fatal(err)
			}
		}
	}
	count := Definition{Entity: User, Window: time.Hour, Aggregate: Count}
	for i, u := range names {
		got, _, err := store.Actions(t.Context(), u, Span{Now: now, AsOf: now}, []Definition{count})
		if err != nil {
			t.Fatal(err)
		}
		if want := Number(i + 1); got[0].Value != want {
			t.Errorf("%s: got %v actions, want %v", u, got[0].Value, want)
		}
	}
}

// checkManyValues crosses the bound beyond which different values are estimated.
func checkManyValues(t *testing.T, store filled) {
	all := saves("user:many", 2*ExactDistinct, now)
	if err := store.Write(all); err != nil {
		t.Fatal(err)
	}
	var actions []schemas.EnrichedAction
	for _, a := range all.Actions {
		actions = append(actions, *a)
	}
	for n, exact := range map[int]bool{ExactDistinct - 1: true, ExactDistinct: true, 2 * ExactDistinct: false} {
		d := Definition{Entity: User, Window: time.Duration(n) * time.Millisecond, Aggregate: CountDistinct, Of: Path{part: objectPart}}
		got, _, err := store.Actions(t.Context(), "user:many", Span{Now: now, AsOf: now}, []Definition{d})
		if err != nil {
			t.Fatal(err)
		}
		if want := Reference(d, Span{Now: now, AsOf: now}, actions).Value; got[0].Value != want {
			t.Errorf("%d values: got %v, want %v as the reference", n, got[0].Value, want)
		}
		if x := float64(got[0].Value.(Number)); exact && x != float64(n) || math.Abs(x-float64(n)) > 0.05*float64(n) {
			t.Errorf("%d values: got %v", n, x)
		}
	}
}

// openTest opens an embedded store at the tests' now.
func openTest(t testing.TB, dir string, cfg Config) *EmbeddedStore {
	t.Helper()
	s, err := OpenEmbedded(dir, cfg, slog.New(slog.DiscardHandler), func() time.Time { return now.Time() })
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func TestEmbeddedStoreConforms(t *testing.T) {
	conforms(t, openTest(t, t.TempDir(), DefaultConfig()))
}
