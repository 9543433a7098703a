package pools

import (
	"github.com/smartfeed/smartfeed/processors/pools/layout"
	"github.com/smartfeed/smartfeed/schemas"
)

// trimmed is the result of a trim of a source.
type trimmed struct {
	view   *layout.View
	source schemas.Source
	most   int
	below  schemas.Version

	reasons []string // by row: why it is dropped; "": it stays
	waiting []int    // places of the waiting candidates that stay, best first
	hidden  int      // number of hidden candidates that stay
}

// dropped returns the indexes of the dropped rows.
func (t *trimmed) dropped() (list []int) {
	for i, reason := range t.reasons {
		if reason != "" {
			list = append(list, i)
		}
	}
	return list
}

// trimRows decides which rows of a source a trim drops. It returns the rows, best first. It keeps the best candidates up to
// the cap, and as many hidden ones. Of each it keeps the rows that determine its content and its place. Candidates that a
// version lower than below deleted are dropped.
func trimRows(v *layout.View, source schemas.Source, most int, below schemas.Version) ([]layout.CandidateRow, *trimmed, error) {
	list, all, err := v.Buffers.Candidates(v, source)
	if err == nil {
		err = v.LoadAllSeen(len(all))
	}
	if err != nil {
		return nil, nil, err
	}
	t := &trimmed{view: v, source: source, most: most, below: below, reasons: make([]string, len(list)), waiting: make([]int, 0, min(len(all), most))}
	for i := range t.reasons {
		t.reasons[i] = dropDuplicate
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

// reason returns why a candidate is dropped, or "" if it stays; then it is counted.
func (t *trimmed) reason(c *layout.Candidate, version schemas.Version) (string, error) {
	if err := t.view.Open(c); err != nil {
		return "", err
	}
	reason := t.view.Hides(t.source, c)
	switch {
	case reason == schemas.ReasonForgotten:
		return dropRefused, nil
	case reason == schemas.ReasonExpired:
		return dropExpired, nil
	case reason == schemas.ReasonAuthorDeleted:
		return dropErased, nil
	case c.Deleted && version < t.below:
		return dropDeleted, nil
	case reason != "" && t.hidden == t.most:
		return dropHiddenCap, nil
	case reason == "" && len(t.waiting) == t.most:
		return dropCap, nil
	}
	seen, err := t.view.HasSeen(c)
	if err != nil {
		return "", err
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
