package pools

import (
	"encoding/json"
	"fmt"
	"math"

	"github.com/smartfeed/smartfeed/processors/pools/layout"
	"github.com/smartfeed/smartfeed/processors/rows"
	"github.com/smartfeed/smartfeed/schemas"
	"github.com/smartfeed/smartfeed/topics"
)

// serve applies a Served: it marks the items as seen and appends them to the materialized feed.
func (g *group) serve(tx *rows.Tx, s *schemas.Served) error {
	if err := checkServed(tx.Key(), s); err != nil {
		return err
	}
	if g.deleted.Has(s.User) {
		tx.Count(dropDeletedUser)
		return nil
	}
	own := tx.Own()
	st, err := layout.ReadState(own)
	if err != nil {
		return err
	}
	if st.Applied(s.ID) {
		tx.Count(dropRepeat)
		return nil
	}
	notAhead(s, schemas.MicrosOf(tx.Time().Add(schemas.MaxAhead)))
	before := st
	if err := g.show(tx, own, &st, s); err != nil {
		return err
	}
	if err := g.defers(tx, own, &before.Memory, s); err != nil {
		return err
	}
	if err := forget(tx, own, &st, int64(g.cfg.SeenCap)); err != nil {
		return err
	}
	if err := putState(own, &st); err != nil {
		return err
	}
	if err := g.recordVisit(tx, own); err != nil {
		return err
	}
	if crossed(before.Head, st.Head, int64(max(1, g.cfg.Cap/4))) { // keeps few rows of seen pins in a pool
		_, err = g.trimAll(tx, own, s.User, sweepsNone)
	}
	return err
}

// notAhead limits the times of a Served from a generator with a fast clock to the latest valid time. The API does not
// validate a Served. Without the limit, its rows would have times that no later erasure covers, and its session would not end
// before that time.
func notAhead(s *schemas.Served, latest schemas.Micros) {
	s.Time, s.Began, s.Visited = min(s.Time, latest), min(s.Began, latest), min(s.Visited, latest)
	for i := range s.Deferred {
		s.Deferred[i].Since = min(s.Deferred[i].Since, latest)
	}
}

func checkServed(key string, s *schemas.Served) error {
	if key != string(s.User) {
		return schemas.Bad(fmt.Sprintf("served: key %q is not the user %q", key, s.User))
	}
	if s.ID == "" || len(s.ID) > schemas.MaxEventIDBytes {
		return schemas.Bad(fmt.Sprintf("served: id of %d bytes: from 1 to %d", len(s.ID), schemas.MaxEventIDBytes))
	}
	const mostItems = 1000 // ten times the limit of a visit, and five times the maximum of deferred pins
	if n := max(len(s.Items), len(s.Deferred), len(s.Expired)); n > mostItems {
		return schemas.Bad(fmt.Sprintf("served: %d items: at most %d", n, mostItems))
	}
	for i := range s.Items {
		if _, err := schemas.ParsePinID(string(s.Items[i].Pin)); err != nil {
			return schemas.Bad("served: pin: " + err.Error())
		}
	}
	return checkMemory(&s.Memory)
}

// checkMemory rejects numbers that the state, which is JSON, cannot represent.
func checkMemory(m *schemas.Memory) error {
	for source, n := range m.Mix {
		if !(n >= 0) || math.IsInf(n, 0) {
			return schemas.Bad(fmt.Sprintf("served: mix of %q is %v: want no negative number", source, n))
		}
	}
	for source, best := range m.Best {
		if math.IsNaN(float64(best)) || math.IsInf(float64(best), 0) {
			return schemas.Bad(fmt.Sprintf("served: best of %q is %v", source, best))
		}
	}
	return nil
}

// show writes and emits the new items of a Served.
func (g *group) show(tx *rows.Tx, own rows.Owner, st *layout.State, s *schemas.Served) error {
	seen, err := seenOf(own, s.Items)
	if err != nil {
		return err
	}
	added, repeats := st.Show(s, seen)
	for range repeats {
		tx.Count(dropShown)
	}
	if added == nil {
		return nil
	}
	if err := see(own, added); err != nil {
		return err
	}
	if err := g.freeze(tx, own, st, added); err != nil {
		return err
	}
	return g.tellPins(tx, added)
}

// tellPins sends the impressions, one record per partition of pins.
func (g *group) tellPins(tx *rows.Tx, added *schemas.FeedEntries) error {
	byPartition := make([]schemas.Impressions, tx.Partitions())
	for e := range added.All() {
		rec := &byPartition[topics.Partition(string(e.Pin), tx.Partitions())]
		rec.Pins = append(rec.Pins, schemas.ShownPin{Pin: e.Pin, Source: e.Source})
	}
	for p := range byPartition {
		rec := &byPartition[p]
		if len(rec.Pins) == 0 {
			continue
		}
		rec.User, rec.Time = added.User, added.Time
		if err := rows.SendTo(tx, g.streams.Impressions, int32(p), "", rec); err != nil {
			return err
		}
	}
	return nil
}

func putState(own rows.Owner, st *layout.State) error {
	value, err := json.Marshal(st)
	if err != nil {
		return fmt.Errorf("encode state: %w", err)
	}
	return own.Put([]byte{layout.KindState}, value)
}

// trimAll trims every pool of a user; see trim. A pool that the record has no room for is trimmed with the next row that it
// gets. more reports whether there are such pools.
func (g *group) trimAll(tx *rows.Tx, own rows.Owner, user schemas.UserID, below schemas.Version) (more bool, err error) {
	list, err := layout.Sources(own)
	if err != nil {
		return false, err
	}
	for _, source := range list {
		_, left, err := g.trim(tx, own, user, source, below)
		if err != nil {
			return false, err
		}
		if left {
			more = true
			floorsOf(tx).postpone(user, source)
		}
	}
	return more, nil
}

// affinities stores the user's affinities for the generator. Later records are newer states.
func (g *group) affinities(tx *rows.Tx, a *schemas.Affinities) error {
	if tx.Key() != string(a.User) {
		return schemas.Bad(fmt.Sprintf("affinities: key %q is not the user %q", tx.Key(), a.User))
	}
	if g.deleted.Has(a.User) {
		tx.Count(dropDeletedUser)
		return nil
	}
	for _, top := range a.Top {
		if math.IsNaN(top.Value) || math.IsInf(top.Value, 0) {
			return schemas.Bad(fmt.Sprintf("affinities: %q is %v: want a number", top.Facet, top.Value))
		}
	}
	return rows.PutRecord(tx.Own(), []byte{layout.KindAffinities}, g.streams.Affinities, a)
}

// crossed reports whether a count passed a multiple of n on the way from from to to.
func crossed(from, to, n int64) bool { return from/n != to/n }
