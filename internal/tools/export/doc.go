// Package export exports the log of visits as training data: one row per shown item, with the values that the model received
// and with labels from later actions.
//
//	in      visit-log, actions-enriched, users-deleted
//	out     DIR/day=2026-11-20/part-03-000000000120-000000004711.parquet
//
// Both topics have the user as key, so Run joins one partition after the other. It holds a batch of visits in memory and
// reads the actions since the oldest of them.
//
// # Files
//
// A file contains the items of the visits at the offsets 120 to 4711 of one partition, on the UTC day of the visit. Run
// continues after the last offset in the files. Each item is in the files once, even after kills: Run renames the files of a
// batch after all of them are on disk, and completes the renames at its next start.
//
// The last files of a partition can contain visits whose windows have not ended. Their names end in -open.parquet. The next
// Run replaces them.
//
// This holds for one directory, which one process writes at a time, one topic and one set of labels. The metadata of the files
// contain the topic and the labels, and Run refuses to add files with others.
package export
