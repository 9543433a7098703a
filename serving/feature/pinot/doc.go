// Package pinot answers features of users and pairs from Apache Pinot, which ingests actions-enriched by itself.
//
//	in      nothing: Pinot consumes the topic, read committed, each partition of it as one of its own
//	rows    one an action, columns as Columns says
//	out     results as feature.Reference has them; what is known of pins comes from the embedded store, by key
//
// One query a user is asked, whatever the number of features: the columns that they look at, of the actions in the
// widest of their windows, newest first; they are evaluated here, by the code that evaluates the embedded store's rows.
// A count without decay over columns, asked for alone, is counted by Pinot, unless it has more groups than are answered:
// which are the newest, rows tell. That way all readings agree, in releases of which one cannot add vectors and another has
// no maps.
//
// # Text
//
// SQL is built from Columns, numbers, and texts that quote has escaped; names of attributes never become SQL. What comes
// from outside is the user's id alone.
//
// # Guarantees
//
// A query ends with its context: Pinot is told how long it may take. Of several brokers one that is away costs no answer, see
// Client. Exceptions inside an answer with status 200, servers
// that did not respond, an answer without a table are errors, and no error holds the SQL. Of rows that would be above
// Config.MaxBytes fewer are asked for, and what needs more has the reason cap.
// The table is partitioned by actor as the topic is, keeps 96 hours, and takes each event id once. How far Pinot is its
// controller says, by offsets (Admin.Reached).
package pinot
