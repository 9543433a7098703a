// Package feature evaluates features: values computed from the actions of the last minutes and hours, joined with the
// attributes of their objects and actors. A feature describes a user, a pin, or a pair of both.
//
//	in      actions-enriched, item-features, pin-attributes (read committed; each process reads all partitions)
//	rows    actor, time → action; pin, day → counts and actors by step; pin → facets, attributes, embedding, mean of its
//	        recent actors; topic, partition → applied offset
//	out     answers to Request; dead letters
//
// A Definition, from features.yaml, defines a feature: verbs, a window of at most 96 hours, a filter and a grouping
// over joined attributes, and an aggregate. Reference evaluates a definition by brute force over a list of actions and
// so specifies its meaning. One conformance suite compares every Store with it. The Service, not the store, divides the
// results of the two definitions of a ratio.
//
// A Reloader reloads the definitions file while the process runs. Service.Try evaluates a definition that is in no file
// yet.
//
// # Time
//
// Event times and as_of are floored to milliseconds. A window is (as_of − window, as_of]. The store keeps the actions
// of (now − 96 h, now]. If a window reaches back further, the value covers the kept part, and the feature is listed in
// missing with the reason window.
//
// Item counts come in steps of schemas.ItemStep and are always as of now; at does not affect them. A step counts in
// full if any millisecond of it is within the window. It decays by the age of its start.
//
// With a half-life, an action counts 2^(−age/half-life), where the age is measured at as_of. In a mean, the weights are
// relative to each other. Two evaluations of a mean agree to 1e-9, and counts without a half-life agree exactly.
//
// # Values
//
// A member of a list counts once per action. With several keys in group_by, an action counts once in each combination of
// its values; see Grouping and GroupName. An absent attribute and an empty list belong to no group and match no
// filter. The aggregates sum, mean, min and max skip an action whose value is not a finite number in decimal notation.
// Without any matching action, sum, count, rate and distinct are 0, groups are {}, and lists are []. Every other value
// is null and listed in missing. Actions of the same millisecond are ordered by id, descending.
//
// Distinct values are counted exactly up to ExactDistinct and estimated above it (schemas.Sketch, 1.6 percent error).
// The actors of a pin are always estimated; for a small number of actors the error is less than one.
//
// # Sequences
//
// A sequence has the last actions of a user, by count: among the MaxSequence actions with the highest numbers, which
// processors/actors assigns, the newest N that match and are not later than as_of. It has no window. Stores keep these actions
// for Config.SequenceRetention. If later actions than as_of have replaced some of them, and fewer than N match, the feature is
// listed in missing with the reason window. Actions of releases without numbers are in no sequence.
//
// # Guarantees
//
// The Sink commits an offset only after the data of its record is on disk. Every write is keyed, so a repeat changes
// nothing. The applied offsets are in the same batch as the rows. If the store was lost, or was filled from topics that
// have been recreated since, it is filled again from the present topics.
//
// An answer never waits past its deadline. A value that was not evaluated in time is null, is listed in missing, and
// adds its reason to degraded. After several failed answers in a row, a circuit breaker stops requests to the store for
// a while.
//
// # Rows
//
// Deletion. What deletes each kind of rows, by the first byte of a table's keys or the last byte of a pin's key:
//
//	'a'  actions               sweep: 96 hours after their day; an erasure hides the user's actions until then
//	's'  actions of sequences  event: the actor's 512th later action; sweep: Config.SequenceRetention after their period, or
//	                           when their actor is deleted
//	'i'  days of pins          sweep: 96 hours after their day
//	'p'  pins                  event: as the four kinds that follow
//	'c'  facets                never: a deleted pin keeps its version, so that a late version loses
//	'v'  attributes            event: a deletion empties the row
//	'e'  embedding             event: a deletion empties the row
//	'm'  mean of recent actors event: the deletion of the pin; it stays for an id that never becomes a pin, one vector
//	'o'  applied offset        never: one row per topic and partition
package feature
