// Package bench runs `smartfeed bench`. Its benchmarks measure the write path of the home feed, from a pin to the pools of
// all followers of its author; `make bench-feed` runs them.
package bench
