// Package rows runs a Goka group with exactly-once processing. The state of a group is many small, ordered rows per owner.
//
//	key     owner 0x00 row; the owner determines the partition (topics.Partition). A partition also has rows that all of its
//	        owners share
//	table   <group>-table: the changelog, from which any process can recover every partition
//	local   one Pebble store per partition; after a crash, it is at most two memtables behind the changelog
//	in      the group's inputs, and <group>-ticks if it has timers
//	out     its outputs, dead-letters, its own loop and ticks
//
// A Group literal declares the inputs with their callbacks, the topics that these emit to, and the timer callback. A Runner
// runs the group in this process, together with other processes of the same consumer group. A View reads the rows of the
// partitions that this process owns.
//
// # Guarantees
//
// A callback's rows, its output records and the applied offset of its input record are committed in one Kafka transaction:
// all of them or none, exactly once. This holds for crashes, stops and rebalances, so callbacks need not be idempotent.
// Every reader of these topics must use isolation.level=read_committed. The committed offsets of the consumer group are
// only for external tools. After a restart, a group resumes at the offsets that its rows contain.
//
// The embedded broker has a weaker guarantee: if it is killed between two markers of one transaction, it can apply half of
// the transaction.
//
// # Processing
//
// A callback changes only memory: rows, records, and the applied offset. It reads the pending batch, the batch in
// flight and the local store as one. Each partition has a committer, which writes the pending batch in one transaction
// and then to the local store. After an idle period, two commits can start immediately. Further commits start
// Config.CommitInterval apart on average. While a batch is in flight, the next one fills. Items of many callbacks for one
// partition can be sent as one record: see Gathering.
//
// Each partition has its own transactional id. A new owner initializes it before Goka requests the end of the changelog.
// This blocks all later writes of the previous owner and aborts its open transaction. The new owner then writes a fence
// record. Without it, the changelog could end with an aborted transaction that a crashed broker left without a marker, and
// recovery would never end. Goka recovers the rows through a consumer that delivers transaction markers, because it waits
// for the last record before the end.
//
// If the outcome of a commit is unknown, the partition and Run stop. After the restart, the initialization of the
// transactional id commits or aborts the transaction, and recovery reads the result. The local store is written only
// after Kafka, and without a write-ahead log, because the changelog serves as one. A store is deleted and rebuilt if it
// is damaged or belongs to another topic, partition or cluster. The same happens if it was offline for so long that the
// changelog may have dropped deletions.
//
// # Errors
//
//	bad record          a *schemas.BadRecordError: the record cannot be decoded, the callback rejects it, or it exceeds a limit.
//	                    Its effect is undone, it is sent to the dead-letter topic and counted, and the partition continues
//	oversized batch     a batch beyond topics.MaxDecompressedBytes, MaxDecodedBytes or MaxHeaders, or a malformed one, is one bad
//	                    record
//	retried record      the retry of a dead letter of one group is skipped by the other groups that read the topic, unless
//	                    producers write the topic
//	any other error     undoes the record, commits the records before it, and is returned by Run. The supervisor calls Run
//	                    again, which processes the record again
//	panic               drops the pending batch, and Run returns an error with the text and place of the panic
//	*FatalError         from Run: calling Run again does not help, and the error says what to do first. Causes: an input that was
//	                    recreated, ends before the applied offset, or starts after it; a changelog that lost records
//	full disk           a *DiskError, also if the disk is read-only or broken. Nothing is committed until the disk accepts writes
//	                    again
//
// # Limits
//
// A batch closes at Config.MaxBatchBytes or MaxBatchRecords. Each partition has at most two batches. MaxRecordWrites,
// MaxRecordWriteBytes and MaxValueBytes limit what one record may write; a record beyond them is a bad record. The
// block cache, the memtables, the memory for recently read rows and for filters of existing rows, and the commit rate are limits of the
// process, not of a partition: see Shared. A row name and its owner together have at most 4 KiB.
//
// # Reserved rows
//
// Deletion. What deletes each kind of reserved row, by the first byte of their names:
//
//	'a'  applied offset of an input    never: one for each input and partition
//	't'  timers                        event: they fire, or the callback drops them
//	'v'  whether an input emits        never: one for each input and partition of a generation
//	'f'  fences                        event: compaction of the changelog; never in a store
//	'c'  transaction markers           event: the end of recovery; only in memory
//	'o'  offset of the local store     event: the store is removed; one for each store
//	'm'  identity of the local store   event: the store is removed; one for each store
//
// # Time
//
// The only current time in a callback is the timestamp of its record. Timers are rows: see Owner.SetTimer. A tick record
// triggers them, and its timestamp decides which timers are due.
package rows
