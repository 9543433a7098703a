// Package featurelog keeps what was answered for training: the features of an entity exactly as a model was given them,
// which nobody can compute afterwards without a mistake about time.
//
//	Recorder   samples answers by rule and sends them to the topic feature-log; it never makes an answer wait
//	Files      the consumer group feature-files: feature-log → dated Avro files for Spark, Trino, DuckDB
//	Verify     computes logged values again from the log of actions, and says how far they drift
//
// # Files
//
//	DIR/date=2026-11-20/part-03-000000000120-000000004711.avro
//
// hold the records of one partition from offset 120 to 4711, by the UTC date on which they were logged. While it grows
// a file ends in .open; it gets its name when the date changes, when it is large or old enough, and when the sink ends.
// Each record is in the files exactly once, whatever is killed when: an offset is committed after its record is on
// disk; and what is on disk and not committed is known by the files themselves, whose names and last whole blocks say
// how far they go. That holds for one directory, which one process at a time writes, and for one topic: which it is stands
// in DIR/_topic, and another one's records are refused.
package featurelog
