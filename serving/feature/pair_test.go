package feature

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/smartfeed/smartfeed/schemas"
)

func TestPick(t *testing.T) {
	author, interest, pin := Grouping{{part: objectAuthor}}, Grouping{{part: objectInterests}}, Grouping{{part: objectPart}}
	authorPin, authorInterest := slices.Concat(author, pin), slices.Concat(author, interest)
	own := PinAttributes{Facets: schemas.Facets{Author: "user:a", Interests: []schemas.InterestID{"interest:1", "interest:2"}}}
	groups := func(reasons ...Reason) Result {
		return Result{Groups{"user:b": 1, "interest:2": 2, "pin:1": 3, "user:a|pin:1": 4, "user:a|interest:2": 5, "interest:2|user:a": 6}, reasons}
	}
	tests := map[string]struct {
		by    Grouping
		how   Aggregate
		of    Result
		own   PinAttributes
		known bool
		want  Result
	}{
		"scalar":                    {author, Count, groups(), PinAttributes{Facets: schemas.Facets{Author: "user:b"}}, true, Result{Value: Number(1)}},
		"no such group, count":      {author, Count, groups(), own, true, Result{Value: Number(0)}},
		"no such group, mean":       {author, Mean, groups(Window), own, true, Result{Reasons: []Reason{Empty, Window}}},
		"list":                      {interest, Count, groups(Cap), own, true, Result{Groups{"interest:2": 2}, []Reason{Cap}}},
		"empty list":                {interest, Count, groups(), PinAttributes{}, true, Result{Value: Groups{}}},
		"no attribute":              {author, Count, groups(), PinAttributes{}, true, Result{Reasons: []Reason{Attribute}}},
		"unknown pin":               {author, Count, groups(), PinAttributes{}, false, Result{Reasons: []Reason{Unknown}}},
		"the pin itself":            {pin, Count, groups(), PinAttributes{}, false, Result{Value: Number(3)}},
		"two keys":                  {authorPin, Count, groups(), own, true, Result{Value: Number(4)}},
		"two keys, one a list":      {authorInterest, Count, groups(), own, true, Result{Value: Groups{"user:a|interest:2": 5}}},
		"two keys, one absent":      {authorPin, Count, groups(), PinAttributes{}, true, Result{Reasons: []Reason{Attribute}}},
		"two keys of an unknown":    {authorPin, Count, groups(), PinAttributes{}, false, Result{Reasons: []Reason{Unknown}}},
		"no groups to pick from":    {pin, Count, absent(Deadline), own, true, absent(Deadline)},
		"another group overflowed":  {pin, Sum, groups(Overflow, Cap), own, true, Result{Number(3), []Reason{Cap}}},
		"perhaps it has overflowed": {author, Sum, groups(Overflow), own, true, Result{Reasons: []Reason{Overflow}}},
	}
	for name, tt := range tests {
		d := Definition{Entity: Pair, Aggregate: tt.how, GroupBy: tt.by}
		same(t, name, tt.want, pick(d, tt.of, "pin:1", tt.own, tt.known), cmpopts.EquateEmpty())
	}
}
