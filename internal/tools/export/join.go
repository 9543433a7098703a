package export

import (
	"math"
	"slices"

	"github.com/smartfeed/smartfeed/internal/training"
	"github.com/smartfeed/smartfeed/schemas"
)

// batch joins the visits at consecutive offsets of a partition with actions. Add the visits first.
type batch struct {
	labels []Label
	visits []visit
	bytes  int            // of the encoded visits
	oldest schemas.Micros // time of the oldest visit
	items  map[subject][]int
	first  []schemas.Micros // time of the first action, by item and label; none: no action
	times  []schemas.Micros // of the visit, by item
}

// visit is a visit and the number of its first item in the batch.
type visit struct {
	*schemas.LoggedVisit
	item int
}

type subject struct {
	user schemas.UserID
	pin  schemas.PinID
}

const none schemas.Micros = math.MaxInt64

func newBatch(labels []Label) *batch {
	return &batch{labels: labels, oldest: none, items: map[subject][]int{}}
}

// addVisit adds a visit whose encoded size is given.
func (b *batch) addVisit(v *schemas.LoggedVisit, bytes int) {
	b.bytes += bytes
	b.visits = append(b.visits, visit{v, len(b.times)})
	b.oldest = min(b.oldest, v.Time)
	for _, item := range v.Items {
		of := subject{v.User, item.Pin}
		b.items[of] = append(b.items[of], len(b.times))
		b.times = append(b.times, v.Time)
		b.first = append(b.first, slices.Repeat([]schemas.Micros{none}, len(b.labels))...)
	}
}

// addAction accepts actions in any order, also repeatedly.
func (b *batch) addAction(a *schemas.EnrichedAction) {
	for _, item := range b.items[subject{a.Actor, schemas.PinID(a.Object)}] {
		for i, l := range b.labels {
			if a.Verb == l.Verb && a.Timestamp >= b.times[item] && a.Timestamp <= l.end(b.times[item]) {
				first := &b.first[item*len(b.labels)+i]
				*first = min(*first, a.Timestamp)
			}
		}
	}
}

// span is the time for which the log of actions is complete.
type span struct{ since, until schemas.Micros }

// final reports whether the windows of a visit have ended.
func (s span) final(labels []Label, visit schemas.Micros) bool {
	return !slices.ContainsFunc(labels, func(l Label) bool { return l.end(visit) > s.until })
}

// labelsOf returns the labels of an item.
func (b *batch) labelsOf(item int, s span) []training.Label {
	labels := make([]training.Label, len(b.labels))
	for i, l := range b.labels {
		at, first := b.times[item], b.first[item*len(b.labels)+i]
		if at < s.since || l.end(at) > s.until {
			continue // unknown
		}
		labels[i].Acted = new(first != none)
		if first != none {
			labels[i].After = new(float64(first-at) / 1e6)
		}
	}
	return labels
}
