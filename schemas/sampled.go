package schemas

import "github.com/cespare/xxhash/v2"

// Sampled reports whether an id is in a share of all ids. It decides by a hash, so that the result is the same in every process,
// and a larger share has all ids of a smaller one.
func Sampled(id string, share float64) bool {
	return share > 0 && float64(xxhash.Sum64String(id)>>11)/(1<<53) < share
}
