package schemas

import "slices"

// The types that the Avro library encodes instead of a record whose Go shape differs from the wire's: a board that is null
// on the wire is "" in Go. The outer Board shadows the record's own.

type pinWire struct {
	*PinEvent
	Board *BoardID `avro:"board"`
}

type actionWire struct {
	*ActionEvent
	Board *BoardID `avro:"board"`
}

type offerWire struct {
	*Offer
	Candidates []candidateWire `avro:"candidates"`
}

type candidateWire struct {
	Candidate
	Board *BoardID `avro:"board"`
}

// wireOf returns the value to encode for rec, or to decode into.
func wireOf(rec any) any {
	switch rec := rec.(type) {
	case *PinEvent:
		return &pinWire{rec, boardWire(&rec.Board)}
	case *ActionEvent:
		return &actionWire{rec, boardWire(&rec.Board)}
	case *Offer:
		w := &offerWire{Offer: rec}
		for _, c := range rec.Candidates {
			w.Candidates = append(w.Candidates, candidateWire{c, boardWire(&c.Board)})
		}
		return w
	}
	return rec
}

func boardWire(b *BoardID) *BoardID {
	if *b == "" {
		return nil
	}
	return b
}

// finishDecoding completes the record of a wire type after decoding.
func finishDecoding(wire any) {
	switch w := wire.(type) {
	case *pinWire:
		w.PinEvent.Board = boardOf(w.Board)
		w.Interests = distinct(w.Interests)
	case *actionWire:
		w.ActionEvent.Board = boardOf(w.Board)
	case *offerWire:
		w.Offer.Candidates = make([]Candidate, len(w.Candidates))
		for i, c := range w.Candidates {
			c.Candidate.Board = boardOf(c.Board)
			c.Interests = distinct(c.Interests)
			w.Offer.Candidates[i] = c.Candidate
		}
	case interface{ removeRepeats() }:
		w.removeRepeats()
	case *Delivery:
		w.Continuation = slices.Clip(w.Continuation)
	case *ItemCounts:
		w.Actors = slices.Clip(w.Actors)
	case *DeadLetter: // the library's slices have spare capacity that overlaps other records
		w.Key, w.Value = slices.Clip(w.Key), slices.Clip(w.Value)
	}
}

func boardOf(b *BoardID) BoardID {
	if b == nil {
		return ""
	}
	return *b
}

// distinct removes repeats in place and keeps the first of each. It compares all pairs, so it leaves lists that are longer
// than any valid event's unchanged; validation rejects these.
func distinct[T comparable](ids []T) []T {
	if len(ids) > 4*MaxInterests {
		return ids
	}
	kept := ids[:0]
	for _, id := range ids {
		if !slices.Contains(kept, id) {
			kept = append(kept, id)
		}
	}
	return kept
}
