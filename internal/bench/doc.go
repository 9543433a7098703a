// Package bench measures what no package can by itself: the write path of the home feed, from a pin to the pools of all
// who follow its author. `make bench-feed` runs it.
package bench
