// Package pinot evaluates features in Apache Pinot, which ingests their topics itself.
//
//	in      nothing: Pinot consumes actions-enriched, pin-attributes and item-features, read committed, each topic
//	        partition as one table partition
//	rows    one per action; one per pin; one per pin and step; one per pin with a mean of recent actors: see Tables
//	out     results as defined by feature.Reference and feature.ReferenceItems
//
// A read of a user is one query for any number of features. The query returns the columns that the features need,
// for the actions in the widest window, newest first. A read of pins is one query for all of them; means of recent actors
// need two more. This package evaluates the rows with the code that evaluates the embedded store's rows. Thus all stores
// agree, although some releases of Pinot cannot add vectors and others have no maps.
//
// # Text
//
// SQL is built from columns, numbers, and texts escaped by quote. Names of attributes never become SQL. The only
// external input are the ids of users and pins.
//
// # Guarantees
//
// A query ends with its context: Pinot receives the remaining time as a timeout. One of several brokers may be
// unavailable without a failed answer; see Client. Exceptions inside an answer with status 200, servers that did not
// respond, and an answer without a table or a server are errors. No error contains the SQL. If the rows of a user would
// exceed Config.MaxResponseBytes, fewer are requested, and features that need more have the reason cap. If those of some
// pins would, the pins are read in parts.
//
// Actions and steps are kept for 96 hours. Pinot's controller reports the offsets up to which Pinot has ingested
// (Admin.Reached).
package pinot
