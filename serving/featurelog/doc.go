// Package featurelog logs answers for training: the features of an entity exactly as a model received them. Computing
// them afterwards would risk errors about time.
//
//	Recorder   samples answers by rule and sends them to the topic feature-log; it never delays an answer
//	Files      the consumer group feature-files: feature-log → dated Avro files for Spark, Trino, DuckDB
//	Verify     recomputes logged values from the log of actions and reports their drift
//	History    computes values as of given times from the log of actions
//
// # Files
//
//	DIR/date=2026-11-20/part-03-000000000120-000000004711.avro
//
// contains the records of one partition from offset 120 to 4711, by the UTC date on which they were logged. Files gathers
// records in memory. It writes a complete file of each partition and date when the records reach the maximum size or age,
// and when the sink stops. It drops the records of partitions that another process takes over.
//
// Each record is in the files exactly once, even after kills. An offset is committed after its record is on disk. If
// records are on disk and not committed, the names of the files show the last offset. This holds for one directory, which
// only one process writes at a time, and for one topic. The metadata of the files have the id of the topic, and the
// records of another topic are rejected.
package featurelog
