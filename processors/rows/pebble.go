package rows

import (
	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/bloom"
	"github.com/cockroachdb/pebble/v2/sstable"

	"github.com/smartfeed/smartfeed/internal/stored"
)

// options are all settings of Pebble.
func (s *store) options(shared *Shared) *pebble.Options {
	o := &pebble.Options{
		FS:                 s.fs,
		FormatMajorVersion: pebble.FormatNewest,              // a store is rebuilt, never handed to an older program
		Cache:              shared.cache,                     // one for the process: memory does not grow with the partitions
		MemTableSize:       shared.memTable(s.who.Partition), // the process's budget, split
		// The changelog is the write-ahead log. What a crash takes from memory, at most two memtables, is read again.
		DisableWAL:                  true,
		MemTableStopWritesThreshold: 2,        // one filling, one being flushed: then writing waits, memory is bounded
		L0CompactionThreshold:       8,        // layers of overlapping rows that a scan may have to look into: at 4, importing costs a third more …
		L0StopWritesThreshold:       24,       // … and where writing waits for compaction
		LBaseMaxBytes:               64 << 20, // a partition is small: keep few levels
		MaxOpenFiles:                1000,     // descriptors, a store
		CompactionConcurrencyRange:  func() (int, int) { return 1, 2 },
		Logger:                      stored.Logger(s.log.With("dir", s.dir), "store"),
		EventListener: &pebble.EventListener{
			BackgroundError: s.failed, // Pebble's own lock is held
			DataCorruption:  func(info pebble.DataCorruptionInfo) { s.damaged(info.Details) },
		},
	}
	o.Experimental.CompactionScheduler = &compacting{all: shared.compactions} // bounded for the process, too
	for i := range o.Levels {
		o.Levels[i].BlockSize = 8 << 10                   // rows are short, scans read runs of them
		o.Levels[i].FilterPolicy = bloom.FilterPolicy(10) // most gets are of rows that are not there (1 % false positives)
		o.Levels[i].Compression = func() *sstable.CompressionProfile { return sstable.SnappyCompression }
	}
	return o
}
