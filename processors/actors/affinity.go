package actors

import (
	"cmp"
	"math"
	"slices"

	"github.com/smartfeed/smartfeed/schemas"
	"github.com/smartfeed/smartfeed/schemas/visibility"
)

// facets returns the facets of an action: author, board and interests of its pin at the time of the action. They exclude the
// actor and deleted authors.
func facets(a *schemas.EnrichedAction, deleted visibility.DeletedUsers) []schemas.ID {
	f := a.ObjectAttributes.Facets
	if f.Author == a.Actor || deleted.Has(f.Author) {
		f.Author = ""
	}
	all := make([]schemas.ID, 0, 2+len(f.Interests))
	for id := range f.Followees {
		all = append(all, schemas.ID(id))
	}
	return all
}

// negligible is the smallest affinity that is sent: a hundredth of a view.
const negligible = 0.001

// strongest returns the n greatest affinities of at least negligible, greatest first, with ties by facet. It reorders all.
func strongest(all []schemas.Affinity, n int) []schemas.Affinity {
	all = slices.DeleteFunc(all, func(a schemas.Affinity) bool { return a.Value < negligible })
	slices.SortFunc(all, func(a, b schemas.Affinity) int {
		return cmp.Or(cmp.Compare(b.Value, a.Value), cmp.Compare(a.Facet, b.Facet))
	})
	return all[:min(n, len(all))]
}

// weakest returns all affinities but the keep strongest by absolute value, with ties by facet. It reorders all.
func weakest(all []schemas.Affinity, keep int) []schemas.Affinity {
	slices.SortFunc(all, func(a, b schemas.Affinity) int {
		return cmp.Or(cmp.Compare(math.Abs(b.Value), math.Abs(a.Value)), cmp.Compare(a.Facet, b.Facet))
	})
	return all[min(keep, len(all)):]
}
