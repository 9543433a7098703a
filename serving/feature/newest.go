package feature

import (
	"bytes"
	"encoding/binary"
	"io"

	"github.com/cockroachdb/pebble/v2"

	"github.com/smartfeed/smartfeed/schemas"
)

// rankBytes is the length of a rank: the version at the start of a pin's row, by which the newer row wins.
const rankBytes = 8

// appendRank appends the rank of a pin's row, and the version byte of the row.
func appendRank(dst []byte, v schemas.Version) []byte {
	return append(binary.BigEndian.AppendUint64(dst, uint64(v)^1<<63), rowVersion)
}

// newestMerger keeps the value with the highest rank of a key, and of equal ranks the greater bytes. Writers need no
// read, and any order and repetition ends in the same row.
func newestMerger() *pebble.Merger {
	return &pebble.Merger{
		Name: "smartfeed.feature.newest", // stored in the files: they cannot be opened with another name
		Merge: func(_, value []byte) (pebble.ValueMerger, error) {
			return &newest{value: bytes.Clone(value)}, nil
		},
	}
}

type newest struct{ value []byte }

// MergeNewer merges a newer value of the key.
func (n *newest) MergeNewer(value []byte) error {
	if bytes.Compare(value, n.value) > 0 {
		n.value = append(n.value[:0], value...)
	}
	return nil
}

// MergeOlder is MergeNewer: the order of arrival does not matter.
func (n *newest) MergeOlder(value []byte) error { return n.MergeNewer(value) }

// Finish returns the greatest value.
func (n *newest) Finish(bool) ([]byte, io.Closer, error) { return n.value, nil, nil }
