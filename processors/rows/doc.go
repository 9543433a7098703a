// Package rows makes a Goka group exactly once, on many small ordered rows per owner.
//
//	key     owner 0x00 row; the partition is the owner's, topics.Partition; some rows all owners of one have in common
//	table   <group>-table: the changelog, from which any process can recover every partition
//	local   one Pebble store a partition, at most two memtables behind the changelog after a crash
//	in      the group's inputs, and <group>-ticks if it has timers
//	out     its outputs, dead-letters, its own loop and ticks
//
// A group is a Group literal: inputs with their callbacks, the topics these emit to, what works off timers. A Runner
// runs it in this process, with other processes of the same consumer group; a View reads the rows that are here.
//
// # What is promised
//
// A callback's rows and records, and the fact that its input record is applied, move in one Kafka transaction: all of
// it or none, once, whatever is killed, stopped or handed over, so that callbacks need not be idempotent. Everything
// that reads these topics must read committed. The consumer group's own offsets say, for others to see, what is durable
// already; where work goes on after a restart is what the rows say.
//
// One thing is weaker on the embedded broker: killed between two markers of one transaction, it can apply half of it.
//
// # How
//
// A callback fills memory only: rows, records, the offset it has applied. It reads what is pending, what is being
// committed and the local store as one. A committer for each partition sends what has gathered as one transaction and
// then writes the local store. The first record after a rest is committed at once, and so is the next; more commits are a
// gap apart on average (Config.Gap), and one batch fills while the other is on its way.
//
// Each partition has a transactional id of its own. A new owner initialises it before Goka asks where the changelog
// ends: that refuses whatever a former owner still tries, and ends what it left open. A record written after that, the
// fence, makes the log end with a record even if a crashed broker left an aborted transaction there without a marker.
// Goka recovers the rows through a consumer that shows it markers, because it waits for the last record before the end.
//
// A commit whose outcome is unknown is never guessed at: the partition ends, and with it Run; started again, the
// initialisation settles it and recovery reads what became of it. The local store is written after Kafka only, without
// a write-ahead log of its own: the changelog is that. A store that is damaged or foreign is removed
// and rebuilt; and so is one that was away for so long that its log may have forgotten what was deleted meanwhile.
//
// # What becomes of an error
//
//	a bad record      (*schemas.BadRecordError: cannot be decoded, refused by the callback, breaks a bound) is undone,
//	                  sent to the dead letters, and counted; the partition goes on
//	an oversized      batch, beyond topics.MaxDecompressedBytes, MaxDecodedBytes or MaxHeaders, or a malformed one, is one
//	                  bad record
//	a retried record  of a group that could not work it off is passed over by all others that read its topic,
//	                  unless producers write the topic
//	any other error   undoes the record, commits what came before it, and is returned by Run; the supervisor runs it
//	                  again, and the record is tried again
//	a panic           drops what is pending, and ends Run with the panic's text and place
//	a *FatalError     of Run cannot be mended by running it again: it says what must be done first; an input that was
//	                  made anew, ends before what is applied, or begins after it; a changelog that lost records
//	a full disk       a *LowDiskError, and a read-only or broken one a *DiskError; nothing is committed until it is mended
//
// # Bounds
//
// A batch closes at Config.MaxBatchBytes or MaxBatchMessages; each partition has two at most. What one record may write
// is bounded by MaxRecordRows, MaxRecordBytes, MaxValueBytes; beyond, it is a bad one. Block cache, memtables, rows kept
// because they were read lately, and the pace of commits are of the process, not of each partition: see Shared. A row's
// name and its owner have 4 KiB together.
//
// # Rows of the kernel
//
// Deletion. What deletes the kernel's own rows, by the first byte of their names:
//
//	'a'  applied offset of an input    never: one for each input and partition
//	't'  timers                        event: they fire, or the callback drops them
//	'v'  whether an input's records emit    never: one for each input and partition of a generation
//	'f'  fences                        event: compaction of the changelog; in no store
//	'c'  transaction markers           event: the end of recovery; in memory alone
//	'o'  offset of the local store     event: the store is removed; one for each store
//	'm'  whose store it is             event: the store is removed; one for each store
//
// # Clocks
//
// The only now in a callback is its record's timestamp. Timers are rows, too: see Owner.SetTimer. A timer fires by a
// tick, a record whose timestamp decides what is due.
package rows
