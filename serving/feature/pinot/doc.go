// Package pinot evaluates features of users and pairs in Apache Pinot, which ingests actions-enriched itself.
//
//	in      nothing: Pinot consumes the topic itself, read committed, each topic partition as one table partition
//	rows    one per action, with the columns of the function columns
//	out     results as defined by feature.Reference; the data of pins comes from the embedded store, by key
//
// A read of a user is one query for any number of features. The query returns the columns that the features need,
// for the actions in the widest window, newest first. This package evaluates them with the code that evaluates the
// embedded store's rows. Only if a single count without half-life over columns is requested does Pinot count. If there
// are more groups than the limit, the rows are read instead, because only they show which groups are the newest. Thus
// all stores agree, although some releases of Pinot cannot add vectors and others have no maps.
//
// # Text
//
// SQL is built from columns, numbers, and texts escaped by quote. Names of attributes never become SQL. The only
// external input is the user's id.
//
// # Guarantees
//
// A query ends with its context: Pinot receives the remaining time as a timeout. One of several brokers may be
// unavailable without a failed answer; see Client. Exceptions inside an answer with status 200, servers that did not
// respond, and an answer without a table are errors. No error contains the SQL. If the rows would exceed
// Config.MaxResponseBytes, fewer are requested, and features that need more have the reason cap.
//
// The table is partitioned by actor like the topic, keeps 96 hours, and deduplicates event ids. Pinot's controller
// reports the offsets up to which Pinot has ingested (Admin.Reached).
package pinot
