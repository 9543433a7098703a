package rules

import (
	"math"
	"math/rand/v2"

	"github.com/smartfeed/smartfeed/processors/ranked"
	"github.com/smartfeed/smartfeed/schemas"
)

// explores says whether lots are drawn.
func (f Feed) explores(k Known) bool { return f.Shares[schemas.Explore] > 0 && k.Counts != nil }

// lots draws a lot for every candidate that is new, or whose author is, and returns them as a source of their own, the
// highest lot first; the lot is the score. It is Thompson sampling for rates (Russo, Van Roy, Kazerouni, Osband, Wen: "A
// Tutorial on Thompson Sampling", 2018, algorithm 3.2), on two levels: what is believed of the author is drawn from the
// saves of all their pins, and from that and the pin's own saves the pin's rate,
//
//	author  ~ Beta(usual·w + saves of author, (1 − usual)·w + passes of author)
//	pin     ~ Beta(author·w + saves of pin,   (1 − author)·w + passes of pin)
//
// with usualRate and beliefWeight. So what may be good but has been shown to few gets its chance, more often the better
// its author does, and loses it when those who are shown it pass.
func (f Feed) lots(v *Visit, queues []queue, counts Counts) queue {
	d := newDrawer(ranked.Hash(v.User)+uint64(v.Memory.Draws)*golden, counts)
	most := 0
	for i := range queues {
		most += len(queues[i].items)
	}
	drawn := make(map[schemas.PinID]bool, most)
	lots := queue{source: schemas.Explore, items: make([]item, 0, most)}
	for i := range queues {
		for _, it := range queues[i].items {
			if drawn[it.pin] || !f.Explore.wants(&it, counts) {
				continue
			}
			drawn[it.pin] = true
			it.score = d.lot(&it)
			lots.items = append(lots.items, it)
		}
	}
	lots.items = bestFirst(lots.items)
	return lots
}

func (e Explore) wants(it *item, counts Counts) bool {
	return counts.Pin(it.pin).Impressions < e.Pin || counts.Author(it.Author).Impressions < e.Author
}

// golden is 2^64 divided by the golden ratio: its multiples are spread evenly.
const golden = 0x9e3779b97f4a7c15

// drawer draws lots. What it draws for somebody depends on the visit and on them alone, not on who else is there.
type drawer struct {
	visit   uint64
	counts  Counts
	authors map[schemas.UserID]float64
	source  *rand.PCG
	rng     *rand.Rand // of source, which is seeded anew for each draw
}

func newDrawer(visit uint64, counts Counts) drawer {
	source := rand.NewPCG(0, 0)
	return drawer{visit: visit, counts: counts, authors: map[schemas.UserID]float64{}, source: source, rng: rand.New(source)}
}

func (d drawer) lot(it *item) float64 {
	rate, ok := d.authors[it.Author]
	if !ok {
		rate = d.beta(ranked.Hash(it.Author), usualRate, d.counts.Author(it.Author))
		d.authors[it.Author] = rate
	}
	return d.beta(ranked.Hash(it.pin), rate, d.counts.Pin(it.pin))
}

// beta draws what the rate of something may be that was believed to have a rate.
func (d drawer) beta(seed uint64, believed float64, c Count) float64 {
	d.source.Seed(d.visit, seed)
	saves, passes := c.split()
	x := gamma(d.rng, believed*beliefWeight+saves)
	y := gamma(d.rng, (1-believed)*beliefWeight+passes)
	if x+y == 0 { // both too small for a number
		return believed
	}
	return x / (x + y)
}

// gamma draws from the gamma distribution of a shape and scale 1 (Marsaglia, Tsang: "A simple method for generating gamma
// variables", 2000). Of a shape that is not positive it is 0.
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
		if math.Log(1-rng.Float64()) < x*x/2+d-d*v+d*math.Log(v) {
			return d * v
		}
	}
}
