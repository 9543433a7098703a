package schemas

import (
	"math"
	"slices"
)

// Neighbor is a pin that is related to another one, as of the time of the observation; or a related interest, which has
// only an ID.
type Neighbor struct {
	ID      ID      `avro:"id" json:"id"`
	Version Version `avro:"version" json:"version,omitempty"` // version of the facets
	Facets  `avro:"facets"`
	Created Micros  `avro:"created" json:"created,omitempty"`
	Quality float64 `avro:"quality" json:"quality,omitempty"` // > 0, 1 by default
}

// Near is a neighbor and the occurrence that made it one.
type Near struct {
	Neighbor Neighbor `avro:"neighbor" json:"neighbor"`
	Weight   float64  `avro:"weight" json:"weight"` // weight of the occurrence, > 0
	Time     Micros   `avro:"time" json:"time"`     // time of the occurrence
}

// RelatedRequest reports a positive action on a pin. It requests a delivery of the pin's neighbors to the user, and names
// the pins that the user acted on at about the same time, which become neighbors. Topic related-requests, key: the pin.
type RelatedRequest struct {
	User   UserID   `avro:"user" json:"user"`
	Verb   Verb     `avro:"verb" json:"verb,omitempty"`
	Weight float64  `avro:"weight" json:"weight"` // weight of the action's verb, > 0
	Time   Micros   `avro:"time" json:"time"`
	Pin    Neighbor `avro:"pin" json:"pin"`
	Near   []Near   `avro:"near" json:"near,omitempty"`
}

// BoardSave reports that a pin was saved to a board. Topic board-saves, key: the board.
type BoardSave struct {
	Board  BoardID  `avro:"board" json:"board"`
	Time   Micros   `avro:"time" json:"time"`
	Weight float64  `avro:"weight" json:"weight"` // weight of the action's verb, > 0
	Pin    Neighbor `avro:"pin" json:"pin"`
}

// RelatedPairs are new neighbors of pins and interests of one partition. Topic related-pairs, produced to that partition
// explicitly.
type RelatedPairs struct {
	Pins  []Neighbor `avro:"pins" json:"pins"` // state of the neighbors
	Pairs []Pair     `avro:"pairs" json:"pairs"`
	// Removed are deleted pins to remove from the neighbors of ids of the partition.
	Removed []RemovedNeighbor `avro:"removed" json:"removed,omitempty"`
}

// RemovedNeighbor is a deleted pin to remove from the neighbors of one id.
type RemovedNeighbor struct {
	Of       ID `avro:"of" json:"of"`
	Neighbor ID `avro:"neighbor" json:"neighbor"`
}

// Pair is one occurrence of a neighbor of one id.
type Pair struct {
	Of       ID      `avro:"of" json:"of"`
	Neighbor int32   `avro:"neighbor" json:"neighbor"` // its index in RelatedPairs.Pins
	Weight   float64 `avro:"weight" json:"weight"`
	Time     Micros  `avro:"time" json:"time"`
}

// RelatedItem is a neighbor in an API response.
type RelatedItem struct {
	ID    ID      `json:"id"`    // a pin or an interest
	Share float64 `json:"score"` // share of the neighbor in all decayed occurrences of the requested id, 0 to 1
	Facets
	Created Micros `json:"created,omitempty"`
}

// Validate returns a *BadRecordError for a request that this project's programs never write.
func (r *RelatedRequest) Validate(key string) error {
	if key != string(r.Pin.ID) {
		return badf("related request: key %.64q: want the pin %.64q", key, r.Pin.ID)
	}
	if !positive(r.Weight) || r.Pin.validate() != nil || r.Pin.ID.Kind() != KindPin {
		return badf("related request: pin %.64q of weight %v", r.Pin.ID, r.Weight)
	}
	for i := range r.Near {
		if n := &r.Near[i]; !positive(n.Weight) || n.Neighbor.validate() != nil {
			return badf("related request: neighbor %.64q of weight %v", n.Neighbor.ID, n.Weight)
		}
	}
	return nil
}

// Validate returns a *BadRecordError for a save that this project's programs never write.
func (s *BoardSave) Validate(key string) error {
	if key != string(s.Board) {
		return badf("board save: key %.64q: want the board %.64q", key, s.Board)
	}
	if !positive(s.Weight) || s.Pin.validate() != nil {
		return badf("board save: pin %.64q of weight %v", s.Pin.ID, s.Weight)
	}
	return nil
}

// Validate returns a *BadRecordError for pairs that this project's programs never write.
func (r *RelatedPairs) Validate() error {
	if slices.ContainsFunc(r.Pins, func(n Neighbor) bool { return n.validate() != nil }) {
		return Bad("related pairs: neighbor without an id or with an invalid quality")
	}
	for _, p := range r.Pairs {
		if p.Of == "" || p.Neighbor < 0 || int(p.Neighbor) >= len(r.Pins) || !positive(p.Weight) {
			return badf("related pairs: neighbor %d of %.64q with weight %v", p.Neighbor, p.Of, p.Weight)
		}
	}
	for _, r := range r.Removed {
		if r.Of == "" || r.Neighbor == "" {
			return badf("related pairs: removed neighbor %.64q of %.64q: want two ids", r.Neighbor, r.Of)
		}
	}
	return nil
}

// MaxEncodedBytes returns an upper bound of the bytes of the neighbor in an encoded record. The numbers and the length of its
// id take at most 32 bytes.
func (n *Neighbor) MaxEncodedBytes() int { return 32 + len(n.ID) + n.maxEncodedBytes() }

func (n *Neighbor) validate() error {
	if n.ID == "" || !positive(n.Quality) {
		return Bad("neighbor without an id or with an invalid quality")
	}
	return nil
}

func positive(x float64) bool { return x > 0 && !math.IsInf(x, 0) }
