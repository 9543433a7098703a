//go:build race

package eventually

// Slowdown is the slowdown of tests by the race detector. Patience includes it.
const Slowdown = 8
