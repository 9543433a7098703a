package rules

import (
	"math"
	"slices"
	"strings"

	"github.com/smartfeed/smartfeed/schemas"
)

// mixer balances the shares of the sources over the impressions of a user. Each impression adds one to the count of its
// source, after all counts were multiplied by 1 − 1/Memory. The next place is due to the source with the smallest (count +
// 0.5) / share. This is the Sainte-Laguë (Webster) method for allocating seats. It keeps each source within about one item of
// its share at any time. A source without candidates leaves its places to the others in proportion to their shares. When it
// has candidates again, it catches up on the remembered impressions.
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

// before reports whether a is due before b. Ties are broken by the larger share, then by name.
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

// after returns the counts to remember. It omits counts that have decayed below 1e-3, to keep the mix small.
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

// short returns the sources that are more than 3 percentage points and more than 1.5 impressions below their share of the
// remembered impressions, by name. Only a lack of candidates has this effect: otherwise the mixer gives the next place to
// such a source.
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
