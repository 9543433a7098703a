package feature

import (
	"bytes"
	"encoding/binary"
	"io"

	"github.com/cockroachdb/pebble/v2"

	"github.com/smartfeed/smartfeed/schemas"
)

// rankBytes is how long the rank of a pin's row is, the version by which the newer of two is known.
const rankBytes = 8

// appendRank starts the value of a pin's row.
func appendRank(dst []byte, v schemas.Version) []byte {
	return binary.BigEndian.AppendUint64(dst, uint64(v)^1<<63)
}

// newestMerger keeps of all values put under a key the one with the highest rank, and of equal ranks the greater in
// bytes: writers need not read, and any order and repetition ends in the same row.
func newestMerger() *pebble.Merger {
	return &pebble.Merger{
		Name: "smartfeed.feature.newest", // stored in the files: another name refuses to open them
		Merge: func(_, value []byte) (pebble.ValueMerger, error) {
			return &newest{value: bytes.Clone(value)}, nil
		},
	}
}

type newest struct{ value []byte }

// MergeNewer takes another value put under the key.
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
