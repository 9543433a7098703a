// Package related knows which pins go together, and which interests, and brings the neighbours of a pin to whoever acts
// on it.
//
//	owner   pin, interest, board
//	in      related-requests and pin-cards (key pin), board-saves (key board), related-pairs (of a partition)
//	rows    of a pin and an interest: its neighbours by id and by strength, and all strength together;
//	        of a board: the last pins saved to it; common: the scale of strengths
//	out     deliveries of the source related (to the user's partition), related-pairs
//
// Neighbours. Two pins are neighbours when they were saved to the same board, among its last Config.BoardPins, or when
// the same user acted on both soon after one another, which the group actors finds out; two interests, when an action's
// pin has both. Each time adds the action's weight w, at its event time t, to
//
//	strength(now) = Σ w · 2^(−(now − t)/half-life)
//
// Kept is its logarithm as of the epoch, ln Σ w·2^(t/half-life): forward decay (Cormode, Shkapenyuk, Srivastava, Xu, ICDE
// 2009), which time does not change and which two neighbours can be compared by at every moment. So the order of arrival
// does not matter either, up to the bounds. The Config.Keep strongest are kept of a pin or interest, give or take a quarter.
// When Config.HalfLife is another one, what strengths are worth stands (decay.Scale): from the first record that a partition
// works off by it on, strengths halve by it, and what comes counts by it.
//
// Candidates. A positive action on a pin brings the Config.Offer strongest neighbours of the pin into the pool related of
// its user, each with the write-time score
//
//	ln(quality) + created/half-life + ln(share) + ln(weight of the action)
//
// where share is the neighbour's part in all strength of the pin: it stands where an edge has its weight. Facets are those
// that the neighbour had when it was last seen to be one; what has become of it since, its card knows.
//
// Deleted pins. A deleted pin loses its neighbours, and each of them loses it. Later actions may still name it, as users and
// boards remember it for a while: it gets no neighbours any more, and whoever got it as one is told to remove it.
//
// Deletion. What deletes each kind of rows, by the first byte of their names:
//
//	'n'  neighbours         cap: Keep; event: either pin is deleted
//	'p'  their places       event: with the neighbour
//	'a'  strength of all    never: of a deleted pin it says so, in 12 bytes, because later actions must find that
//	's'  saves of a board   cap: BoardPins
//
// Every record has its effect exactly once, see package rows.
package related

import (
	"fmt"
	"sync"

	"github.com/smartfeed/smartfeed/processors/decay"
	"github.com/smartfeed/smartfeed/processors/rows"
	"github.com/smartfeed/smartfeed/schemas"
	"github.com/smartfeed/smartfeed/topics"
)

// Group returns the topology. cfg must be valid; partitions is the number of those of deliveries and related-pairs.
func Group(cfg Config, partitions int32, s *topics.Streams) rows.Group {
	g := &group{cfg: cfg, streams: s, partitions: partitions}
	g.pairs.New = func() any { return newPairing(partitions) }
	return rows.Group{
		Name: topics.Related,
		Inputs: []rows.Input{
			rows.Keyed(s.RelatedRequests, g.request),
			rows.Keyed(s.BoardSaves, g.save),
			rows.Batched(s.RelatedPairs, g.pair),
			rows.Keyed(s.PinCards, g.card),
		},
		Outputs: []string{topics.Deliveries, topics.RelatedPairs},
	}
}

// group is what the callbacks share. They run for several partitions at once.
type group struct {
	cfg        Config
	streams    *topics.Streams
	partitions int32
	pairs      sync.Pool // of *pairing
}

// request takes in what a user has acted on beside a pin, and brings the user the pin's neighbours.
func (g *group) request(tx *rows.Tx, r *schemas.RelatedRequest) error {
	if err := r.Validate(tx.Key()); err != nil {
		return err
	}
	p := g.pairs.Get().(*pairing)
	defer g.pairs.Put(p)
	p.reset()
	scale, err := g.scale(tx)
	if err != nil {
		return err
	}
	own := neighbours{tx.Own(), g.cfg, scale}
	for i := range r.Near {
		near := &r.Near[i]
		if added, err := own.add(&near.Neighbour, near.Weight, near.Time); err != nil || !added {
			return err
		}
		p.pair(near.Neighbour.ID, &r.Pin, near.Weight, near.Time)
	}
	p.interests(r.Pin.Interests, g.cfg.Interests, r.Weight, r.Time)
	if err := g.sendPairs(tx, p); err != nil {
		return err
	}
	return g.offer(tx, own, r)
}

// offer delivers the strongest neighbours of a pin to the user who acted on it.
func (g *group) offer(tx *rows.Tx, own neighbours, r *schemas.RelatedRequest) error {
	list, err := own.best(g.cfg.Offer)
	if err != nil || len(list) == 0 {
		return err
	}
	d := schemas.Delivery{Source: schemas.Related, Users: []schemas.UserID{r.User}}
	for i := range list {
		if list[i].share > 0 { // so old that nothing is left of it: it has no score
			d.Pins = append(d.Pins, list[i].delivered(r.Weight, g.cfg.ScoreHalfLife))
		}
	}
	partition := topics.Partition(string(r.User), g.partitions)
	for _, d.Pins = range schemas.DeliveryPortions(d.Pins) {
		if err := rows.SendTo(tx, g.streams.Deliveries, partition, tx.Key(), &d); err != nil {
			return err
		}
	}
	return nil
}

// save makes a pin the neighbour of those that were last saved to the same board.
func (g *group) save(tx *rows.Tx, s *schemas.BoardSave) error {
	if err := s.Validate(tx.Key()); err != nil {
		return err
	}
	b := board{tx.Own(), g.cfg.BoardPins, g.streams}
	others, err := b.add(s)
	if err != nil {
		return err
	}
	p := g.pairs.Get().(*pairing)
	defer g.pairs.Put(p)
	p.reset()
	for _, other := range others {
		weight, at := later(s, other)
		p.pair(s.Pin.ID, &other.Pin, weight, at)
		p.pair(other.Pin.ID, &s.Pin, weight, at)
	}
	return g.sendPairs(tx, p)
}

// later returns what two saves are worth as a pair: as much as the later one, whichever of them comes first.
func later(a, b *schemas.BoardSave) (float64, schemas.Micros) {
	if a.Time > b.Time || a.Time == b.Time && a.Weight > b.Weight {
		return a.Weight, a.Time
	}
	return b.Weight, b.Time
}

// pair adds neighbours to pins and interests of this partition, and removes deleted pins from them. Of a deleted pin that was
// to have a neighbour that neighbour is told: it has the deleted pin as one, too.
func (g *group) pair(tx *rows.Tx, r *schemas.RelatedPairs) error {
	if err := r.Validate(); err != nil {
		return err
	}
	scale, err := g.scale(tx)
	if err != nil {
		return err
	}
	p := g.pairs.Get().(*pairing)
	defer g.pairs.Put(p)
	p.reset()
	for _, pair := range r.Pairs {
		own, other := neighbours{tx.Of(string(pair.Of)), g.cfg, scale}, &r.Pins[pair.Neighbour]
		added, err := own.add(other, pair.Weight, pair.Time)
		if err != nil {
			return err
		}
		if !added {
			p.remove(other.ID, pair.Of)
		}
	}
	for _, gone := range r.Removed {
		if err := (neighbours{tx.Of(string(gone.Of)), g.cfg, scale}).remove(gone.Neighbour); err != nil {
			return err
		}
	}
	return g.sendPairs(tx, p)
}

// card deletes the neighbours of a deleted pin, and has it removed from theirs.
func (g *group) card(tx *rows.Tx, c *schemas.Card) error {
	if tx.Key() != string(c.Pin) {
		return schemas.Bad(fmt.Sprintf("card: key %.64q: want the pin %.64q", tx.Key(), c.Pin))
	}
	if !c.Deleted {
		return nil
	}
	p := g.pairs.Get().(*pairing)
	defer g.pairs.Put(p)
	p.reset()
	ids, err := neighbours{own: tx.Own(), cfg: g.cfg}.clear()
	if err != nil {
		return err
	}
	for _, id := range ids {
		p.remove(id, schemas.ID(c.Pin))
	}
	return g.sendPairs(tx, p)
}

// scale is that of all strengths of the partition.
func (g *group) scale(tx *rows.Tx) (decay.Scale, error) {
	return decay.Keep(tx.Common(), schemas.MicrosOf(tx.Time()), g.cfg.HalfLife)
}

// sendPairs sends each partition its pairs.
func (g *group) sendPairs(tx *rows.Tx, p *pairing) error {
	send := func(partition int, rec *schemas.RelatedPairs) error {
		if len(rec.Pairs)+len(rec.Removed) == 0 {
			return nil
		}
		return rows.SendTo(tx, g.streams.RelatedPairs, int32(partition), tx.Key(), rec)
	}
	for partition := range p.byPartition {
		b := &p.byPartition[partition]
		for i := range b.full {
			if err := send(partition, &b.full[i]); err != nil {
				return err
			}
		}
		if err := send(partition, &b.RelatedPairs); err != nil {
			return err
		}
	}
	return nil
}
