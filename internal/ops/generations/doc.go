// Package generations rebuilds the pools: in place, by a replay of the log of pins, and as a new generation beside the active
// one. Package generation has the states and steps of such a build.
package generations
