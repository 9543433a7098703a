//go:build race

package app

// slowly is the slowdown by the race detector.
const slowly = 8
