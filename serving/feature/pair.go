package feature

import (
	"slices"

	"github.com/smartfeed/smartfeed/schemas"
)

// pick returns a pair's value out of the user's groups: the number of the pin's own group; over a list attribute the
// groups that are the pin's. A group without actions has what the aggregate has without actions, in a list it is left
// out. Of Cosine the user's value is a vector, which is compared with the pin's.
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
	if !known && def.GroupBy.part != objectPart {
		return absent(Unknown)
	}
	values := def.GroupBy.valuesOfPin(schemas.ID(pin), own.Facets, own.Attributes)
	if def.GroupBy.isList() {
		return Result{Value: groups.of(values), Reasons: of.Reasons}
	}
	if len(values) == 0 {
		return absent(Attribute)
	}
	return pickOne(def, groups, values[0], of.Reasons)
}

func pickOne(def Definition, groups Groups, name string, reasons []Reason) Result {
	x, ok := groups[name]
	switch {
	case ok:
		// What overflowed is another group.
		return Result{Value: Number(x), Reasons: slices.DeleteFunc(slices.Clone(reasons), isOverflow)}
	case slices.ContainsFunc(reasons, isOverflow):
		return Result{Reasons: reasons} // perhaps this one
	case def.Aggregate.zeroWhenEmpty():
		return Result{Value: Number(0), Reasons: reasons}
	}
	return Result{Reasons: append([]Reason{Empty}, reasons...)}
}

func isOverflow(r Reason) bool { return r == Overflow }

// of returns the groups of these names that there are.
func (g Groups) of(names []string) Groups {
	out := Groups{}
	for _, name := range names {
		if x, ok := g[name]; ok {
			out[name] = x
		}
	}
	return out
}
