package rules

import (
	"math"
	"slices"
	"strings"

	"github.com/smartfeed/smartfeed/schemas"
)

// mixer holds the shares of the sources over the impressions of a user: each impression counts one for its source and
// makes those before it count 1/Memory less. The next one is due to the source whose count, with half an item more, is
// the smallest for its share: the method of Sainte-Laguë and Webster for dividing seats, which keeps each source within
// an item or so of its share at every moment. A source that has nothing to give leaves its part to the others in
// proportion, and catches up on what is remembered when it has.
type mixer struct {
	feed   Feed
	counts map[string]float64
}

func newMixer(f Feed, mix map[string]float64) mixer {
	m := mixer{feed: f, counts: make(map[string]float64, len(mix)+1)}
	for source, n := range mix {
		m.counts[source] = n
	}
	return m
}

// before says whether a is to give an item rather than b. Ties go to the larger share, then by name.
func (m *mixer) before(a, b schemas.Source) bool {
	dueA, dueB := m.due(a), m.due(b)
	if dueA != dueB {
		return dueA < dueB
	}
	if shareA, shareB := m.feed.Share(a), m.feed.Share(b); shareA != shareB {
		return shareA > shareB
	}
	return a < b
}

func (m *mixer) due(s schemas.Source) float64 {
	return (m.counts[string(s)] + 0.5) / m.feed.Share(s)
}

func (m *mixer) count(s schemas.Source) {
	keep := 1 - 1/float64(m.feed.Memory)
	for source := range m.counts {
		m.counts[source] *= keep
	}
	m.counts[string(s)]++
}

// after returns the counts to remember. What has faded away is left out, so that the mix stays small.
func (m *mixer) after() map[string]float64 {
	const faded = 1e-3
	mix := make(map[string]float64, len(m.counts))
	for source, n := range m.counts {
		if n >= faded {
			mix[source] = math.Round(n*1e6) / 1e6
		}
	}
	return mix
}

// short returns the sources with a share that stand more than three points, and more than one and a half impressions,
// below it among the impressions that are remembered, by name. Only candidates that were not there bring a source so
// low: the mixer takes the next place where there are some.
func (f Feed) short(counts map[string]float64) []schemas.Source {
	const points, items = 0.03, 1.5
	shown, shares := 0.0, 0.0
	for source, n := range counts {
		shown += n
		if _, named := f.Shares[schemas.Source(source)]; !named {
			shares += f.Others
		}
	}
	for _, share := range f.Shares {
		shares += share
	}
	var list []schemas.Source
	for source, share := range f.Shares {
		if lack := share/shares*shown - counts[string(source)]; lack > points*shown && lack > items {
			list = append(list, source)
		}
	}
	slices.SortFunc(list, func(a, b schemas.Source) int { return strings.Compare(string(a), string(b)) })
	return list
}
