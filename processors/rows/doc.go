// Package rows makes a Goka group exactly once, on many small ordered rows per owner.
package rows
