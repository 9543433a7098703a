package ranked

// Hash returns the 64-bit FNV-1a hash of s.
func Hash[T ~string](s T) uint64 {
	h := uint64(14695981039346656037)
	for i := range len(s) {
		h = (h ^ uint64(s[i])) * 1099511628211
	}
	return h
}

// TrimDue reports whether to trim a list now, after a row was put into it. It returns true for one row in n on average. The
// result depends only on its arguments, so it is the same after a replay and no list needs a counter. If a trim reads a few
// times n rows, it adds a constant to the cost of each put. The probability of more than k·n puts between two trims is e^-k.
// list and row are hashes of the names of the list and the row. n is at least 1.
func TrimDue(list, row uint64, n int) bool {
	// Finalizer of SplitMix64 (Steele, Lea, Flood 2014). FNV alone is not enough: its low bits depend too much on the last
	// byte.
	h := list*0x9e3779b97f4a7c15 ^ row
	h = (h ^ h>>30) * 0xbf58476d1ce4e5b9
	h = (h ^ h>>27) * 0x94d049bb133111eb
	return (h^h>>31)%uint64(n) == 0
}
