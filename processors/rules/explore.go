package rules

import (
	"math"
	"math/rand/v2"
	"slices"

	"github.com/smartfeed/smartfeed/processors/ranked"
	"github.com/smartfeed/smartfeed/schemas"
)

// explores reports whether exploration is enabled and possible.
func (f Feed) explores(k Signals) bool { return f.Shares[schemas.Explore] > 0 && k.Counts != nil }

// explore draws a score for every candidate that is new or whose author is new. It returns them as a separate source,
// highest draw first. It implements Thompson sampling for rates (Russo, Van Roy, Kazerouni, Osband, Wen: "A Tutorial on
// Thompson Sampling", 2018, algorithm 3.2) on two levels. The save rate of the author is drawn from the saves of all
// the author's pins. The save rate of the pin is drawn from that rate and the saves of the pin:
//
//	author  ~ Beta(prior·w + saves of author, (1 − prior)·w + passes of author)
//	pin     ~ Beta(author·w + saves of pin,   (1 − author)·w + passes of pin)
//
// Here prior is priorRate and w is priorWeight. A pin with few impressions therefore gets a chance, more often if its
// author does well. It loses the chance if it is shown and not saved.
func (f Feed) explore(seed uint64, queues []queue, counts Counts) queue {
	d := newDrawer(seed, counts)
	total := 0
	for i := range queues {
		total += len(queues[i].items)
	}
	drawn := make([]item, 0, total)
	for i := range queues {
		for _, it := range queues[i].items {
			pin, author := counts.Pin(it.Pin), d.author(it.Author)
			if f.Explore.isNew(pin, author.count) {
				drawn = append(drawn, item{Candidate: it.Candidate, rankScore: d.draw(&it, pin, author), pool: queues[i].source})
			}
		}
	}
	return queue{source: schemas.Explore, items: firstOfEach(drawn)}
}

// firstOfEach sorts draws, highest first, and keeps the first one of each pin: that of the first of its sources by name. A
// pin has the same draw in every source, so the draws of a pin are adjacent after sorting.
func firstOfEach(draws []item) []item {
	slices.SortStableFunc(draws, compareItems)
	return slices.CompactFunc(draws, func(a, b item) bool { return a.Pin == b.Pin })
}

func (e Explore) isNew(pin, author Count) bool {
	return pin.Impressions < e.PinImpressions || author.Impressions < e.AuthorImpressions
}

// golden is 2^64 divided by the golden ratio. Its multiples are evenly spread.
const golden = 0x9e3779b97f4a7c15

// seed returns the seed of the random numbers of a visit.
func (v *Visit) seed() uint64 { return ranked.Hash(v.User) + uint64(v.Memory.Draws)*golden }

// drawer draws rates. A draw depends only on the visit and on the pin and author, not on other candidates.
type drawer struct {
	visit   uint64
	counts  Counts
	authors map[schemas.UserID]*authorDraw
	source  *rand.PCG
	rng     *rand.Rand // uses source, which is seeded again for each draw
}

// authorDraw is the count and the draw of an author.
type authorDraw struct {
	count Count
	drawn bool
	rate  float64 // valid if drawn
}

func newDrawer(visit uint64, counts Counts) drawer {
	source := rand.NewPCG(0, 0)
	return drawer{visit: visit, counts: counts, authors: map[schemas.UserID]*authorDraw{}, source: source, rng: rand.New(source)}
}

func (d drawer) author(id schemas.UserID) *authorDraw {
	a := d.authors[id]
	if a == nil {
		a = &authorDraw{count: d.counts.Author(id)}
		d.authors[id] = a
	}
	return a
}

func (d drawer) draw(it *item, pin Count, author *authorDraw) schemas.RankScore {
	if !author.drawn {
		author.rate, author.drawn = d.beta(ranked.Hash(it.Author), priorRate, author.count), true
	}
	return schemas.RankScore(d.beta(ranked.Hash(it.Pin), author.rate, pin))
}

// beta draws a rate from its Beta distribution, given the expected rate and the count.
func (d drawer) beta(seed uint64, expected float64, c Count) float64 {
	d.source.Seed(d.visit, seed)
	saves, passes := c.split()
	x := gamma(d.rng, expected*priorWeight+saves)
	y := gamma(d.rng, (1-expected)*priorWeight+passes)
	if x+y == 0 { // both underflow
		return expected
	}
	return x / (x + y)
}

// gamma draws from the gamma distribution with the given shape and scale 1 (Marsaglia, Tsang: "A simple method for
// generating gamma variables", 2000). It returns 0 if shape is not positive.
func gamma(rng *rand.Rand, shape float64) float64 {
	switch {
	case !(shape > 0):
		return 0
	case shape < 1:
		return gamma(rng, shape+1) * math.Pow(1-rng.Float64(), 1/shape)
	}
	d := shape - 1.0/3
	c := 1 / math.Sqrt(9*d)
	for {
		x := rng.NormFloat64()
		v := 1 + c*x
		if v <= 0 {
			continue
		}
		v *= v * v
		u := 1 - rng.Float64()
		// The polynomial is a lower bound of the logarithms and accepts nearly all draws without computing them.
		if u < 1-0.0331*x*x*x*x || math.Log(u) < x*x/2+d-d*v+d*math.Log(v) {
			return d * v
		}
	}
}
