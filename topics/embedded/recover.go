package embedded

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
)

// This file, partition.go and producers.go depend on the layout of kfake's directory: format version 1, as of the version
// in go.mod. Other formats are left to kfake. They prepare a directory after a crash, for four reasons:
//
//   - kfake ends a transaction by writing its marker to one partition after the other. After a kill in between, it would
//     keep the transaction in some partitions and drop it in others.
//   - kfake treats an open transaction as aborted, but writes no marker. After a second crash, the producer's next commit
//     would end that transaction, too: aborted records would reappear.
//   - After a clean close, kfake resumes open transactions, but only once. After a later crash it has forgotten them, and
//     treats those in partitions that have not grown since as committed.
//   - Without a snapshot of a partition, which only a clean close writes, kfake reads the whole log into memory at once.
//
// Recovery therefore reads a partition, batch by batch, in two cases: if it has grown since its snapshot, or if it was
// closed with an open transaction that kfake will not resume. The steps are:
//
//   - pids.log assigns the next epoch to each producer with an open transaction, as kfake's own replay does. A producer
//     that is still running is fenced.
//   - Each open transaction gets its marker: a commit if any other partition has a commit marker for it, otherwise an
//     abort.
//   - When every partition has its markers, the snapshots are written. They come last: recovery no longer reads a partition
//     with a snapshot, but needs its markers to decide how the same transaction ends in other partitions.

// recoverDir prepares the broker's directory for kfake. It can be killed at any point and run again.
func recoverDir(dir string, d disk) error {
	var meta struct{ Version int }
	if found, err := readJSON(filepath.Join(dir, "meta.json"), &meta); err != nil || !found || meta.Version != formatVersion {
		return err // a new directory has no meta.json; kfake handles other formats itself
	}
	_, err := os.Stat(filepath.Join(dir, "session_state.json"))
	logs, err := grownLogs(filepath.Join(dir, "partitions"), err == nil)
	if err != nil {
		return err
	}
	for _, l := range logs {
		if err := l.scan(d); err != nil {
			return fmt.Errorf("read log %s: %w", l.dir, err)
		}
	}
	ends := decideEnds(logs)
	if err := endProducers(filepath.Join(dir, "pids.log"), ends, d); err != nil { // first: a running producer must not continue after the markers
		return fmt.Errorf("write pids.log: %w", err)
	}
	for _, l := range logs {
		if err := l.writeMarkers(ends, d); err != nil {
			return fmt.Errorf("end transactions in log %s: %w", l.dir, err)
		}
	}
	for _, l := range logs {
		if err := l.save(d); err != nil {
			return fmt.Errorf("prepare log %s: %w", l.dir, err)
		}
	}
	return nil
}

// txn identifies one transaction: a producer gets a new epoch for each.
type txn struct {
	pid   int64
	epoch int16
}

func (t txn) compare(u txn) int {
	return cmp.Or(cmp.Compare(t.pid, u.pid), cmp.Compare(t.epoch, u.epoch))
}

// decideEnds decides how each open transaction ends; true means commit.
func decideEnds(logs []*partitionLog) map[txn]bool {
	ends := map[txn]bool{}
	for _, l := range logs {
		for _, o := range l.open {
			ends[txn{o.ProducerID, o.epoch}] = false
		}
	}
	for t := range ends {
		ends[t] = wasCommitted(logs, t)
	}
	return ends
}

// wasCommitted reports whether the commit of a transaction had started. It returns false if a log has several ends of the
// transaction, or one end and the transaction is open again. The producer then does not use a new epoch for each
// transaction (before KIP-890), so its commits cannot be distinguished from those of earlier transactions.
func wasCommitted(logs []*partitionLog, t txn) bool {
	started := false
	for _, l := range logs {
		n := l.ends[t]
		if o, ok := l.open[t.pid]; n.all > 1 || n.all == 1 && ok && o.epoch == t.epoch {
			return false
		}
		started = started || n.commits == 1
	}
	return started
}

// formatVersion is the supported version of kfake's files.
const formatVersion = 1
