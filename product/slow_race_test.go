//go:build race

package product

// slowly is the slowdown by the race detector.
const slowly = 8
