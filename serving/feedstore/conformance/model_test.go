package conformance

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/smartfeed/smartfeed/internal/testkit/expect"
	"github.com/smartfeed/smartfeed/schemas"
	"github.com/smartfeed/smartfeed/serving/feedstore"
)

// world is a small set of records about one user and one author, and the model. The model computes the expected result of
// each read from all records at once, as the rules state it.
type world struct {
	user   schemas.UserID
	author schemas.Followee
	pins   []schemas.PinID
	feedstore.Batch
}

func drawWorld(rt *rapid.T) *world {
	id := fresh()
	w := &world{user: schemas.UserID("user:" + id), author: schemas.Followee("user:author" + id)}
	for i := range 4 {
		w.pins = append(w.pins, schemas.PinID(fmt.Sprintf("pin:%s-%d", id, i)))
	}
	w.Entries = entries(w.user, 1, rapid.Int64Range(0, 35).Draw(rt, "entries"))
	for range rapid.IntRange(0, 8).Draw(rt, "edges") {
		w.Edges = append(w.Edges, schemas.Edge{
			User: w.user, Other: rapid.SampledFrom([]schemas.ID{"board:1", "user:2", "interest:3"}).Draw(rt, "other"),
			Kind: rapid.SampledFrom([]schemas.EdgeKind{schemas.FollowEdge, schemas.BlockEdge, schemas.BlockedEdge}).Draw(rt, "kind"),
			Live: rapid.Bool().Draw(rt, "live"), Time: schemas.Micros(rapid.Int64Range(-2, 4).Draw(rt, "time")),
		})
	}
	for _, pin := range w.pins {
		w.drawVersions(rt, pin)
	}
	if rapid.Bool().Draw(rt, "deleted") {
		w.Deleted = append(w.Deleted, schemas.DeletedUser{User: w.user, Time: 7})
	}
	return w
}

// drawVersions draws versions of pin with distinct numbers: with or without the author among the facets, and sometimes with
// another creation time or deleted.
func (w *world) drawVersions(rt *rapid.T, pin schemas.PinID) {
	for v := range rapid.IntRange(0, 5).Draw(rt, "versions") {
		p := schemas.PinVersion{
			Pin: pin, Version: schemas.Version(v - 1), Quality: 1 / float64(v+1),
			PinContent: schemas.PinContent{Created: schemas.Micros(rapid.Int64Range(-1, 2).Draw(rt, "created")), Deleted: rapid.IntRange(0, 5).Draw(rt, "dead") == 0},
		}
		if rapid.Bool().Draw(rt, "listed") {
			p.Author = schemas.UserID(w.author)
		} else {
			p.Interests = []schemas.InterestID{"interest:other"}
		}
		w.Publications = append(w.Publications, schemas.Publication{Followee: w.author, PinVersion: p})
		w.Cards = append(w.Cards, schemas.Card{PinVersion: p, Title: fmt.Sprint("title ", v), Link: "https://x"})
	}
}

// singles splits the batch into batches of one record each.
func (w *world) singles() (all []feedstore.Batch) {
	for i := range w.Entries {
		all = append(all, feedstore.Batch{Entries: w.Entries[i : i+1]})
	}
	for i := range w.Edges {
		all = append(all, feedstore.Batch{Edges: w.Edges[i : i+1]})
	}
	for i := range w.Publications {
		all = append(all, feedstore.Batch{Publications: w.Publications[i : i+1]}, feedstore.Batch{Cards: w.Cards[i : i+1]})
	}
	for i := range w.Deleted {
		all = append(all, feedstore.Batch{Deleted: w.Deleted[i : i+1]})
	}
	return all
}

func join(parts []feedstore.Batch) (b feedstore.Batch) {
	for _, p := range parts {
		b.Entries = append(b.Entries, p.Entries...)
		b.Edges = append(b.Edges, p.Edges...)
		b.Publications = append(b.Publications, p.Publications...)
		b.Cards = append(b.Cards, p.Cards...)
		b.Deleted = append(b.Deleted, p.Deleted...)
	}
	return b
}

// check compares every read with the model.
func (w *world) check(rt *rapid.T, ctx context.Context, s store) {
	equal := func(what string, got, want any, err error) {
		expect.Error(rt, err, "", "%s", what)
		expect.NoDiffBut(rt, cmpopts.EquateEmpty(), got, want, "%s", what)
	}
	rows, trimmed, err := s.Page(ctx, w.user, top, 100)
	slices.Reverse(rows)
	equal("feed", rows, w.Entries[min(trimmed, int64(len(w.Entries))):], err)
	if kept := int64(len(w.Entries)) - trimmed; trimmed > 0 && (kept < 10 || kept > 11) {
		rt.Errorf("feed of %d: trim position %d, want 10 or 11 kept", len(w.Entries), trimmed)
	}
	edges, err := s.Edges(ctx, w.user, []schemas.ID{"board:1", "user:2", "interest:3"})
	slices.SortFunc(edges, compareEdges)
	equal("edges", edges, w.edges(), err)
	cards, err := s.Cards(ctx, w.pins)
	equal("cards", cards, w.cards(), err)
	deletedUsers, err := s.DeletedUsers(ctx, []schemas.UserID{w.user, "user:2"})
	equal("deleted_users", deletedUsers[w.user], len(w.Deleted) > 0, err)
	list, next, err := s.List(ctx, w.author, "", 100)
	equal("list", list, w.list(), err)
	equal("next", next, "", nil)
}

func compareEdges(a, b schemas.Edge) int {
	return strings.Compare(string(a.Other)+string(a.Kind), string(b.Other)+string(b.Kind))
}

// edges returns the latest state of every register. In a tie, unfollow, block and blocked win.
func (w *world) edges() []schemas.Edge {
	latest := map[string]schemas.Edge{}
	for _, e := range w.Edges {
		k := string(e.Other) + string(e.Kind)
		old, known := latest[k]
		strong := e.Live == (e.Kind != schemas.FollowEdge)
		if !known || e.Time > old.Time || e.Time == old.Time && strong {
			latest[k] = e
		}
	}
	return slices.SortedFunc(maps.Values(latest), compareEdges)
}

// cards returns the highest version of each pin.
func (w *world) cards() map[schemas.PinID]schemas.Card {
	highest := map[schemas.PinID]schemas.Card{}
	for _, c := range w.Cards {
		if old, known := highest[c.Pin]; !known || c.Version > old.Version {
			highest[c.Pin] = c
		}
	}
	return highest
}

// list returns the pins whose highest version is not deleted and belongs to the author, newest first.
func (w *world) list() []schemas.PinVersion {
	var listed []schemas.Publication
	for _, c := range w.cards() {
		if !c.Deleted && string(c.Author) == string(w.author) {
			listed = append(listed, schemas.Publication{PinVersion: c.PinVersion})
		}
	}
	return sortedPins(listed)
}
