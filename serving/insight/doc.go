// Package insight answers how a product grows and what is liked when: from the days on which each user acted, what they
// did in which order, and the hours of interests.
//
//	in      actions-enriched (read committed, by each process for itself)
//	rows    user → first day and days of activity; day, user → verbs in the order of their time;
//	        interest → actions by weekday and hour; partition → offset applied, of which topic
//	out     Growth, Xd28s, Retention, Funnel, Popularity
//
// Days and hours are those of UTC, by event time. Every action counts once: what is written and how far the topic is
// applied are one batch on disk, and a record below that is skipped. An action that is a day late changes the day it
// happened on. Users who are deleted are in no answer from then on; hours of interests keep their anonymous share.
//
// Kept are KeepDays of activity a user, of which the first ever stays known, and Config.SequenceDays of sequences.
//
// Deletion. What deletes each kind of rows, by the first byte of their keys:
//
//	'u'  days of a user    erasure, by the next sweep; one row of KeepDays bits and the first day
//	's'  acts of a day     sweep: Config.SequenceDays after the day; erasure, by the next sweep
//	'h'  hours             never: 168 counts for each interest, anonymous
//	'o'  how far it is applied  never: one for each partition
package insight
