package rows

import (
	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/bloom"
	"github.com/cockroachdb/pebble/v2/sstable"

	"github.com/smartfeed/smartfeed/internal/stored"
)

// options returns all settings of Pebble.
func (s *store) options(shared *Shared) *pebble.Options {
	o := &pebble.Options{
		FS:                 s.fs,
		FormatMajorVersion: pebble.FormatNewest,                   // a store is rebuilt, never read by an older program
		Cache:              shared.cache,                          // shared by the process, so memory does not grow with the partitions
		MemTableSize:       shared.memTable(s.identity.Partition), // a share of the process's budget
		// The changelog serves as the write-ahead log. Rows that a crash removes from memory, at most two memtables, are
		// read again.
		DisableWAL:                  true,
		MemTableStopWritesThreshold: 2,        // one is filled and one is flushed; further writes wait, so memory is bounded
		L0CompactionThreshold:       8,        // overlapping tables that a scan may have to read; with 4, bulk writes cost a third more
		L0StopWritesThreshold:       24,       // from here on, writes wait for compaction
		LBaseMaxBytes:               64 << 20, // partitions are small: keep few levels
		MaxOpenFiles:                1000,     // file descriptors per store
		CompactionConcurrencyRange:  func() (int, int) { return 1, 2 },
		Logger:                      stored.Logger(s.log.With("dir", s.dir), "store"),
		EventListener: &pebble.EventListener{
			BackgroundError: s.backgroundError, // called with Pebble's lock held
			DataCorruption:  func(info pebble.DataCorruptionInfo) { s.damaged(info.Details) },
		},
	}
	o.Experimental.CompactionScheduler = &compacting{all: shared.compactions} // limited for the process, too
	for i := range o.Levels {
		o.Levels[i].BlockSize = 8 << 10                   // rows are short, and scans read runs of them
		o.Levels[i].FilterPolicy = bloom.FilterPolicy(10) // most gets are for missing rows (1 % false positives)
		o.Levels[i].Compression = func() *sstable.CompressionProfile { return sstable.SnappyCompression }
	}
	return o
}
