package pools

import (
	"fmt"
	"math"

	"github.com/smartfeed/smartfeed/processors/pools/layout"
	"github.com/smartfeed/smartfeed/processors/rows"
	"github.com/smartfeed/smartfeed/schemas"
)

// serve applies a Served: it marks the items as seen and appends them to the materialized feed.
func (g *group) serve(tx *rows.Tx, s *schemas.Served) error {
	if err := checkServed(s); err != nil {
		return err
	}
	own := tx.Own()
	st, err := layout.ReadState(own)
	if err != nil {
		return err
	}
	if st.Applied(s.ID) {
		tx.Count(dropDuplicate)
		return nil
	}
	limitTimes(s, schemas.MicrosOf(tx.Time().Add(schemas.MaxAhead)))
	before := st
	g.show(tx, own, &st, s)
	g.applyDeferrals(tx, own, &before.Memory, s)
	trimSeen(tx, own, &st, int64(g.cfg.MaxSeenPins))
	rows.PutValue(own, []byte{layout.KindState}, &st)
	g.recordVisit(tx, own)
	if n := int64(max(1, g.cfg.MaxCandidates/4)); before.Head/n != st.Head/n { // keeps few rows of seen pins in a pool
		_, err = g.trimAll(tx, own, s.User, sweepsNone)
	}
	return err
}

// limitTimes limits the times of a Served from a generator with a fast clock to the latest valid time. The API does not
// validate a Served. Without the limit, no later erasure would cover its rows, and its session would not end before that
// time.
func limitTimes(s *schemas.Served, latest schemas.Micros) {
	s.Time, s.Began, s.Visited = min(s.Time, latest), min(s.Began, latest), min(s.Visited, latest)
	for i := range s.Deferred {
		s.Deferred[i].Since = min(s.Deferred[i].Since, latest)
	}
}

func checkServed(s *schemas.Served) error {
	if s.ID == "" || len(s.ID) > schemas.MaxEventIDBytes {
		return schemas.Bad(fmt.Sprintf("served: id of %d bytes: want 1 to %d", len(s.ID), schemas.MaxEventIDBytes))
	}
	const mostItems = 1000 // ten times the limit of a visit, and five times the maximum of deferred pins
	if n := max(len(s.Items), len(s.Deferred), len(s.Expired)); n > mostItems {
		return schemas.Bad(fmt.Sprintf("served: %d items: want at most %d", n, mostItems))
	}
	for i := range s.Items {
		if _, err := schemas.ParsePinID(string(s.Items[i].Pin)); err != nil {
			return schemas.Bad("served: pin: " + err.Error())
		}
	}
	return checkMemory(&s.Memory)
}

// checkMemory rejects numbers that the rules cannot process.
func checkMemory(m *schemas.Memory) error {
	for source, n := range m.Mix {
		if !(n >= 0) || math.IsInf(n, 0) {
			return schemas.Bad(fmt.Sprintf("served: mix of %q: %v: want 0 or more", source, n))
		}
	}
	for source, best := range m.Best {
		if math.IsNaN(float64(best)) || math.IsInf(float64(best), 0) {
			return schemas.Bad(fmt.Sprintf("served: best of %q: %v: want a finite number", source, best))
		}
	}
	return nil
}

// show writes and emits the new items of a Served.
func (g *group) show(tx *rows.Tx, own rows.Owner, st *layout.State, s *schemas.Served) {
	seen := seenOf(own, s.Items)
	added, repeats := st.Show(s, seen)
	for range repeats {
		tx.Count(dropShown)
	}
	if added == nil {
		return
	}
	markSeen(own, added)
	awaitReports(own, s, added)
	rows.PutAndSend(own, layout.PositionRow(layout.KindMaterialized, added.Last()), g.streams.FeedEntries, tx.Key(), added)
	trimMaterialized(own, st, st.Head-int64(g.cfg.MaxRecentItems))
	g.sendImpressions(tx, added)
	g.sendLogged(tx, s)
}

// sendLogged sends the record of a visit of a sampled user for the log.
func (g *group) sendLogged(tx *rows.Tx, s *schemas.Served) {
	if s.Logged == nil {
		return
	}
	v := *s.Logged
	v.ID, v.User, v.Time, v.Feed, v.Arm = s.ID, s.User, s.Time, s.Feed, s.Arm
	rows.Send(tx, g.streams.VisitLog, tx.Key(), &v)
	tx.Effect(effectLogged, 1)
}

// sendImpressions sends the impressions, one record per partition of pins.
func (g *group) sendImpressions(tx *rows.Tx, added *schemas.FeedEntries) {
	byPartition := make([]schemas.Impressions, tx.Partitions())
	for e := range added.All() {
		rec := &byPartition[tx.PartitionOf(string(e.Pin))]
		rec.Pins = append(rec.Pins, schemas.ShownPin{Pin: e.Pin, Source: e.Source})
	}
	for p := range byPartition {
		rec := &byPartition[p]
		if len(rec.Pins) > 0 {
			rec.User, rec.Time = added.User, added.Time
			rows.SendTo(tx, g.streams.Impressions, int32(p), "", rec)
		}
	}
}

// seenOf returns the items that the user has seen before.
func seenOf(own rows.Owner, items []schemas.ServedItem) map[schemas.PinID]bool {
	seen := make(map[schemas.PinID]bool, len(items))
	for i := range items {
		if own.Load(rows.Name(layout.KindSeen, items[i].Pin)) != nil {
			seen[items[i].Pin] = true
		}
	}
	return seen
}

// markSeen marks the pins of new entries as seen.
func markSeen(own rows.Owner, added *schemas.FeedEntries) {
	var visit []byte
	for e := range added.All() {
		at := layout.Seen{Position: e.Position, Time: e.Time, Created: e.Created}
		own.Put(rows.Name(layout.KindSeen, e.Pin), layout.AppendSeen(nil, at))
		visit = layout.AppendIndexed(visit, e.Pin)
	}
	own.Put(layout.PositionRow(layout.KindSeenIndex, added.Last()), visit)
}

// trimSeen removes the oldest seen pins beyond the cap. From then on, candidates created before the oldest remaining
// one was shown are refused, because the removed pins are among them. The creation times of the removed pins also
// count: because clocks differ, a pin can be created up to five minutes after it was shown.
func trimSeen(tx *rows.Tx, own rows.Owner, st *layout.State, limit int64) {
	// atOnce bounds the work after the cap was lowered, which then takes several visits. longest is the maximum size of the
	// two rows of a pin, in bytes.
	const atOnce, longest = 2000, 2 << 10
	rowsLeft, bytesLeft := tx.Room()
	over := min(st.Head-st.SeenTrimmed-limit, atOnce, int64(min(rowsLeft/4, bytesLeft/2/longest)))
	if over <= 0 {
		return
	}
	if st.SeenTrimmed == 0 {
		st.Refused = math.MinInt64
	}
	to := st.SeenTrimmed + over
	oldest, bad := layout.IndexedBetween(own, st.SeenTrimmed+1, to+1)
	own.Fail(bad)
	for _, p := range oldest {
		if p.Pin != "" {
			name := rows.Name(layout.KindSeen, p.Pin)
			was, found := rows.Load[layout.Seen](own, name)
			if !found {
				own.Fail(fmt.Errorf("read seen row of %s: missing row", p.Pin))
			}
			if p.Position > to { // it is kept
				st.Refuse(was.Time)
				continue
			}
			st.Refuse(was.Created + 1)
			own.Delete(name)
		}
		if p.Last {
			own.Delete(layout.PositionRow(layout.KindSeenIndex, p.Position))
		}
	}
	st.SeenTrimmed = to
}

// Each visit appends one row of entries to the materialized feed: the record that is sent to the stores. The row is
// named by the last of its positions. Therefore the row of a position is the first row at or above it, and the rows up
// to a head contain nothing newer. A row is deleted when its last entry is no longer among the newest
// Config.MaxRecentItems.

// trimMaterialized deletes the rows up to a position. It starts at st.Trimmed, because a scan over deleted rows is slow.
func trimMaterialized(own rows.Owner, st *layout.State, to int64) {
	if to <= st.Trimmed {
		return
	}
	scan := rows.Scan{Prefix: []byte{layout.KindMaterialized}, From: layout.PositionRow(layout.KindMaterialized, st.Trimmed+1)}
	rows.LoadRows(own, scan, func(name, _ []byte) (bool, error) {
		old := layout.PositionOf(name) <= to
		if old {
			own.Delete(name)
		}
		return old, nil
	})
	st.Trimmed = to
}

// Effects of deferral, in candidates.
const (
	effectDeferred      = "deferred"       // deferred to a later session
	effectDeferredShown = "deferred_shown" // shown after a deferral
)

// applyDeferrals counts the deferred candidates of a Served and drops those that were deferred for too long. before is the
// memory of the previous Served.
func (g *group) applyDeferrals(tx *rows.Tx, own rows.Owner, before *schemas.Memory, s *schemas.Served) {
	held := make(map[schemas.PinID]bool, len(before.Deferred))
	for _, d := range before.Deferred {
		held[d.Pin] = true
	}
	added, shown := 0, 0
	for _, d := range s.Deferred {
		if !held[d.Pin] {
			added++
		}
	}
	for i := range s.Items {
		if held[s.Items[i].Pin] {
			shown++
		}
	}
	tx.Effect(effectDeferred, added)
	tx.Effect(effectDeferredShown, shown)
	if len(s.Expired) == 0 {
		return
	}
	g.dropExpired(tx, own, s.Expired)
	// Only readers know the pulled pins, so all pins are stored, including those that had a row: a pin of a pushed author is often
	// pulled from an interest.
	own.Put([]byte{layout.KindExpired}, layout.AppendExpired(own.Load([]byte{layout.KindExpired}), s.Expired))
}

// dropExpired drops the candidates of pins in all sources. Like all dropped candidates, they return with a new delivery.
func (g *group) dropExpired(tx *rows.Tx, own rows.Owner, pins []schemas.PinID) {
	dropped, counted := make(map[schemas.PinID]bool, len(pins)), map[schemas.PinID]bool{}
	for _, pin := range pins {
		dropped[pin] = true
	}
	list, bad := layout.Sources(own)
	own.Fail(bad)
	for _, source := range list {
		all, bad := layout.CandidateRows(own, source)
		own.Fail(bad)
		for i := range all {
			if !dropped[all[i].Pin] {
				continue
			}
			if !counted[all[i].Pin] { // a pin may have several rows
				counted[all[i].Pin] = true
				tx.Count(dropDeferred)
			}
			own.Delete([]byte(all[i].Name))
		}
	}
}
