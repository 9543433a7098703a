package feature

import (
	"math"
	"slices"

	"github.com/smartfeed/smartfeed/schemas"
)

// Reference evaluates a definition of entity user or pair over all actions of a user, without limits and in any order. It
// specifies the meaning of a definition. For a pair it returns all groups of the user, from which the pin's own are
// selected, or for Cosine the user's vector, which is compared with the pin's. Actions outside the kept part of the span
// are ignored, except by a sequence.
func Reference(def Definition, span Span, actions []schemas.EnrichedAction) Result {
	if def.Aggregate == Ratio {
		return divide(def, Reference(*def.Numerator, span, actions), Reference(*def.Denominator, span, actions))
	}
	e := NewEvaluation(span, []Definition{def}, math.MaxInt)
	var sorted []*schemas.EnrichedAction
	for i := range actions {
		sorted = append(sorted, &actions[i])
	}
	slices.SortFunc(sorted, newestFirst)
	for _, a := range sorted {
		_ = e.Add(a) // they are sorted
	}
	e.AddKept(sorted, true)
	return e.Results()[0]
}

// ReferencePair evaluates a definition of entity pair over the actions of its user. pins returns the data of a pin.
func ReferencePair(def Definition, span Span, actions []schemas.EnrichedAction, pin schemas.PinID, pins func(schemas.PinID) (own PinAttributes, known bool)) Result {
	own, known := pins(pin)
	return pick(def, Reference(def, span, actions), pin, own, known)
}

// ReferenceItems evaluates a definition of entity pin over all counts of a pin. counts has each step at most once. The
// mean of recent actors is the last one in counts.
func ReferenceItems(def Definition, now schemas.Micros, counts []schemas.ItemCounts) Result {
	if def.Aggregate == Ratio {
		return divide(def, ReferenceItems(*def.Numerator, now, counts), ReferenceItems(*def.Denominator, now, counts))
	}
	return NewItemEvaluation([]Definition{def}, now).Evaluate(counts)[0]
}
