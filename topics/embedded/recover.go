package embedded

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
)

// This file, with partition.go and producers.go, knows how kfake lays out its directory (format version 1, as of the
// version in go.mod; another format is left to kfake itself). It prepares a directory after a crash, for four reasons:
//
//   - Kfake ends a transaction by writing its marker to one partition after the other. Killed in between, it would keep
//     the transaction in some partitions and drop it in others.
//   - It takes a transaction that was open for aborted and writes no marker. After a second crash, the producer's next
//     commit would end that one too: what was aborted would come back.
//   - After a clean close it goes on with the transactions that are open, once: a crash later it has forgotten them, and
//     takes those in partitions that have not grown since for committed.
//   - Without a snapshot of a partition, which only a clean close writes, it reads the whole log into memory at once.
//
// So every partition that has grown since its snapshot, or was closed with a transaction open that kfake will not go on
// with, is read once, batch by batch. A transaction that is open at the
// end gets its marker: a commit if it has one in any other partition, else an abort. Before, pids.log gives the producer
// its next epoch, as kfake's own replay does: who lives on is fenced. The snapshots are written when every partition has
// its markers: one that has a snapshot is read no more, and its marker says how the others' transactions end.

// recoverDir prepares the broker's directory for kfake. It can be killed and run again at any point.
func recoverDir(dir string, d disk) error {
	var meta struct{ Version int }
	if found, err := readJSON(filepath.Join(dir, "meta.json"), &meta); err != nil || !found || meta.Version != formatVersion {
		return err // a new directory has none, and one of another format is kfake's own affair
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
	ends := settle(logs)
	if err := endProducers(filepath.Join(dir, "pids.log"), ends, d); err != nil { // first: who lives on must not go on where the markers stand
		return fmt.Errorf("write pids.log: %w", err)
	}
	for _, l := range logs {
		if err := l.mark(ends, d); err != nil {
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

// txn is one transaction: a producer takes a new epoch for each.
type txn struct {
	pid   int64
	epoch int16
}

func (t txn) compare(u txn) int {
	return cmp.Or(cmp.Compare(t.pid, u.pid), cmp.Compare(t.epoch, u.epoch))
}

// settle decides about every transaction that is open somewhere: true, it is to be committed.
func settle(logs []*partitionLog) map[txn]bool {
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

// wasCommitted says whether the commit of a transaction had begun. A log in which it has more than one end, or has one and
// is open again, is of a producer that does not take a new epoch for each transaction (before KIP-890): nothing tells its
// commits from those of earlier ones.
func wasCommitted(logs []*partitionLog, t txn) bool {
	begun := false
	for _, l := range logs {
		n := l.ends[t]
		if o, ok := l.open[t.pid]; n.all > 1 || n.all == 1 && ok && o.epoch == t.epoch {
			return false
		}
		begun = begun || n.commits == 1
	}
	return begun
}

// formatVersion is the one of kfake's files that is known here.
const formatVersion = 1
