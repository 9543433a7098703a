// Package conformance has the tests of feature stores: one suite, run for each implementation.
package conformance

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
	"github.com/prometheus/client_golang/prometheus"
	"pgregory.net/rapid"

	"github.com/smartfeed/smartfeed/internal/testkit/deletedtest"
	"github.com/smartfeed/smartfeed/internal/testkit/expect"
	"github.com/smartfeed/smartfeed/internal/testkit/must"
	"github.com/smartfeed/smartfeed/schemas"
	"github.com/smartfeed/smartfeed/serving/feature"
)

// store is a feature store as the pipeline uses it. The pipeline writes the records of the topics, and the feature
// service reads.
type store interface {
	feature.Store
	// Write returns when all later reads see the batch.
	Write(b feature.Batch) error
}

// run runs the suite on an empty store whose present time is now. It writes everything first, in a few batches, because
// a remote store needs time for each batch. Then it compares the answers of the store with feature.Reference.
func run(t *testing.T, s store, now schemas.Micros) {
	w := newWorld(now)
	w.write(t, s)
	for round := range rounds() { // each makes a hundred reads with about four definitions
		t.Run(fmt.Sprintf("actions %d", round), rapid.MakeCheck(func(t *rapid.T) { w.checkActions(t, s) }))
	}
	for round := range rounds() / 2 {
		t.Run(fmt.Sprintf("items %d", round), rapid.MakeCheck(func(t *rapid.T) { w.checkItems(t, s) }))
		t.Run(fmt.Sprintf("pairs %d", round), rapid.MakeCheck(func(rt *rapid.T) { w.checkPairs(t, rt, s) }))
	}
	t.Run("earlier as_of", func(t *testing.T) { w.checkAsOf(t, s) })
	t.Run("pins", func(t *testing.T) { w.checkPins(t, s) })
	t.Run("adjacent ids", func(t *testing.T) { w.checkNeighbors(t, s) })
	t.Run("ids like queries", func(t *testing.T) { w.checkHostile(t, s) })
	t.Run("repeated members", func(t *testing.T) { w.checkRepeats(t, s) })
	t.Run("long history", func(t *testing.T) { w.checkLong(t, s) })
	t.Run("many different values", func(t *testing.T) { w.checkManyValues(t, s) })
}

// fewGroups is Config.MaxGroups of the store that runFewGroups tests.
const fewGroups = 2

// runFewGroups reads groups from a store that holds the data of run, with the same now. Up to fewGroups groups, the
// result must equal that of feature.Reference. If there are more, the store must return fewGroups groups with the
// reason Cap, and the same ones for any other definitions in the read.
func runFewGroups(t *testing.T, s feature.Store, now schemas.Micros) {
	met := map[string]int{}
	for _, p := range newWorld(now).people[:people/3] {
		for _, by := range []string{
			"verb", "object", "objectAttributes.author", "objectAttributes.board", "objectAttributes.interests",
			"objectAttributes.board verbAttributes.surface", "verb objectAttributes.interests actorAttributes.interests",
		} {
			d := feature.Definition{Entity: feature.User, Window: feature.Kept, Aggregate: feature.Count}
			for _, key := range strings.Fields(by) {
				d.GroupBy = append(d.GroupBy, path(key))
			}
			met[p.few(t, s, d)]++
		}
	}
	for _, which := range []string{fewer, asMany, more} {
		expect.AtLeast(t, met[which], 1, "persons with %s: %v", which, met)
	}
}

// Cases that runFewGroups must cover.
const (
	fewer  = "fewer groups, or no action outside of any"
	asMany = "fewGroups, and an action outside of any"
	more   = "more groups"
)

// few reads the groups of a person, with and without another definition, and returns the case that it covered.
func (p *person) few(t *testing.T, s feature.Store, d feature.Definition) string {
	t.Helper()
	complete := feature.Reference(d, p.span, p.actions)
	all := complete.Value.(feature.Groups)
	var got [2]feature.Result
	for i, defs := range [][]feature.Definition{{d}, {d, d}} {
		results, _, err := s.Actions(t.Context(), p.user, p.span, defs)
		must.OK(t, err)
		got[i] = results[0]
		slices.Sort(got[i].Reasons)
	}
	expect.NoDiff(t, got[1], got[0], "%s by %s (-alone +with another)", p.user, d.GroupBy)
	met, want := fewer, complete
	if len(all) > fewGroups {
		met, want = more, feature.Result{Value: feature.Groups{}, Reasons: append([]feature.Reason{feature.Cap}, complete.Reasons...)}
		for g := range got[0].Value.(feature.Groups) {
			want.Value.(feature.Groups)[g] = all[g]
		}
		expect.Equal(t, len(want.Value.(feature.Groups)), fewGroups, "%s by %s: groups of %v of %v", p.user, d.GroupBy, got[0].Value, all)
	} else if len(all) == fewGroups && p.outside(d) {
		met = asMany
	}
	expect.NoDiff(t, got[0], want, "%s by %s", p.user, d.GroupBy)
	return met
}

// outside reports whether the person has an action that is in no group.
func (p *person) outside(d feature.Definition) bool {
	return slices.ContainsFunc(p.actions, func(a schemas.EnrichedAction) bool {
		alone := []schemas.EnrichedAction{a}
		n := feature.Reference(feature.Definition{Entity: d.Entity, Window: d.Window, Aggregate: d.Aggregate}, p.span, alone)
		return n.Value == feature.Number(1) && len(feature.Reference(d, p.span, alone).Value.(feature.Groups)) == 0
	})
}

func rounds() int {
	if testing.Short() {
		return 2
	}
	return 10
}

// equal compares answers. Stores may add weights in another order, so they may differ slightly. Counts are whole
// numbers and must be exact.
var equal = cmp.Options{
	cmpopts.EquateApprox(1e-6, 1e-9), // vectors, of 32 bits
	cmp.Comparer(func(a, b feature.Number) bool {
		return math.Abs(float64(a-b)) <= max(1e-9, 1e-9*math.Abs(float64(a)))
	}),
}

// tester is a *testing.T or a *rapid.T.
type tester interface {
	expect.T
	must.T
}

// same reads the features of a person and compares them with the reference.
func (p *person) same(t tester, s store, defs ...feature.Definition) {
	got, _, err := s.Actions(context.Background(), p.user, p.span, defs)
	must.OK(t, err)
	for i, d := range defs {
		want := feature.Reference(d, p.span, p.actions)
		slices.Sort(want.Reasons)
		slices.Sort(got[i].Reasons)
		expect.NoDiffBut(t, equal, got[i], want, "%s as of %d, definition %d, %+v, of %+v", p.user, p.span.AsOf, i, d, p.actions)
	}
}

func (w *world) checkActions(t *rapid.T, s store) {
	p := &w.people[rapid.IntRange(0, len(w.people)-1).Draw(t, "person")]
	alone := rapid.SliceOfN(definitions(), 1, 1) // a store may have a special query for a single definition
	defs := rapid.OneOf(alone, rapid.SliceOfN(definitions(), 2, 12)).Draw(t, "definitions")
	for i := range defs {
		defs[i].Name = fmt.Sprint("f", i)
	}
	p.same(t, s, defs...)
}

func (w *world) checkItems(t *rapid.T, s store) {
	p := w.items[rapid.IntRange(0, len(w.items)-1).Draw(t, "pin")]
	defs := rapid.SliceOfN(itemDefinitions(), 1, 5).Draw(t, "definitions")
	got, _, err := s.Items(context.Background(), []schemas.PinID{p.pin, "pin:nothing-is-known-of", p.pin}, p.now, defs)
	must.OK(t, err)
	for i, d := range defs {
		for j, all := range [][]schemas.ItemCounts{p.counts, nil, p.counts} {
			want := feature.ReferenceItems(d, p.now, all)
			expect.NoDiffBut(t, equal, got[j][i], want, "%+v of %s at %d, of %d steps", d, p.pin, p.now, len(all))
		}
	}
}

// checkPairs reads features of a person and of the pair with a pin that may be unknown or deleted. It compares the answer
// of a service with the reference.
func (w *world) checkPairs(t *testing.T, rt *rapid.T, s store) {
	p := &w.people[rapid.IntRange(0, len(w.people)-1).Draw(rt, "person")]
	v := w.pins[rapid.IntRange(0, len(w.pins)-1).Draw(rt, "pin")]
	defs := rapid.SliceOfN(definitions(), 1, 5).Draw(rt, "definitions")
	req := feature.Request{Users: []schemas.UserID{p.user}, Pairs: []feature.UserPin{{User: p.user, Pin: v.pin}}}
	for i := range defs {
		defs[i].Name = fmt.Sprint("f", i)
		req.Features = append(req.Features, defs[i].Name)
	}
	at := p.span.AsOf.Time()
	req.At = &at
	got := must.Get(w.serviceOf(t, s, defs).Answer(t.Context(), req))(rt)
	span := feature.Span{Now: p.span.Now, AsOf: schemas.MicrosOf(got.AsOf)}
	for _, d := range defs {
		entity, want := string(p.user), feature.Reference(d, span, p.actions)
		if d.Entity == feature.Pair {
			entity, want = req.Pairs[0].String(), feature.ReferencePair(d, span, p.actions, v.pin, w.pin)
		}
		res := feature.Result{Value: got.Values[entity][d.Name]}
		for _, m := range got.Missing {
			if m.Entity == entity && m.Feature == d.Name {
				res.Reasons = append(res.Reasons, m.Reason)
			}
		}
		slices.Sort(want.Reasons)
		slices.Sort(res.Reasons)
		expect.NoDiffBut(rt, equal, res, want, "%s as of %v, %+v (-reference +answer)", entity, at, d)
	}
}

// pin returns the newest data of a pin.
func (w *world) pin(pin schemas.PinID) (own feature.PinAttributes, known bool) {
	i := slices.IndexFunc(w.pins, func(v versions) bool { return v.pin == pin })
	if i < 0 {
		return own, false
	}
	return w.pins[i].newest()
}

// checkAsOf reads features of a user, a pin and a pair in one request with an earlier as_of. It applies to the actions
// of the user; pins are always as of now.
func (w *world) checkAsOf(t *testing.T, s store) {
	at := w.looker.span.AsOf.Time()
	req := feature.Request{
		Features: []string{"user_saves", "pin_saves", "pair_saves"}, At: &at,
		Users: []schemas.UserID{w.looker.user}, Pins: []schemas.PinID{lookedAt},
		Pairs: []feature.UserPin{{User: w.looker.user, Pin: lookedAt}},
	}
	got := must.Get(w.service(t, s, `
features:
- {name: user_saves, entity: user, verbs: save, window: 1h, aggregate: count}
- {name: pin_saves, entity: pin, verbs: save, window: 1h, aggregate: count}
- {name: pair_saves, entity: pair, verbs: save, window: 1h, aggregate: count, group_by: object}
`).Answer(t.Context(), req))(t)
	want := map[string]map[string]feature.Value{
		string(w.looker.user): {"user_saves": feature.Number(2)},
		string(lookedAt):      {"pin_saves": feature.Number(7)},
		req.Pairs[0].String(): {"pair_saves": feature.Number(2)},
	}
	expect.NoDiff(t, got.Values, want, "values as of %s", at)
	expect.Empty(t, got.Missing, "missing values as of %s", at)
}

// service returns a service over the store, with the world's present time.
func (w *world) service(t *testing.T, s store, definitions string) *feature.Service {
	defs := must.Get(feature.Parse("definitions", []byte(definitions)))(t)
	return w.serviceOf(t, s, defs)
}

func (w *world) serviceOf(t *testing.T, s store, defs []feature.Definition) *feature.Service {
	metrics := must.Get(feature.NewMetrics(prometheus.NewRegistry()))(t)
	cfg := feature.DefaultConfig()
	cfg.Timeout = time.Minute // a remote store may be slow here
	service := must.Get(feature.NewService(cfg, feature.Deps{
		Store: s, Definitions: defs, Deleted: deletedtest.Of(), Metrics: metrics, Log: slog.New(slog.DiscardHandler), Now: w.now.Time,
	}))(t)
	t.Cleanup(service.Close)
	return service
}

// checkPins reads all pins in one call: the highest version of each counts, in any order of arrival.
func (w *world) checkPins(t *testing.T, s store) {
	pins := []schemas.PinID{"pin:nothing-is-known-of"}
	for _, p := range w.pins {
		pins = append(pins, p.pin)
	}
	for _, embeddings := range []bool{true, false} {
		want := map[schemas.PinID]feature.PinAttributes{}
		for _, p := range w.pins {
			if own, known := p.newest(); known {
				if !embeddings {
					own.Embedding = nil
				}
				want[p.pin] = own
			}
		}
		got, _, err := s.Pins(t.Context(), pins, embeddings)
		must.OK(t, err)
		expect.NoDiffBut(t, cmpopts.EquateEmpty(), got, want, "with embeddings: %v", embeddings)
	}
}

// checkNeighbors reads users of whom one's id is a prefix of another's.
func (w *world) checkNeighbors(t *testing.T, s store) {
	count := feature.Definition{Entity: feature.User, Window: time.Hour, Aggregate: feature.Count}
	for i := range w.neighbors {
		p := &w.neighbors[i]
		p.same(t, s, count)
		expect.Equal[any](t, feature.Reference(count, p.span, p.actions).Value, feature.Number(i+1), "%s: count", p.user)
	}
}

// checkHostile reads users and values that look like queries. Each user has one action, sees no action of another user,
// and no read fails.
func (w *world) checkHostile(t *testing.T, s store) {
	for i := range w.hostile {
		p := &w.hostile[i]
		byObject := feature.Definition{Entity: feature.User, Window: feature.Kept, Aggregate: feature.Count}
		byObject.Where = []feature.Condition{{Path: path("object"), In: []string{string(p.actions[0].Object)}}}
		byValue := feature.Definition{Entity: feature.User, Window: feature.Kept, Aggregate: feature.Count, GroupBy: feature.Grouping{path("objectAttributes.x"), path("object")}}
		p.same(t, s, byObject)
		p.same(t, s, byValue)
		p.same(t, s, byObject, byValue)
	}
}

// checkRepeats groups by lists with repeated members: an action counts once per member.
func (w *world) checkRepeats(t *testing.T, s store) {
	for _, list := range []string{"objectAttributes.interests", "actorAttributes.interests"} {
		for _, aggregate := range []feature.Aggregate{feature.Count, feature.Rate} {
			d := feature.Definition{Entity: feature.User, Window: time.Hour, Aggregate: aggregate, GroupBy: feature.Grouping{path(list)}}
			w.repeats.same(t, s, d)
			d.Where = []feature.Condition{{Path: path(list), In: []string{"interest:1", "interest:2", "interest:3"}}}
			w.repeats.same(t, s, d)
			w.repeats.same(t, s, d, d)
			d.GroupBy = feature.Grouping{path("objectAttributes.interests"), path("actorAttributes.interests")}
			w.repeats.same(t, s, d)
		}
	}
}

// checkManyValues crosses the bound above which distinct values are estimated.
func (w *world) checkManyValues(t *testing.T, s store) {
	for n, exact := range map[int]bool{feature.ExactDistinct - 1: true, feature.ExactDistinct: true, 2 * feature.ExactDistinct: false} {
		d := feature.Definition{
			Entity: feature.User, Window: time.Duration(n) * time.Millisecond, Aggregate: feature.CountDistinct, Of: path("object"),
		}
		w.many.same(t, s, d)
		got := float64(feature.Reference(d, w.many.span, w.many.actions).Value.(feature.Number))
		if exact && got != float64(n) || math.Abs(got-float64(n)) > 0.05*float64(n) {
			t.Errorf("%d values: got %v", n, got)
		}
	}
}

// checkLong reads sequences of a person with more actions than a sequence contains: as of now, and as of an earlier time,
// since when later actions have replaced some of those that match.
func (w *world) checkLong(t *testing.T, s store) {
	all := feature.Definition{Entity: feature.User, Aggregate: feature.TakeSequence, N: feature.MaxSequence, Columns: []feature.Path{path("object")}}
	clicks := feature.Definition{
		Entity: feature.User, Aggregate: feature.TakeSequence, N: 90, Verbs: []schemas.Verb{schemas.Click}, Embedding: feature.Int8,
		Columns: []feature.Path{path("verbAttributes.surface"), path("objectAttributes.embedding")},
	}
	recent := feature.Definition{Entity: feature.User, Aggregate: feature.Count, Window: feature.Kept}
	p := w.long
	for ago, want := range map[schemas.Micros]int{0: feature.MaxSequence, 120 * hour: 273} {
		p.span.AsOf = w.now - ago
		p.same(t, s, all, clicks, recent)
		p.same(t, s, clicks)
		got := feature.Reference(all, p.span, p.actions)
		length := len(got.Value.(feature.Sequence).Times)
		if length != want || (ago > 0) != slices.Contains(got.Reasons, feature.Window) {
			t.Errorf("%d actions as of %d hours ago, missing %v, want %d", length, ago/hour, got.Reasons, want)
		}
	}
}
