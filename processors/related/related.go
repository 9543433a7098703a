// Package related computes related pins and related interests. It delivers the neighbors of a pin to the users who act on
// the pin.
//
//	owner   pin, interest, board
//	in      related-requests and pin-cards (key pin), board-saves (key board), related-pairs (batched, of a partition)
//	rows    of a pin or an interest: its neighbors by id and by strength, and the total strength;
//	        of a board: the last pins saved to it
//	out     deliveries of the source related (to the user's partition), related-pairs
//
// Each record takes effect exactly once; see package rows.
//
// # Neighbors
//
// Two pins are neighbors if both are among the last Config.PairedBoardPins saved to a board. They are also neighbors if
// the same user acted on both within a short time, which the group actors detects. Two interests are neighbors if a pin
// with an action has both. Each occurrence adds the weight w of the action, at its event time t, to
//
//	strength(now) = Σ w · 2^(−(now − t)/half-life), with a half-life of 30 days
//
// The stored value is the logarithm of the strength as of the epoch, ln Σ w·2^(t/half-life). This is forward decay
// (Cormode, Shkapenyuk, Srivastava, Xu, ICDE 2009): the stored value does not change over time, and the order of two
// neighbors is the same at any time. The order of arrival does not matter either, except at the bounds. A pin or interest
// keeps its Config.MaxNeighbors strongest neighbors, and at most a quarter more.
//
// # Candidates
//
// A positive action on a pin delivers the Config.DeliveredNeighbors strongest neighbors of the pin to the pool related
// of the user. The write-time score of each is
//
//	ln(quality) + ln(2)·created/half-life + ln(share) + ln(weight of the action)
//
// where the half-life is Config.ScoreHalfLife. share is the neighbor's part in the total strength of the pin and
// replaces an edge weight. The facets are those that the neighbor had at the last occurrence. Its card has the current
// ones.
//
// # Deleted pins
//
// A deleted pin is removed from its neighbors, and its own neighbors are deleted. Later actions can still contain it,
// because users and boards keep it for a while. It gets no more neighbors, and the group sends a removal to the other
// pin.
//
// # Rows
//
// Deletion. What deletes each kind of row, by the first byte of its name:
//
//	'n'  neighbors          cap: Keep; event: either pin is deleted
//	'p'  their places       event: with the neighbor
//	'a'  total strength     never: for a deleted pin, its 12 bytes record the deletion, which later actions must find
//	's'  saves of a board   cap: PairedBoardPins
package related

import (
	"github.com/smartfeed/smartfeed/processors/rows"
	"github.com/smartfeed/smartfeed/schemas"
	"github.com/smartfeed/smartfeed/topics"
)

// Group returns the topology. cfg must be valid.
func Group(cfg Config, s *topics.Streams) rows.Group {
	g := &group{cfg: cfg, streams: s, out: rows.Gather(s.RelatedPairs, pairs)}
	return rows.Group{
		Name: topics.Related,
		Inputs: []rows.Input{
			rows.Keyed(s.RelatedRequests, g.request).Deferred(),
			rows.Keyed(s.BoardSaves, g.save).Deferred(),
			rows.Batched(s.RelatedPairs, g.pair).Deferred(),
			rows.Owned(s.PinCards, "card", "pin", func(c *schemas.Card) schemas.PinID { return c.Pin }, g.card).Deferred(),
		},
		Outputs: []string{topics.Deliveries, topics.RelatedPairs},
	}
}

// group holds the state that the callbacks share. The callbacks of several partitions run concurrently.
type group struct {
	cfg     Config
	streams *topics.Streams
	out     *rows.Gathering[change]
}

// request processes an action on a pin. It pairs the pin with the pins that the user acted on shortly before, and delivers
// the pin's neighbors to the user.
func (g *group) request(tx *rows.Tx, r *schemas.RelatedRequest) error {
	if err := r.Validate(tx.Key()); err != nil {
		return err
	}
	own := neighbors{tx.Own(), g.cfg}
	for i := range r.Near {
		near := &r.Near[i]
		if !own.add(&near.Neighbor, near.Weight, near.Time) {
			return nil
		}
		g.add(tx, near.Neighbor.ID, &r.Pin, near.Weight, near.Time)
	}
	g.addInterests(tx, r.Pin.Interests, g.cfg.PairedInterests, r.Weight, r.Time)
	g.offer(tx, own, r)
	return nil
}

// offer delivers the strongest neighbors of a pin to the user who acted on it.
func (g *group) offer(tx *rows.Tx, own neighbors, r *schemas.RelatedRequest) {
	list, bad := best(own.own, g.cfg.DeliveredNeighbors)
	if tx.Fail(bad); len(list) == 0 {
		return
	}
	d := schemas.Delivery{Source: schemas.Related, Users: []schemas.UserID{r.User}}
	for i := range list {
		if list[i].share > 0 { // 0: so old that its share underflows and has no score
			d.Pins = append(d.Pins, list[i].delivered(r.Weight, g.cfg.ScoreHalfLife))
		}
	}
	partition := tx.PartitionOf(string(r.User))
	for _, d.Pins = range schemas.DeliveryPortions(d.Pins) {
		rows.SendTo(tx, g.streams.Deliveries, partition, tx.Key(), &d)
	}
}

// save pairs a pin with those that were last saved to the same board.
func (g *group) save(tx *rows.Tx, s *schemas.BoardSave) error {
	if err := s.Validate(tx.Key()); err != nil {
		return err
	}
	saves := g.saves(tx.Own())
	g.keepSave(tx.Own(), s, saves)
	for _, other := range saves {
		if other.Pin.ID == s.Pin.ID {
			continue
		}
		weight, at := later(s, other)
		g.add(tx, s.Pin.ID, &other.Pin, weight, at)
		g.add(tx, other.Pin.ID, &s.Pin, weight, at)
	}
	return nil
}

// later returns the weight and time of a pair of saves: those of the later save, regardless of the order of arrival.
func later(a, b *schemas.BoardSave) (float64, schemas.Micros) {
	if a.Time > b.Time || a.Time == b.Time && a.Weight > b.Weight {
		return a.Weight, a.Time
	}
	return b.Weight, b.Time
}

// pair adds neighbors to pins and interests of this partition, and removes deleted pins from them. If the owner is a
// deleted pin, pair sends a removal to the neighbor, which also has the deleted pin as a neighbor.
func (g *group) pair(tx *rows.Tx, r *schemas.RelatedPairs) error {
	if err := r.Validate(); err != nil {
		return err
	}
	for _, pair := range r.Pairs {
		own, other := neighbors{tx.Of(string(pair.Of)), g.cfg}, &r.Pins[pair.Neighbor]
		if !own.add(other, pair.Weight, pair.Time) {
			g.remove(tx, other.ID, pair.Of)
		}
	}
	for _, removed := range r.Removed {
		neighbors{tx.Of(string(removed.Of)), g.cfg}.remove(removed.Neighbor)
	}
	return nil
}

// card deletes the neighbors of a deleted pin, and sends its removal to each of them.
func (g *group) card(tx *rows.Tx, c *schemas.Card) error {
	if !c.Deleted {
		return nil
	}
	for _, id := range (neighbors{tx.Own(), g.cfg}).clear() {
		g.remove(tx, id, schemas.ID(c.Pin))
	}
	return nil
}
