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

// spacing reduces the scores of candidates that are similar to the items of an arrangement. A nil spacing reduces none.
type spacing struct {
	strength float64
	vectors  map[schemas.PinID]Vector
	queues   []queue
}

// newSpacing returns the spacing of the candidates in queues below the first items of a chunk. It replaces their items by copies.
func newSpacing(s Spacing, vectors map[schemas.PinID]Vector, list []schemas.ServedItem, queues []queue) *spacing {
	if s.Strength == 0 || len(vectors) == 0 {
		return nil
	}
	all := &spacing{s.Strength, vectors, queues}
	for i := range queues {
		queues[i].items = slices.Clone(queues[i].items)
	}
	for i := range list {
		all.add(list[i].Pin)
	}
	return all
}

// add adds an item to the chunk.
func (s *spacing) add(pin schemas.PinID) {
	if s == nil || s.vectors[pin] == nil {
		return
	}
	for i := range s.queues {
		q := &s.queues[i]
		for k := range q.items {
			it := &q.items[k]
			if more := s.vectors[it.Pin].similarity(s.vectors[pin]) - it.similarity; more > 0 {
				it.similarity += more
				it.rankScore, q.unsorted = reduced(q.source, it.rankScore, s.strength*more), true
			}
		}
	}
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
