//go:build !race

package app

// slowly is the slowdown compared with the program.
const slowly = 1
