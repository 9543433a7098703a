// Package app assembles the program from the other packages: one configuration, and the wiring of all roles. Commands
// (package internal/cli) and embedding programs use it.
//
// wiring.go and wiring_serving.go open one part after the other. roles.go lists the parts of each role. If a part depends
// on another, this package passes it as a small interface.
package app
