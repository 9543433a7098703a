// Package insight answers how a product grows, and which interests are popular at which hours. It stores the days on
// which each user acted, the sequence of the user's actions, and the actions of each interest by hour.
//
//	in      actions-enriched (read committed; each process reads all partitions)
//	rows    user → first day and days of activity; day, user → verbs in the order of their time;
//	        interest → actions by weekday and hour; partition → applied offset, with the topic's id
//	out     Growth, Xd28s, Retention, Funnel, Popularity
//
// Days and hours are in UTC, by event time. Every action counts once: the rows and the applied offset are one batch on
// disk, and records below that offset are skipped. An action that arrives a day late changes the day on which it
// happened. Deleted users are removed from all answers at once; the hours of interests keep their anonymous share.
//
// The store keeps KeepDays of activity per user, the first day of activity forever, and Config.SequenceRetention of
// sequences.
//
// Deletion. What deletes each kind of rows, by the first byte of their keys:
//
//	'u'  days of a user    erasure, by the next sweep; one row of KeepDays bits and the first day
//	's'  acts of a day     sweep: Config.SequenceRetention after the day; erasure, by the next sweep
//	'h'  hours             never: 168 counts for each interest, anonymous
//	'o'  applied offset    never: one for each partition
package insight
