package rules

import (
	"math"
	"math/rand/v2"
	"slices"

	"github.com/smartfeed/smartfeed/schemas"
)

// randomizes reports whether places are drawn at random.
func (f Feed) randomizes() bool { return f.Randomize.Candidates > 0 }

// option is a candidate for a place.
type option struct {
	*item          // valid until spacing changes the order of the items
	schemas.Choice // as it was when the place was drawn
}

// randomize takes items from the queues until the arrangement has the limit of the visit, without repeating a pin. For each place it
// draws a source, by the shares of the sources that have an admissible candidate, and then one of the best admissible candidates of the
// source, by the softmax of the scores divided by the temperature. Over the places of one source this is a Plackett-Luce model,
// truncated to the best.
//
// A place whose caps admit no candidate has the caps of the next relaxation level. The probabilities of a place therefore depend
// only on the places before. The draws of explored items are their scores, so the probabilities are those for these draws. randomize
// returns the highest relaxation level.
func (f Feed) randomize(a *arrangement, v *Visit, queues []queue) Relaxation {
	const stream = 0x72616e64 // differs from the streams of the draws of exploration
	rng := rand.New(rand.NewPCG(v.seed(), stream+uint64(len(a.list))))
	levels, reached := f.Caps.relaxations(), 0
	queues = slices.Clone(queues)
	a.spacing = newSpacing(f.Spacing, a.vectors, a.list, queues)
	for len(a.list) < v.Limit {
		for i := range queues {
			queues[i].sort()
		}
		options, level := a.relaxedOptions(levels, queues, f.Randomize.Candidates)
		if len(options) == 0 {
			break
		}
		reached = max(reached, level)
		f.weigh(options)
		drawn := draw(options, rng.Float64())
		a.options, a.drawn = append(a.options, options), append(a.drawn, drawn)
		a.put(options[drawn].Source, options[drawn].item)
	}
	return levels[reached].level
}

// relaxedOptions returns the candidates for the next place with the first caps that admit any, and the index of these caps.
func (a *arrangement) relaxedOptions(levels []relaxedCaps, queues []queue, n int) ([]option, int) {
	for i, caps := range levels {
		if options := a.optionsWith(caps.Caps, queues, n); len(options) > 0 {
			return options, i
		}
	}
	return nil, 0
}

// optionsWith returns the candidates for the next place: the n best of each queue that the caps admit.
func (a *arrangement) optionsWith(caps Caps, queues []queue, n int) (list []option) {
	near := window{caps, a.near.count}
	for i := range queues {
		q, end := &queues[i], len(list)+n
		for j := 0; j < len(q.items) && len(list) < end; j++ {
			it := &q.items[j]
			if a.taken[it.Pin] {
				continue
			}
			violated := near.admits(&it.Facets)
			if it.Pin == a.watch {
				a.violated = violated
			}
			if violated == "" {
				list = append(list, option{it, schemas.Choice{Source: q.source, Pin: it.Pin, RankScore: it.rankScore}})
			}
		}
	}
	return list
}

// weigh sets the probabilities of the options of a place: a source is drawn by its share, and then one of its options by the softmax
// of the scores. The options of a source are adjacent, the best first.
func (f Feed) weigh(options []option) {
	sums, shares, best := map[schemas.Source]float64{}, 0.0, schemas.RankScore(0)
	for i := range options {
		o := &options[i]
		if sums[o.Source] == 0 {
			best = o.rankScore
			shares += f.Share(o.Source)
		}
		o.Probability = math.Exp(float64(o.rankScore-best) / f.Randomize.Temperature)
		sums[o.Source] += o.Probability
	}
	for i := range options {
		o := &options[i]
		o.SourceProbability = f.Share(o.Source) / shares
		o.Probability *= o.SourceProbability / sums[o.Source]
	}
}

// draw returns the index of the option for a random number in [0, 1).
func draw(options []option, u float64) int {
	last := 0
	for i := range options {
		if options[i].Probability == 0 {
			continue
		}
		last = i
		if u -= options[i].Probability; u < 0 {
			return i
		}
	}
	return last // the probabilities add up to slightly less than 1
}
