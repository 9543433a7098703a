//go:build !race

package product

// slowly is how many times as long everything takes as in the program.
const slowly = 1
