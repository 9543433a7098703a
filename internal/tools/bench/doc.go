// Package bench measures what spans several packages: the write path of the home feed, from a pin to the pools of all
// followers of its author. `make bench-feed` runs it.
package bench
