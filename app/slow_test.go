//go:build !race

package app

// slowly is the slowdown of the tests by the race detector.
const slowly = 1
