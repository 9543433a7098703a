package stored

import (
	"bytes"
	"io"

	"github.com/cockroachdb/pebble/v2"
)

// Greatest returns a merge operator: the value of a row is the bytewise greatest of all values written to its key. The
// operator is commutative, associative and idempotent. Therefore order and repetition of writes do not matter, and a
// write needs no read. Pebble stores the name in the files, and opens them only with a merger of that name.
func Greatest(name string) *pebble.Merger {
	return &pebble.Merger{
		Name:  name,
		Merge: func(_, value []byte) (pebble.ValueMerger, error) { return &greatest{bytes.Clone(value)}, nil },
	}
}

type greatest struct{ value []byte }

// MergeNewer merges a later value.
func (g *greatest) MergeNewer(value []byte) error {
	if bytes.Compare(value, g.value) > 0 {
		g.value = append(g.value[:0], value...) // value is only valid during the call
	}
	return nil
}

// MergeOlder merges an earlier value.
func (g *greatest) MergeOlder(value []byte) error { return g.MergeNewer(value) }

// Finish returns the greatest value.
func (g *greatest) Finish(bool) ([]byte, io.Closer, error) { return g.value, nil, nil }
