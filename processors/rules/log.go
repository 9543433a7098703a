package rules

import (
	"slices"

	"github.com/smartfeed/smartfeed/schemas"
)

// Logged returns the policy and the items of Make for the log of visits: their scores with the parts, and their propensities. It
// lacks what the rules do not know.
func (f Feed) Logged(v Visit, pools []Pool, k Signals) schemas.LoggedVisit {
	d := f.decide(v, pools, k, "")
	logged := schemas.LoggedVisit{Policy: schemas.PolicyDeterministic, Items: make([]schemas.LoggedItem, len(d.list))}
	terms := f.terms(k)
	for i := range d.list {
		it := &d.list[i]
		logged.Items[i] = schemas.LoggedItem{
			Pin: it.Pin, Source: it.Source, Pool: it.Pool, Author: it.Author, RankScore: it.RankScore,
			Parts: d.partsOf(it, terms), Propensity: 1, Choice: -1,
		}
	}
	switch {
	case f.randomizes():
		logged.Policy = schemas.PolicyRandomized
		d.addChoices(logged.Items)
	case len(d.explored) > 0:
		logged.Policy = schemas.PolicyExploration
		d.estimatePropensities(&v, k.Counts, logged.Items)
	}
	return logged
}

// partsOf returns the parts of an item's score, or nil if it is an exploration draw.
func (d *decision) partsOf(it *schemas.ServedItem, terms []term) map[string]float64 {
	at := slices.IndexFunc(d.all, func(q queue) bool { return q.source == it.Source })
	if at < 0 {
		return nil
	}
	of := &d.all[at].items[d.all[at].index(it.Pin)]
	all := parts(of.Candidate, terms)
	all["write_time"] = float64(of.PoolScore)
	if d.feed.Spacing.Strength > 0 {
		all["spacing"] = float64(it.RankScore - of.rankScore)
	}
	return all
}

// addChoices adds the choices of a randomized arrangement to its items.
func (a *arrangement) addChoices(items []schemas.LoggedItem) {
	for i, options := range a.options {
		for _, o := range options {
			items[i].Choices = append(items[i].Choices, o.Choice)
		}
		items[i].Choice, items[i].Propensity = int32(a.drawn[i]), options[a.drawn[i]].Probability
	}
}

// redraws is the number of other draws from which a propensity is estimated.
const redraws = 100

// estimatePropensities sets the propensities of the explored items. That of the first one is the share of the draws in which its
// pin is the highest one that may be at its place: redraws with other seeds, and the draw of the visit, so the share is not 0. The
// others are 0, for unknown: the first item excludes the draws in which a later one is higher.
func (d *decision) estimatePropensities(v *Visit, counts Counts, items []schemas.LoggedItem) {
	isFirst := true
	for i := range items {
		switch {
		case items[i].Source != schemas.Explore:
		case isFirst:
			items[i].Propensity, isFirst = d.estimatePropensity(v.seed(), counts, i), false
		default:
			items[i].Propensity = 0
		}
	}
}

// rival is a new pin that may be at a place.
type rival struct {
	*item
	count  Count
	author *authorDraw
	by     float64 // reduction of its score by Spacing
}

// estimatePropensity returns the propensity of the first explored item, which is at a place.
func (d *decision) estimatePropensity(seed uint64, counts Counts, place int) float64 {
	drawer := newDrawer(seed, counts)
	rivals := d.rivals(drawer, place)
	wins := 1
	for n := range uint64(redraws) {
		drawer.visit = seed ^ (n+1)<<48
		for _, author := range drawer.authors {
			author.drawn = false
		}
		highest, pin := schemas.RankScore(-1), schemas.PinID("")
		for i := range rivals {
			r := &rivals[i]
			if drawn := reduced(schemas.Explore, drawer.draw(r.item, r.count, r.author), r.by); drawn > highest {
				highest, pin = drawn, r.Pin
			}
		}
		if pin == d.list[place].Pin {
			wins++
		}
	}
	return float64(wins) / (redraws + 1)
}

// rivals returns the new pins that the caps admit at a place before which no item is explored.
func (d *decision) rivals(drawer drawer, place int) (list []rival) {
	near, taken := newWindow(d.admitted), map[schemas.PinID]bool{}
	for i := range d.list[:place] {
		near.advance(d.list[:i+1])
		taken[d.list[i].Pin] = true
	}
	for i := range d.explored {
		if it := &d.explored[i]; !taken[it.Pin] && near.admits(&it.Facets) == "" {
			most, _ := mostSimilar(d.vectors, it.Pin, d.list[:place])
			list = append(list, rival{it, drawer.counts.Pin(it.Pin), drawer.author(it.Author), d.feed.Spacing.Strength * most})
		}
	}
	return list
}
