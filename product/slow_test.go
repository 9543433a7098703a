//go:build !race

package product

// slowly is the slowdown compared with the program.
const slowly = 1
