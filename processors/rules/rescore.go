package rules

import (
	"slices"
	"strings"

	"github.com/smartfeed/smartfeed/schemas"
)

// item is a candidate with its score for a chunk. It points to the candidate to stay small, because items are sorted.
type item struct {
	*Candidate
	rankScore  schemas.RankScore
	pool       schemas.Source // source of an exploration draw; "": not a draw
	similarity float64        // to the most similar item above, by which rankScore is reduced
}

// queue holds the items of one source, best first.
type queue struct {
	source   schemas.Source
	items    []item
	unsorted bool // scores were reduced
}

// sort restores the order of the items.
func (q *queue) sort() {
	if q.unsorted {
		slices.SortFunc(q.items, compareItems)
		q.unsorted = false
	}
}

// index returns the index of a pin, or -1.
func (q queue) index(pin schemas.PinID) int {
	return slices.IndexFunc(q.items, func(it item) bool { return it.Pin == pin })
}

// rescore returns the items of every source that has a share, best first by the score in the response, ties by pin.
func (f Feed) rescore(pools []Pool, k Signals) []queue {
	pools = slices.DeleteFunc(slices.Clone(pools), func(p Pool) bool { return f.Share(p.Source) == 0 })
	terms := f.terms(k)
	queues := make([]queue, 0, len(pools))
	for _, p := range pools {
		items := make([]item, len(p.Candidates))
		for i := range p.Candidates {
			c := &p.Candidates[i]
			items[i] = item{Candidate: c, rankScore: rankScore(c, terms)}
		}
		slices.SortFunc(items, compareItems)
		queues = append(queues, queue{source: p.Source, items: items})
	}
	return queues
}

// compareItems sorts the best first, ties by pin.
func compareItems(a, b item) int {
	switch {
	case a.rankScore > b.rankScore:
		return -1
	case a.rankScore < b.rankScore:
		return 1
	}
	return strings.Compare(string(a.Pin), string(b.Pin))
}

// withoutPins returns queues without the withheld pins: another source must not show them either.
func withoutPins(queues []queue, withheld map[schemas.PinID]bool) []queue {
	if len(withheld) == 0 {
		return queues
	}
	left := make([]queue, len(queues))
	for i, q := range queues {
		items := slices.DeleteFunc(slices.Clone(q.items), func(it item) bool { return withheld[it.Pin] })
		left[i] = queue{source: q.source, items: items}
	}
	return left
}
