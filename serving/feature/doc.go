// Package feature answers what members did in the last minutes and hours, joined with the attributes of what they did
// it to, and what all members did to a pin.
//
//	in      actions-enriched, item-features, pin-cards, pin-attributes (read committed, by each process for itself)
//	rows    actor, time → action; pin, day → counts and actors by step; pin → facets, attributes, embedding, mean of its
//	        recent actors; topic, partition → how far it is applied
//	out     answers to Request; dead letters
//
// A Definition, from features.yaml, is what a feature means: verbs, a window of at most 96 hours, a filter and a
// grouping over joined attributes, an aggregate. Reference evaluates one by brute force over a list of actions; that is
// the meaning, and each Store is held to it by one conformance suite. What is put together from other definitions (a
// ratio), or from rows and what is looked up by key, is put together here, from what the store says of its parts.
//
// Definitions are taken from their file while the process runs (Reloader); one that is in no file yet can be tried
// (Service.Try).
//
// # Time
//
// Event times and as_of are floored to milliseconds. A window is (as_of − window, as_of]. Kept are the actions of
// (now − 96 h, now]: of a window that reaches back further, the kept part is answered and the feature is named in
// missing with the reason window. Item counts come in steps of schemas.ItemStep and are as of now whatever at says: a
// step counts as a whole when any millisecond of it is within the window, and decays by the age of its beginning.
//
// With a half-life an action counts 2^(−age/half-life), its age being that at as_of; in a mean the weights are relative
// to each other. Means are equal in every reading to 1e-9, counts without a half-life exactly.
//
// # Values
//
// A member of a list counts once for each action. An absent attribute and an empty list are in no group and match no
// filter. What is not a finite number in decimal notation is skipped by sum, mean, min and max, as if the action were
// not there. Without any action count, sum, rate and distinct are 0, groups {}, lists []; everything else is null and
// missing. Actions of the same millisecond are ordered by id, descending.
//
// Different values are counted exactly up to ExactDistinct, then estimated (schemas.Sketch, 1.6 percent). Those who acted
// on a pin are always estimated; of a few of them the estimate is off by less than one.
//
// # Guarantees
//
// The Sink commits an offset only after what the record brought is on disk, and every write is keyed, so that a repeat
// changes nothing. How far the topics are applied is in the batch with the rows: a store that was lost, or was filled from
// topics that were made anew since, is filled again from what they have. An answer never waits past its deadline: what was not
// evaluated by then is null, named in missing and summed up in degraded. A store that fails answer after answer is left
// alone for a while.
//
// # Rows
//
// Deletion. What deletes each kind of rows, by the first byte of a table's keys or the last of a pin's:
//
//	'a'  actions               sweep: 96 hours after their day; an erasure hides those of the user until then
//	'i'  days of pins          sweep: 96 hours after their day
//	'p'  pins                  event: as the four kinds that follow
//	'c'  facets                never: of a deleted pin only the version and that it is deleted, because late cards must lose
//	'v'  attributes            event: a deletion empties the row
//	'e'  embedding             event: a deletion empties the row
//	'm'  mean of recent actors event: the pin is deleted; of an id that never becomes a pin it stays, one vector
//	'o'  how far it is applied never: one for each topic and partition
package feature
