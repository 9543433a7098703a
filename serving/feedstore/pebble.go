package feedstore

import (
	"log/slog"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/bloom"

	"github.com/smartfeed/smartfeed/internal/stored"
)

// options returns every setting of Pebble that differs from its defaults.
func options(cfg Config, cache *pebble.Cache, log *slog.Logger) *pebble.Options {
	o := &pebble.Options{
		Cache:                       cache,
		Merger:                      stored.Greatest("smartfeed.greatest"),
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
