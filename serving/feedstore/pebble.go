package feedstore

import (
	"bytes"
	"io"
	"log/slog"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/bloom"

	"github.com/smartfeed/smartfeed/internal/stored"
)

// options returns every setting of Pebble that differs from its defaults.
func options(cfg Config, cache *pebble.Cache, log *slog.Logger) *pebble.Options {
	o := &pebble.Options{
		Cache:                       cache,
		Merger:                      greatest(),
		FormatMajorVersion:          pebble.FormatNewest, // no older program reads these directories
		MemTableSize:                uint64(cfg.MemtableBytes),
		MemTableStopWritesThreshold: 4,   // four memtables limit the memory; then writers wait
		MaxOpenFiles:                500, // below the usual limit of 1024 descriptors, with room for sockets
		Logger:                      stored.Logger(log, "feed store"),
	}
	o.ApplyCompressionSettings(func() pebble.DBCompressionSettings { return pebble.DBCompressionFastest })
	for i := range o.Levels {
		// 10 bits per key: one in a hundred lookups of an absent card or edge reads a block.
		o.Levels[i].FilterPolicy = bloom.FilterPolicy(10)
	}
	return o
}

// greatest is the merge rule of every row: of all values written to one key, the greatest by bytes is the value of the row.
// The rule is commutative, associative and idempotent. Therefore order and repetition do not matter, and a write reads
// nothing.
func greatest() *pebble.Merger {
	return &pebble.Merger{
		Name: "smartfeed.greatest", // stored in the files: a database opens only with the merger it was written with
		Merge: func(_, value []byte) (pebble.ValueMerger, error) {
			return &register{value: bytes.Clone(value)}, nil
		},
	}
}

type register struct{ value []byte }

// MergeNewer merges a later value. The time of the write does not matter.
func (r *register) MergeNewer(value []byte) error {
	if bytes.Compare(value, r.value) > 0 {
		r.value = append(r.value[:0], value...) // value is only valid during the call
	}
	return nil
}

// MergeOlder merges an earlier value.
func (r *register) MergeOlder(value []byte) error { return r.MergeNewer(value) }

// Finish returns the greatest value.
func (r *register) Finish(bool) ([]byte, io.Closer, error) { return r.value, nil, nil }
