// Package convert turns lists into lists of another type.
package convert

// All returns f of each element of a list, in its order. It never returns nil.
func All[E, T any](list []E, f func(E) T) []T {
	all := make([]T, len(list))
	for i, e := range list {
		all[i] = f(e)
	}
	return all
}
