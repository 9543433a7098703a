// Package app assembles the program: one configuration, the wiring of all roles, and the commands. main.go only
// calls Execute, so that tests run the whole program like a user.
//
// It is the only package that imports all others, and only main imports it. pieces.go opens one part after the other.
// roles.go lists the parts of each role. If a part depends on another, this package passes it as a small interface.
package app
