//go:build race

package product

// slowly is how many times as long everything takes under the race detector, where it is watched.
const slowly = 8
