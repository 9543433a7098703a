package pools

import (
	"cmp"
	"errors"
	"slices"

	"github.com/smartfeed/smartfeed/processors/pools/layout"
	"github.com/smartfeed/smartfeed/processors/rows"
	"github.com/smartfeed/smartfeed/schemas"
)

// trimPools trims the due pools of p. It is the last step of a record and uses the remaining room. The pools of users
// with the same few followees become due together and may have more rows to drop than one record may write. The
// remaining pools are trimmed with their next row.
func (g *group) trimPools(tx *rows.Tx, p *putter) error {
	slices.Sort(p.due)
	p.due = slices.Compact(p.due)
	for ; p.done < len(p.due); p.done++ {
		user := p.due[p.done]
		l, more, err := g.trim(tx, tx.Of(string(user)), user, p.source, sweepsNone)
		if err != nil || more {
			return err
		}
		p.thresholds.trimmed(user, p.source, l, p.cap)
	}
	return nil
}

// trimAll trims every pool of a user; see trim. A pool that does not fit in the record is trimmed with its next row. more
// reports whether there are such pools.
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
			thresholdsOf(tx).postpone(user, source)
		}
	}
	return more, nil
}

// trim drops the candidates over the caps of a user's pool, and those that a version lower than below deleted. It
// returns the level of the pool afterwards. more reports that the record has no room for all deletions.
func (g *group) trim(
	tx *rows.Tx, own rows.Owner, user schemas.UserID, source schemas.Source, below schemas.Version,
) (l *level, more bool, err error) {
	if !tx.HasRoom() {
		return nil, true, nil
	}
	deletions := g.deleted.Len()
	m := g.scratch.Get().(*layout.Buffers)
	defer g.scratch.Put(m)
	v, err := layout.NewView(own, user, g.deleted, tx.Time(), g.cfg.MaxPinAge, m)
	if err != nil {
		return nil, false, err
	}
	list, t, err := trimRows(v, source, g.cfg.MaxCandidates, below)
	if err != nil {
		return nil, false, err
	}
	if drop(tx, own, list, t) {
		return nil, true, nil
	}
	return levelOf(v, source, list, t, g.cfg.MaxCandidates, deletions), false, tx.Err()
}

// drop deletes the rows that a trim drops, until the record is full. The highest versions are deleted last, because lower
// versions would otherwise determine the facets of a pin.
func drop(tx *rows.Tx, own rows.Owner, list []layout.CandidateRow, t *trimmed) (more bool) {
	var order []int
	for i, reason := range t.reasons {
		if reason != "" {
			order = append(order, i)
		}
	}
	slices.SortFunc(order, func(i, j int) int { return cmp.Compare(list[i].Version, list[j].Version) })
	for _, i := range order {
		if !tx.HasRoom() {
			return true
		}
		tx.Count(t.reasons[i])
		own.Delete([]byte(list[i].Name))
	}
	return false
}

// trimmed is the result of trimming a source.
type trimmed struct {
	view   *layout.View
	source schemas.Source
	limit  int
	below  schemas.Version

	reasons []string // by row: why it is dropped; "": it is kept
	waiting []int    // places of the kept waiting candidates, best first
	hidden  int      // number of kept hidden candidates
}

// trimRows decides which rows of a source a trim drops. It returns the rows, best first. It keeps the best candidates up to
// the cap, and as many hidden ones. It keeps the rows that determine the content and the place of these. It drops
// candidates that a version lower than below deleted.
func trimRows(v *layout.View, source schemas.Source, limit int, below schemas.Version) ([]layout.CandidateRow, *trimmed, error) {
	list, all, err := v.Buffers.Candidates(v, source)
	if err == nil {
		err = errors.Join(v.LoadAllSeen(len(all)), v.LoadUnreported())
	}
	if err != nil {
		return nil, nil, err
	}
	t := &trimmed{view: v, source: source, limit: limit, below: below, reasons: make([]string, len(list)), waiting: make([]int, 0, min(len(all), limit))}
	for i := range t.reasons {
		t.reasons[i] = dropRedundant
	}
	for i := range all {
		c := &all[i]
		reason, err := t.reason(c, list[c.Version].Version)
		if err != nil {
			return nil, nil, err
		}
		t.reasons[c.Place], t.reasons[c.Version] = reason, reason
	}
	return list, t, nil
}

// reason returns why a candidate is dropped, or "" if it is kept. It counts kept candidates.
func (t *trimmed) reason(c *layout.Candidate, version schemas.Version) (string, error) {
	if err := t.view.Open(c); err != nil {
		return "", err
	}
	reason := t.view.Hides(t.source, c)
	switch {
	case reason == schemas.ReasonSeenTrimmed:
		return dropSeenTrimmed, nil
	case reason == schemas.ReasonExpired:
		return dropExpired, nil
	case reason == schemas.ReasonAuthorDeleted:
		return dropErased, nil
	case c.Deleted && version < t.below:
		return dropDeleted, nil
	case reason != "" && t.hidden == t.limit:
		return dropHiddenCap, nil
	case reason == "" && len(t.waiting) == t.limit:
		return dropCap, nil
	}
	seen, err := t.view.HasSeen(c)
	if err != nil {
		return "", err
	}
	if seen && t.view.AwaitsReport(c.Pin) {
		return "", nil // beyond the cap, because it is temporarily not a candidate
	}
	if seen {
		return dropSeen, nil
	}
	if reason != "" {
		t.hidden++
	} else {
		t.waiting = append(t.waiting, c.Place)
	}
	return "", nil
}
