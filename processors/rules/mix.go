package rules

import (
	"cmp"
	"maps"
	"math"

	"github.com/smartfeed/smartfeed/schemas"
)

// mixer balances the shares of the sources over the impressions of a user. Each impression adds one to the count of its
// source, after all counts were multiplied by 1 − 1/Memory. The next place is due to the source with the smallest (count +
// 0.5) / share. This is the Sainte-Laguë (Webster) method for allocating seats. It keeps each source within about one
// item of its share at any time. A source without candidates leaves its places to the others in proportion to their
// shares. When it has candidates again, it catches up on the remembered impressions.
type mixer struct {
	feed   Feed
	counts map[string]float64
}

func newMixer(f Feed, mix map[string]float64) mixer {
	return mixer{feed: f, counts: maps.Collect(maps.All(mix))} // also if mix is nil
}

// before reports whether a is due before b. Ties are decided by the larger share, then by name.
func (m *mixer) before(a, b schemas.Source) bool {
	return cmp.Or(cmp.Compare(m.due(a), m.due(b)), cmp.Compare(m.feed.Share(b), m.feed.Share(a)), cmp.Compare(a, b)) < 0
}

func (m *mixer) due(s schemas.Source) float64 {
	return (m.counts[string(s)] + 0.5) / m.feed.Share(s)
}

func (m *mixer) count(s schemas.Source) {
	keep := 1 - 1/float64(m.feed.ShareWindow)
	for source := range m.counts {
		m.counts[source] *= keep
	}
	m.counts[string(s)]++
}

// after returns the counts to remember. It omits counts that have decayed below 1e-3, to keep the mix small.
func (m *mixer) after() map[string]float64 {
	const minCount = 1e-3
	mix := make(map[string]float64, len(m.counts))
	for source, n := range m.counts {
		if n >= minCount {
			mix[source] = math.Round(n*1e6) / 1e6
		}
	}
	return mix
}
