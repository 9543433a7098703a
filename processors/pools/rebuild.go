package pools

import (
	"bytes"
	"math"
	"time"

	"github.com/smartfeed/smartfeed/processors/pools/layout"
	"github.com/smartfeed/smartfeed/processors/rows"
	"github.com/smartfeed/smartfeed/processors/score"
	"github.com/smartfeed/smartfeed/schemas"
)

// A pool is rebuilt in place: its rows are deleted, and the followees receive backfill requests, as for a reactivated user. A
// chunk waits for the backfills, and is degraded as "reactivating" if it cannot wait for all. Seen pins stay seen.
//
// A delivery that is in flight when the rows are deleted was published before the backfill request, so the backfill contains
// its pin. A pin that is no longer in its followee's recents does not return.
//
// The followees of an inactive user receive no request, because the next visit sends it. With InactiveAfter 0, the rebuild
// reactivates a user who was already inactive.

// rebuild processes a Rebuild.
func (g *group) rebuild(tx *rows.Tx, r *schemas.Rebuild) error {
	if err := r.Source.CheckRebuildable(); err != nil {
		return err
	}
	own, limit := tx.Own(), maxClearedRows(tx)
	for _, source := range rebuilt(r.Source) {
		if r.Keep {
			break
		}
		for _, kind := range layout.CandidateKinds() {
			if dropRows(tx, own, layout.SourcePrefix(kind, source), limit, keepNone, func([]byte) {}) {
				rows.Send(tx, g.streams.Rebuilds, tx.Key(), r)
				return nil
			}
		}
	}
	g.requestRebuild(tx, own, r)
	return nil
}

// rebuilt returns the sources that a Rebuild selects.
func rebuilt(source schemas.Source) []schemas.Source {
	if source == "" {
		return []schemas.Source{schemas.Following, schemas.FromInterest}
	}
	return []schemas.Source{source}
}

// requestRebuild requests backfills from the followees of the rebuilt sources, or from all followees if earlier answers are
// outstanding. With InactiveAfter 0, it also reactivates an inactive user.
func (g *group) requestRebuild(tx *rows.Tx, own rows.Owner, r *schemas.Rebuild) {
	a := activityOf(tx, own)
	switch {
	case a.Inactive && g.cfg.InactiveAfter == 0:
		g.reactivate(tx, a)
		return
	case a.Inactive:
		return
	}
	g.track(tx, a)
	tx.Effect(effectRebuilt, 1)
	source, unawaited := r.Source, r.Keep // Keep: the pools are complete, and chunks do not wait for the answers
	if a.After != "" {                    // the request replaces the notification in progress
		source, unawaited = "", unawaited && a.Unawaited
	}
	if unawaited {
		g.notifyFollowees(tx, a, layout.Notification{Source: source, Unawaited: true})
	} else {
		if a.IsBackfilling() {
			source = ""
		}
		g.requestBackfills(tx, a, source)
	}
	a.store()
}

// Carry selects the rows of the pools that a new generation carries over. It excludes the candidates that backfills deliver
// again. It also excludes candidates of related whose score has another half-life, because they cannot be compared with
// others.
type Carry struct {
	Source   schemas.Source // source of the backfills; "": following and interest
	HalfLife time.Duration  // of write-time scores; 0: all candidates of related are carried over
}

// Keep reports whether a record of the changelog is carried over.
func (c Carry) Keep(_, row, value []byte) bool {
	if row[0] != layout.KindFirstVersion && row[0] != layout.KindLaterVersion {
		return true
	}
	for _, source := range rebuilt(c.Source) {
		if bytes.HasPrefix(row, layout.SourcePrefix(row[0], source)) {
			return false
		}
	}
	isRelated := bytes.HasPrefix(row, layout.SourcePrefix(row[0], schemas.Related))
	return !isRelated || value == nil || c.HalfLife == 0 || ofHalfLife(row, value, c.HalfLife)
}

// maxAgelessScore bounds the part of a score that does not depend on the age of the pin: the logarithms of quality, strength
// and weight. Another half-life changes a score much more: 25 hours instead of 24 change it by 570.
const maxAgelessScore = 100

// ofHalfLife reports whether the score of a candidate of related has the given half-life. It returns true for a malformed
// row.
func ofHalfLife(row, value []byte, halfLife time.Duration) bool {
	r, err := layout.ParseCandidate(len(layout.SourcePrefix(row[0], schemas.Related)), string(row), string(value))
	return err != nil || math.Abs(float64(r.PoolScore-score.Weighted(score.Base(1, r.Created, halfLife), 1))) <= maxAgelessScore
}
