// Package generations rebuilds the pools: in place, by a replay of the log of pins, or as a new generation while the
// current one stays active. Package generation defines the states and steps of such a build.
package generations
