package feature

import (
	"context"
	"fmt"
	"log/slog"
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
	t.Run("rows of others", func(t *testing.T) { checkNeighbours(t, store) })
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
	got, err := store.Actions(context.Background(), user, span, defs)
	if err != nil {
		t.Fatal(err)
	}
	for i, d := range defs {
		want := Reference(d, span, all)
		slices.Sort(want.Reasons)
		slices.Sort(got[i].Reasons)
		if diff := cmp.Diff(want, got[i]); diff != "" {
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
		early := c
		early.Counts = map[string]int64{"save": 9, "view": 9} // replaced by what comes later
		if err := store.Write(Batch{Counts: []*schemas.ItemCounts{&early, &c}}); err != nil {
			t.Fatal(err)
		}
		last = append(last, c)
	}
	var defs []Definition
	for _, w := range rapid.SliceOfNDistinct(rapid.SampledFrom(append(windows(), 5*time.Minute)), 1, 3, rapid.ID[time.Duration]).Draw(t, "windows") {
		d := Definition{Entity: Pin, Window: w, Aggregate: rapid.SampledFrom([]Aggregate{Count, Rate}).Draw(t, "aggregate")}
		d.Verbs = rapid.SampledFrom([][]schemas.Verb{nil, {"save"}, {"impression", "click"}}).Draw(t, "verbs")
		d.GroupBy = rapid.SampledFrom([]Path{{}, {part: verbPart}}).Draw(t, "group")
		defs = append(defs, d)
	}
	got, err := store.Items(context.Background(), []schemas.PinID{pin, pin + "-none"}, at, defs)
	if err != nil {
		t.Fatal(err)
	}
	for i, d := range defs {
		if diff := cmp.Diff(ReferenceItems(d, at, last), got[0][i]); diff != "" {
			t.Fatalf("%+v at %d (-reference +store):\n%s", d, at, diff)
		}
		if diff := cmp.Diff(ReferenceItems(d, at, nil), got[1][i]); diff != "" {
			t.Fatalf("%+v of a pin without counts (-reference +store):\n%s", d, diff)
		}
	}
}

// checkPins writes cards and actions in any order: the newest of each counts.
func checkPins(t *rapid.T, store filled, pin schemas.PinID) {
	type known struct {
		at     schemas.Micros
		own    schemas.ObjectAttributes
		gone   bool
		byCard bool
	}
	all := rapid.SliceOfNDistinct(rapid.Custom(func(t *rapid.T) known {
		k := known{at: now - schemas.Micros(rapid.IntRange(0, 50).Draw(t, "age")), byCard: rapid.Bool().Draw(t, "card")}
		k.own.Facets = schemas.Facets{Author: rapid.SampledFrom([]schemas.UserID{"user:a", "user:b"}).Draw(t, "author")}
		if !k.byCard {
			k.own.Attributes = map[string]string{"x": rapid.SampledFrom([]string{"1", "2", "3"}).Draw(t, "x")}
		}
		k.gone = k.byCard && rapid.IntRange(0, 9).Draw(t, "gone") == 0
		return k
	}), 0, 6, func(k known) [2]any { return [2]any{k.at, k.byCard} }).Draw(t, "known")
	for _, k := range rapid.Permutation(append(all, all...)).Draw(t, "order") {
		b := Batch{}
		if k.byCard {
			b.Cards = []*schemas.Card{{PinVersion: schemas.PinVersion{Pin: pin, Version: schemas.Version(k.at), Facets: k.own.Facets, Deleted: k.gone}}}
		} else {
			b.Actions = []*schemas.EnrichedAction{{ID: fmt.Sprint(k.at), Actor: "user:any", Object: schemas.ID(pin), Verb: "save", Timestamp: k.at, ObjectAttributes: k.own}}
		}
		if err := store.Write(b); err != nil {
			t.Fatal(err)
		}
	}
	slices.SortFunc(all, func(a, b known) int { return int(a.at - b.at) })
	want, byCard, deleted := PinAttributes{}, false, false
	for _, k := range all {
		if k.byCard {
			want.Facets, byCard, deleted = k.own.Facets, true, k.gone
		}
	}
	for _, k := range all {
		if !k.byCard && !byCard {
			want.Facets = k.own.Facets
		}
		if !k.byCard {
			want.Attributes = k.own.Attributes
		}
	}
	got, err := store.Pins(context.Background(), []schemas.PinID{pin, pin + "-none"})
	if err != nil {
		t.Fatal(err)
	}
	wanted := map[schemas.PinID]PinAttributes{}
	if len(all) > 0 && !deleted {
		wanted[pin] = want
	}
	if diff := cmp.Diff(wanted, got, cmpopts.EquateEmpty()); diff != "" {
		t.Fatalf("(-want +got):\n%s", diff)
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
		got, err := store.Actions(t.Context(), u, Span{Now: now, AsOf: now}, []Definition{count})
		if err != nil {
			t.Fatal(err)
		}
		if want := Number(i + 1); got[0].Value != want {
			t.Errorf("%s: got %v actions, want %v", u, got[0].Value, want)
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
