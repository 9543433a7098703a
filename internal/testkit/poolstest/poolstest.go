// Package poolstest draws random users, deliveries and seen pins for tests of pools, and computes the expected pools.
package poolstest

import (
	"cmp"
	"fmt"
	"slices"

	"pgregory.net/rapid"

	"github.com/smartfeed/smartfeed/internal/convert"
	"github.com/smartfeed/smartfeed/internal/packed"
	"github.com/smartfeed/smartfeed/internal/testkit/deletedtest"
	"github.com/smartfeed/smartfeed/internal/testkit/memrows"
	"github.com/smartfeed/smartfeed/internal/testkit/must"
	"github.com/smartfeed/smartfeed/processors/pools/layout"
	"github.com/smartfeed/smartfeed/processors/ranked"
	"github.com/smartfeed/smartfeed/processors/rows"
	"github.com/smartfeed/smartfeed/schemas"
	"github.com/smartfeed/smartfeed/schemas/visibility"
)

const Owner schemas.UserID = "user:me"

// Deliver applies a delivery to the rows of one user, like the callback of the group.
func Deliver(m memrows.Table, source schemas.Source, d Delivered) {
	first := !d.Deleted && schemas.Micros(d.Version) == d.Created
	row := layout.AppendCandidate(nil, layout.VersionKind(first), source, d.PoolScore, d.Pin, d.Version)
	m[string(row)] = ranked.AppendBody(nil, &d.PinContent)
}

// See marks a pin as seen, as a visit does.
func See(m memrows.Table, pin schemas.PinID, position int64) {
	m[string(rows.Name(layout.KindSeen, pin))] = layout.AppendSeen(nil, layout.Seen{Position: position})
	m[string(layout.PositionRow(layout.KindSeenIndex, position))] = []byte(pin)
}

// SetState sets the state of a user.
func SetState(m memrows.Table, s layout.State) { m[string(layout.KindState)] = packed.Encode(&s) }

func View(t must.T, m memrows.Table) *layout.View {
	return must.Get(layout.NewView(m, Owner, deletedtest.Of(), schemas.Micros(0).Time(), 0, new(layout.Buffers)))(t)
}

func PoolOf(t must.T, m memrows.Table, source schemas.Source, n int) []Waiting {
	all := Best(t, View(t, m), source, n)
	return convert.All(all, func(c layout.Candidate) Waiting { return Waiting{c.Pin, c.PoolScore} })
}

// Best returns the n best waiting candidates of a source.
func Best(t must.T, v *layout.View, source schemas.Source, n int) []layout.Candidate {
	l := must.Get(v.Buffers.Iterate(v, source, n))(t)
	return must.Get(v.Best(source, nil, l.Take, n))(t)
}

type Waiting struct {
	Pin       schemas.PinID
	PoolScore schemas.PoolScore
}

// Delivered is one version of a pin, delivered over one edge.
type Delivered struct {
	Pin       schemas.PinID
	Version   schemas.Version
	PoolScore schemas.PoolScore
	schemas.PinContent
}

// Oracle computes a pool from all deliveries by the definition: the highest version of a pin determines its content, and the
// best score among the versions with the same creation time determines its place.
func Oracle(all []Delivered, visible func(*Delivered) bool, seen map[schemas.PinID]bool, n int) []Waiting {
	top := map[schemas.PinID]Delivered{}
	for _, d := range all {
		if t, ok := top[d.Pin]; !ok || d.Version > t.Version {
			top[d.Pin] = d
		}
	}
	list := []Waiting{}
	for pin, t := range top {
		if !visible(&t) || seen[pin] {
			continue
		}
		best := t.PoolScore
		for _, d := range all {
			if d.Pin == pin && d.Created == t.Created {
				best = max(best, d.PoolScore)
			}
		}
		list = append(list, Waiting{pin, best})
	}
	slices.SortFunc(list, func(a, b Waiting) int {
		return cmp.Or(cmp.Compare(b.PoolScore, a.PoolScore), cmp.Compare(a.Pin, b.Pin))
	})
	return list[:min(n, len(list))]
}

// World is a user with edges and seen pins.
type World struct {
	Table memrows.Table
	Seen  map[schemas.PinID]bool
	Graph visibility.Graph
}

func DrawWorld(t *rapid.T) World {
	w := World{Table: memrows.Table{}, Seen: map[schemas.PinID]bool{}, Graph: visibility.Graph{
		Follows: map[schemas.ID]float32{}, Blocks: map[schemas.ID]struct{}{}, BlockedBy: map[schemas.ID]struct{}{},
	}}
	draw := func(put func(schemas.ID), register byte, label string, ids ...schemas.ID) {
		for _, id := range ids {
			if rapid.Bool().Draw(t, label+string(id)) {
				put(id)
				w.Table[string(layout.GraphRow(register, id))] = layout.AppendFollow(nil, 0, 1)
			}
		}
	}
	draw(func(id schemas.ID) { w.Graph.Follows[id] = 1 }, layout.RegisterFollow, "follows ", "user:a", "user:b", "board:a")
	draw(func(id schemas.ID) { w.Graph.Blocks[id] = struct{}{} }, layout.RegisterBlock, "blocks ", "user:c", "board:b", "interest:x")
	draw(func(id schemas.ID) { w.Graph.BlockedBy[id] = struct{}{} }, layout.RegisterBlockedBy, "blocked by ", "user:b")
	for n := range 6 {
		if rapid.IntRange(0, 5).Draw(t, "seen") == 0 {
			pin := PinID(n)
			w.Seen[pin] = true
			See(w.Table, pin, int64(len(w.Seen)))
			// With a small head, a trim loads all seen pins. With a large one, it looks up each candidate.
			head := rapid.SampledFrom([]int{len(w.Seen), 1e6}).Draw(t, "head")
			SetState(w.Table, layout.State{Head: int64(head)})
		}
	}
	return w
}

func PinID(n int) schemas.PinID { return schemas.PinID(fmt.Sprintf("pin:%d", n)) }

func (w World) Visible(d *Delivered) bool {
	viewer := visibility.NewViewer(Owner, w.Graph, deletedtest.Of())
	pin := visibility.Pin{PinContent: schemas.PinContent{Facets: d.Facets, Deleted: d.Deleted}}
	return viewer.Hides(&pin, visibility.CandidateEdges(schemas.Following)) == ""
}

func DrawFacets(t *rapid.T) schemas.Facets {
	return schemas.Facets{
		Author:    rapid.SampledFrom([]schemas.UserID{"user:a", "user:b", "user:c", Owner}).Draw(t, "author"),
		Board:     rapid.SampledFrom([]schemas.BoardID{"", "board:a", "board:b"}).Draw(t, "board"),
		Interests: rapid.SliceOfN(rapid.SampledFrom([]schemas.InterestID{"interest:x", "interest:y"}), 0, 2).Draw(t, "interests"),
	}
}

// DrawVersions draws deliveries of up to n pins: up to four versions, each over up to two edges with different weights.
// Versions are assigned as in the group objects: at least the time of the event, and higher than the previous version.
func DrawVersions(t *rapid.T, n int) []Delivered {
	var all []Delivered
	for i := range rapid.IntRange(1, n).Draw(t, "pins") {
		created := schemas.Micros(rapid.IntRange(0, 3).Draw(t, "created"))
		version := schemas.Version(created) + schemas.Version(rapid.IntRange(0, 1).Draw(t, "updated before"))
		for range rapid.IntRange(1, 4).Draw(t, "versions") {
			if rapid.IntRange(0, 4).Draw(t, "earlier") == 0 {
				created--
				version++
			}
			d := Delivered{
				Pin: PinID(i), Version: version, PinContent: schemas.PinContent{Created: created, Deleted: rapid.IntRange(0, 7).Draw(t, "deleted") == 0, Facets: DrawFacets(t)},
			}
			version++
			for range rapid.IntRange(1, 2).Draw(t, "edges") {
				d.PoolScore = schemas.PoolScore(float64(created) + float64(rapid.IntRange(0, 2).Draw(t, "weight")))
				all = append(all, d)
			}
		}
	}
	return all
}

func (w World) Follows(id schemas.ID) bool { _, ok := w.Graph.Follows[id]; return ok }
