package rules

import (
	"math"
	"slices"

	"github.com/smartfeed/smartfeed/schemas"
)

// Spacing separates similar pins of a chunk. It implements maximal marginal relevance (Carbonell, Goldstein: "The Use of MMR,
// Diversity-Based Reranking for Reordering Documents and Producing Summaries", SIGIR 1998): the score of a candidate is reduced
// by Strength times its similarity to the most similar item above. The similarity of two pins is the cosine of their embeddings,
// at least 0. A pin without an embedding is similar to none.
//
// A reduction compares with all items above, not with the last ones only. Therefore a score never rises within a chunk, and the
// items of a source are in descending order.
type Spacing struct {
	Strength float64 `yaml:"strength" range:"0..100" help:"reduction of the score of a pin with the same embedding as an item above it; of similar pins, multiplied by the cosine of the embeddings; 0: none"`
}

// reduced returns a score after a reduction. Exploration draws are rates and the other scores are logarithms. Both are reduced by
// the same factor.
func reduced(source schemas.Source, score schemas.RankScore, by float64) schemas.RankScore {
	if source == schemas.Explore {
		return score * schemas.RankScore(math.Exp(-by))
	}
	return score - schemas.RankScore(by)
}

// spacing has the similarities of candidates to the items of an arrangement. A nil spacing reduces no score.
type spacing struct {
	strength float64
	vectors  map[schemas.PinID]Vector
	above    []Vector // of the items of the chunk
	near     map[schemas.Source]map[schemas.PinID]*nearness
}

// nearness is the similarity of a candidate to the most similar item above.
type nearness struct {
	vector     Vector
	compared   int // number of first items above that the similarity includes
	similarity float64
}

// newSpacing returns the spacing of candidates below the first items of a chunk. It replaces the queues by copies, which apply
// may change.
func newSpacing(s Spacing, vectors map[schemas.PinID]Vector, list []schemas.ServedItem, queues []queue) *spacing {
	if s.Strength == 0 || len(vectors) == 0 {
		return nil
	}
	all := &spacing{strength: s.Strength, vectors: vectors, near: make(map[schemas.Source]map[schemas.PinID]*nearness, len(queues))}
	for i := range list {
		all.add(list[i].Pin)
	}
	for i := range queues {
		q := &queues[i]
		q.items = slices.Clone(q.items)
		near := make(map[schemas.PinID]*nearness, len(q.items))
		for _, it := range q.items {
			if v := vectors[it.Pin]; v != nil {
				near[it.Pin] = &nearness{vector: v}
			}
		}
		all.near[q.source] = near
	}
	return all
}

// add adds an item to the chunk.
func (s *spacing) add(pin schemas.PinID) {
	if s == nil {
		return
	}
	if v := s.vectors[pin]; v != nil {
		s.above = append(s.above, v)
	}
}

// apply reduces the scores of a queue for the next place, and restores the order of its items.
func (s *spacing) apply(q *queue) {
	if s == nil {
		return
	}
	changed := false
	for i := range q.items {
		it := &q.items[i]
		n := s.near[q.source][it.Pin]
		if n == nil {
			continue
		}
		if more := n.compare(s.above); more > 0 {
			it.rankScore, changed = reduced(q.source, it.rankScore, s.strength*more), true
		}
	}
	if changed {
		slices.SortFunc(q.items, compareItems)
	}
}

// compare includes further items above, and returns the increase of the similarity.
func (n *nearness) compare(above []Vector) (increase float64) {
	before := n.similarity
	for _, v := range above[n.compared:] {
		n.similarity = max(n.similarity, n.vector.similarity(v))
	}
	n.compared = len(above)
	return n.similarity - before
}

// mostSimilar returns the similarity of a pin to the most similar one of some items, and that item's pin, or 0 and "".
func mostSimilar(vectors map[schemas.PinID]Vector, pin schemas.PinID, items []schemas.ServedItem) (most float64, to schemas.PinID) {
	for i := range items {
		if s := vectors[pin].similarity(vectors[items[i].Pin]); s > most && items[i].Pin != pin {
			most, to = s, items[i].Pin
		}
	}
	return most, to
}
