// Package generations rebuilds the pools: in place, by a replay of the log of pins, and as a new generation beside the one
// that answers.
//
// The record of a group on the topic generations (topics.Generation) is the whole state of a build, so an interrupted run
// resumes from any machine. A process that runs the pools only follows the record; see package app.
//
//		          Build, Replay: copy rows                  Build, Replay: backfill done
//		one active ───────────────────────▶ Building set ───────────────────────────────▶ CuttingOver set
//		    ▲                                    │                                              │
//		    ├────────────────────────────────────┘ Abort                                        │ marks written and applied
//		    └───────────────────────────────────────────────────────────────────────────────────┘ Active = Building
//
//	  - one active: Active answers and emits.
//	  - Building set: both generations process the inputs; the new one emits nothing.
//	  - CuttingOver set: marks may be in the inputs, so the build can no longer be aborted. After its mark in a partition, the
//	    new generation emits and the previous one does not.
package generations
