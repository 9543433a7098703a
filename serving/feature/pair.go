package feature

import (
	"slices"

	"github.com/smartfeed/smartfeed/schemas"
)

// pick selects the value of a pair from the user's groups: the number of the pin's group, or the pin's groups if it can
// be in several. A group without actions has the aggregate's value of no actions; of several groups it is omitted. For Cosine,
// the user's value is a vector, which pick compares with the pin's.
func pick(def Definition, of Result, pin schemas.PinID, own PinAttributes, known bool) Result {
	if mean, ok := of.Value.(Vector); ok {
		if !known {
			return absent(Unknown)
		}
		return cosine(mean, own.Embedding, of.Reasons)
	}
	groups, ok := of.Value.(Groups)
	if !ok {
		return of
	}
	if !known && def.needsPin() {
		return absent(Unknown)
	}
	names := def.GroupBy.ofPin(pin, own)
	if def.GroupBy.isList() {
		return Result{Value: groups.of(names), Reasons: of.Reasons}
	}
	if len(names) == 0 {
		return absent(Attribute)
	}
	return pickOne(def, groups, names[0], of.Reasons)
}

func pickOne(def Definition, groups Groups, name string, reasons []Reason) Result {
	x, ok := groups[name]
	switch {
	case ok:
		// Another group overflowed.
		return Result{Value: Number(x), Reasons: slices.DeleteFunc(slices.Clone(reasons), isOverflow)}
	case slices.ContainsFunc(reasons, isOverflow):
		return Result{Reasons: reasons} // this group may have overflowed
	case def.Aggregate.zeroWhenEmpty():
		return Result{Value: Number(0), Reasons: reasons}
	}
	return Result{Reasons: append([]Reason{Empty}, reasons...)}
}

func isOverflow(r Reason) bool { return r == Overflow }

// of returns the groups with these names that exist.
func (g Groups) of(names []string) Groups {
	out := Groups{}
	for _, name := range names {
		if x, ok := g[name]; ok {
			out[name] = x
		}
	}
	return out
}
