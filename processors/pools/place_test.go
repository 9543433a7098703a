package pools

import (
	"cmp"
	"fmt"
	"slices"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/smartfeed/smartfeed/processors/ranked"
	"github.com/smartfeed/smartfeed/schemas"
)

// nobody is an empty set of deleted users.
type nobody struct{}

func (nobody) Has(schemas.UserID) bool { return false }
func (nobody) Len() int                { return 0 }

func (nobody) Note(schemas.UserID, schemas.Micros) {}

const owner schemas.UserID = "user:me"

// put does what the deliver callback does for one user.
func (m memory) put(source schemas.Source, d delivered) {
	first := !d.deleted && schemas.Micros(d.version) == d.created
	row := appendCandidate(nil, kindOf(first), source, d.score, d.pin, d.version)
	m[string(row)] = ranked.AppendBody(nil, &ranked.Body{Facets: d.Facets, Created: d.created, Deleted: d.deleted})
}

// see marks a pin as seen, as freeze does.
func (m memory) see(pin schemas.PinID, position int64) {
	m[string(rowOf(rowSeen, pin))] = appendSeen(nil, seen{position: position})
	m[string(positionRow(rowIndex, position))] = []byte(pin)
}

// fataler is a test of package testing or of rapid.
type fataler interface{ Fatal(args ...any) }

// trim does what a trim in a callback does.
func (m memory) trim(t fataler, source schemas.Source, most int) map[string]int {
	list, trimmed, err := m.look(t).trim(source, most)
	if err != nil {
		t.Fatal(err)
	}
	dropped := map[string]int{}
	for i, reason := range trimmed.reasons {
		if reason != "" {
			dropped[reason]++
			delete(m, list[i].name)
		}
	}
	return dropped
}

func (m memory) look(t fataler) *view {
	v, err := viewOf(m, owner, nobody{}, schemas.Micros(0).Time(), 0, new(scratch))
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func (m memory) pool(t fataler, source schemas.Source, n int) []waitingPin {
	all, err := m.look(t).pool(source, n)
	if err != nil {
		t.Fatal(err)
	}
	list := []waitingPin{}
	for _, c := range all {
		list = append(list, waitingPin{c.pin, c.score})
	}
	return list
}

type waitingPin struct {
	Pin   schemas.PinID
	Score float64
}

// delivered is one version of a pin as it reaches the user over one edge.
type delivered struct {
	pin     schemas.PinID
	version schemas.Version
	score   float64
	created schemas.Micros
	deleted bool
	schemas.Facets
}

// oracle computes a pool from all deliveries by the definition: the highest version of a pin determines its content, and the
// best score among the versions with the same creation time determines its place.
func oracle(all []delivered, visible func(*delivered) bool, seen map[schemas.PinID]bool, n int) []waitingPin {
	top := map[schemas.PinID]delivered{}
	for _, d := range all {
		if t, ok := top[d.pin]; !ok || d.version > t.version {
			top[d.pin] = d
		}
	}
	list := []waitingPin{}
	for pin, t := range top {
		if !visible(&t) || seen[pin] {
			continue
		}
		best := t.score
		for _, d := range all {
			if d.pin == pin && d.created == t.created {
				best = max(best, d.score)
			}
		}
		list = append(list, waitingPin{pin, best})
	}
	slices.SortFunc(list, func(a, b waitingPin) int {
		return cmp.Or(cmp.Compare(b.Score, a.Score), cmp.Compare(a.Pin, b.Pin))
	})
	return list[:min(n, len(list))]
}

// world is a user with edges and seen pins.
type world struct {
	table memory
	seen  map[schemas.PinID]bool
	graph graph
}

func drawWorld(t *rapid.T) world {
	w := world{table: memory{}, seen: map[schemas.PinID]bool{}, graph: graph{
		follows: map[schemas.ID]float32{}, blocks: map[schemas.ID]struct{}{}, blockedBy: map[schemas.ID]struct{}{},
	}}
	draw := func(put func(schemas.ID), register byte, label string, ids ...schemas.ID) {
		for _, id := range ids {
			if rapid.Bool().Draw(t, label+string(id)) {
				put(id)
				w.table[string(graphRow(register, id))] = []byte{}
			}
		}
	}
	draw(func(id schemas.ID) { w.graph.follows[id] = 1 }, regFollow, "follows ", "user:a", "user:b", "board:a")
	draw(func(id schemas.ID) { w.graph.blocks[id] = struct{}{} }, regBlock, "blocks ", "user:c", "board:b", "interest:x")
	draw(func(id schemas.ID) { w.graph.blockedBy[id] = struct{}{} }, regBlocked, "blocked by ", "user:b")
	for n := range 6 {
		if rapid.IntRange(0, 5).Draw(t, "seen") == 0 {
			pin := pinID(n)
			w.seen[pin] = true
			w.table.see(pin, int64(len(w.seen)))
			// A small head makes a trim load all seen pins; a large one makes it look up each candidate.
			head := rapid.SampledFrom([]int{len(w.seen), 1e6}).Draw(t, "head")
			w.table[string(rowState)] = fmt.Appendf(nil, `{"head":%d}`, head)
		}
	}
	return w
}

func pinID(n int) schemas.PinID { return schemas.PinID(fmt.Sprintf("pin:%d", n)) }

func (w world) visible(d *delivered) bool {
	return !d.deleted && visible(w.graph, schemas.Following, &d.Facets)
}

func drawFacets(t *rapid.T) schemas.Facets {
	return schemas.Facets{
		Author:    rapid.SampledFrom([]schemas.UserID{"user:a", "user:b", "user:c", owner}).Draw(t, "author"),
		Board:     rapid.SampledFrom([]schemas.BoardID{"", "board:a", "board:b"}).Draw(t, "board"),
		Interests: rapid.SliceOfN(rapid.SampledFrom([]schemas.InterestID{"interest:x", "interest:y"}), 0, 2).Draw(t, "interests"),
	}
}

// drawVersions draws deliveries of up to n pins: up to four versions, each over up to two edges with different weights.
// Versions are assigned as in the group objects: at least the time of the event, and higher than the previous version.
func drawVersions(t *rapid.T, n int) []delivered {
	var all []delivered
	for i := range rapid.IntRange(1, n).Draw(t, "pins") {
		created := schemas.Micros(rapid.IntRange(0, 3).Draw(t, "created"))
		version := schemas.Version(created) + schemas.Version(rapid.IntRange(0, 1).Draw(t, "updated before"))
		for range rapid.IntRange(1, 4).Draw(t, "versions") {
			if rapid.IntRange(0, 4).Draw(t, "earlier") == 0 {
				created--
				version++
			}
			d := delivered{
				pin: pinID(i), version: version, created: created, deleted: rapid.IntRange(0, 7).Draw(t, "deleted") == 0,
				Facets: drawFacets(t),
			}
			version++
			for range rapid.IntRange(1, 2).Draw(t, "edges") {
				d.score = float64(created) + float64(rapid.IntRange(0, 2).Draw(t, "weight"))
				all = append(all, d)
			}
		}
	}
	return all
}

// While no cap is exceeded, a pool equals the oracle of all deliveries, for any order of arrival, repetitions and trims.
func TestPoolIsTheOraclesInAnyOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const plenty = 10
		w, all := drawWorld(t), drawVersions(t, plenty)
		order := append(slices.Clone(all), rapid.SliceOfN(rapid.SampledFrom(all), 0, 5).Draw(t, "repeats")...)
		for _, d := range rapid.Permutation(order).Draw(t, "order") {
			w.table.put(schemas.Following, d)
			if rapid.IntRange(0, 3).Draw(t, "trim") == 0 {
				w.table.trim(t, schemas.Following, plenty)
			}
		}
		n := rapid.IntRange(1, plenty).Draw(t, "n")
		want := oracle(all, w.visible, w.seen, n)
		if diff := gocmp.Diff(want, w.table.pool(t, schemas.Following, n)); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	})
}

// With additions only, this also holds beyond the caps.
func TestPoolKeepsTheBestBeyondTheCap(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const most = 5
		w := drawWorld(t)
		var all []delivered
		for i := range rapid.IntRange(1, 40).Draw(t, "pins") {
			all = append(all, delivered{
				pin: pinID(i), version: 1, score: float64(rapid.IntRange(0, 9).Draw(t, "score")), Facets: drawFacets(t),
			})
		}
		dropped := 0
		for _, d := range rapid.Permutation(all).Draw(t, "order") {
			w.table.put(schemas.Following, d)
			if rapid.IntRange(0, most).Draw(t, "trim") == 0 {
				for _, n := range w.table.trim(t, schemas.Following, most) {
					dropped += n
				}
			}
		}
		want := oracle(all, w.visible, w.seen, most)
		if diff := gocmp.Diff(want, w.table.pool(t, schemas.Following, most)); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		for _, n := range w.table.trim(t, schemas.Following, most) {
			dropped += n
		}
		list, err := candidateRows(w.table, schemas.Following)
		if err != nil {
			t.Fatal(err)
		}
		if len(list) > 2*most {
			t.Errorf("%d rows after a trim, at most %d visible and as many hidden", len(list), most)
		}
		if dropped+len(list) != len(all) {
			t.Errorf("%d dropped and %d left of %d", dropped, len(list), len(all))
		}
	})
}

func TestTrimSaysWhy(t *testing.T) {
	m := memory{string(graphRow(regFollow, "user:a")): {}}
	m.see("pin:seen", 2)
	m.see("pin:elsewhere", 3)
	m[string(rowState)] = []byte(`{"head":3,"unseen":1,"refused":-5}`)
	followed, other := schemas.Facets{Author: "user:a"}, schemas.Facets{Author: "user:b"}
	for _, d := range []delivered{
		{pin: "pin:best", version: 1, score: 9, Facets: followed},
		{pin: "pin:best", version: 2, score: 8, Facets: followed}, // the highest version
		{pin: "pin:best", version: 1, score: 7, Facets: followed}, // neither the best nor the highest
		{pin: "pin:seen", version: 1, score: 6, Facets: followed}, // takes up no place in the pool
		{pin: "pin:second", version: 1, score: 5, Facets: followed},
		{pin: "pin:moved", version: 1, score: 5, Facets: followed, created: 1}, // its highest version has another place
		{pin: "pin:moved", version: 2, score: 1, Facets: followed},
		{pin: "pin:old", version: 1, score: 4, Facets: followed, created: -6},
		{pin: "pin:hidden", version: 1, score: 3, Facets: other},
		{pin: "pin:gone", version: 1, score: 2, Facets: followed, deleted: true},
		{pin: "pin:hidden3", version: 1, score: 1, Facets: other},
	} {
		m.put(schemas.Following, d)
	}
	want := map[string]int{dropDuplicate: 2, dropSeen: 1, dropCap: 1, dropRefused: 1, dropHiddenCap: 1}
	if diff := gocmp.Diff(want, m.trim(t, schemas.Following, 2)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if diff := gocmp.Diff([]waitingPin{{"pin:best", 9}, {"pin:second", 5}}, m.pool(t, schemas.Following, 9)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if again := m.trim(t, schemas.Following, 2); len(again) != 0 {
		t.Errorf("a second trim drops %v", again)
	}
}

func TestExpiryAndDeletedAuthors(t *testing.T) {
	m := memory{}
	m.put("editors", delivered{pin: "pin:new", version: 1, created: 90e6, Facets: schemas.Facets{Author: "user:a"}})
	m.put("editors", delivered{pin: "pin:old", version: 1, created: 20e6, Facets: schemas.Facets{Author: "user:a"}})
	m.put("editors", delivered{pin: "pin:orphan", version: 1, created: 90e6, Facets: schemas.Facets{Author: "user:gone"}})
	v, err := viewOf(m, owner, only{"user:gone"}, schemas.Micros(100e6).Time(), 60e9, new(scratch))
	if err != nil {
		t.Fatal(err)
	}
	all, err := v.pool("editors", 10)
	if err != nil || len(all) != 1 || all[0].pin != "pin:new" {
		t.Errorf("got %v, %v, want pin:new", all, err)
	}
}

type only struct{ user schemas.UserID }

func (o only) Has(user schemas.UserID) bool { return user == o.user }
func (o only) Len() int                     { return 1 }
