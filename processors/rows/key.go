package rows

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/smartfeed/smartfeed/internal/packed"
)

// A row's key, in the changelog and in the local store, is owner 0x00 row. Owners are not empty, so keys with an empty owner
// are reserved for this package. The names of reserved rows start with one of these bytes.
const (
	appliedKind = 'a' // 'a' topic → topic id (16 bytes) and offset (8) of the last applied record of an input
	timerKind   = 't' // 't' time (8) owner 0x00 name → empty: a timer
	fenceKind   = 'f' // only in the changelog: every new owner of a partition writes one
	controlKind = 'c' // never stored: stands for a transaction marker during recovery
	offsetKind  = 'o' // only in the local store: offset (8) of the last changelog record that it holds, and when it was complete (8)
	emitsKind   = 'v' // 'v' topic → 1 byte: whether the partition emits for an input, see generation.go
	markerKind  = 'm' // only in the local store: the identity of the store
)

const separator = 0x00

// ParseKey splits the key of a changelog record into its owner, which is empty for a reserved row, and its row. It returns false for
// a malformed key.
func ParseKey(key []byte) (owner, row []byte, ok bool) {
	owner, row, _ = bytes.Cut(key, []byte{separator})
	return owner, row, len(row) > 0
}

func reservedKey(name ...byte) []byte { return append([]byte{separator}, name...) }

// Name returns the name of the row of an id.
func Name[T ~string | ~[]byte](kind byte, id T) []byte {
	return append(append(make([]byte, 0, 1+len(id)), kind), id...)
}

// isLocal reports whether a key is not part of the table.
func isLocal(key string) bool {
	if len(key) < 2 || key[0] != separator {
		return false
	}
	return key[1] == fenceKind || key[1] == controlKind || key[1] == offsetKind || key[1] == markerKind
}

// position is the value of an applied row.
type position struct {
	topic  [16]byte // a recreated topic of the same name has another id
	offset int64
}

func (p position) append(b []byte) []byte {
	return binary.BigEndian.AppendUint64(append(b, p.topic[:]...), uint64(p.offset))
}

func parsePosition(value []byte) (position, error) {
	var p position
	if len(value) != len(p.topic)+8 {
		return p, fmt.Errorf("read applied row: %d bytes, want %d", len(value), len(p.topic)+8)
	}
	copy(p.topic[:], value)
	p.offset = int64(binary.BigEndian.Uint64(value[len(p.topic):]))
	return p, nil
}

// timerName returns a name that sorts by time, owner, name. The sign bit is flipped to sort times before 1970 first.
func timerName(micros int64, owner string, name []byte) []byte {
	b := make([]byte, 0, 1+8+len(owner)+1+len(name))
	b = append(b, timerKind)
	b = packed.AppendOrdered(b, micros)
	b = append(b, owner...)
	b = append(b, separator)
	return append(b, name...)
}

type timer struct {
	micros int64
	owner  string
	name   []byte
}

func (t timer) time() time.Time { return time.UnixMicro(t.micros).UTC() }

func parseTimer(row []byte) (timer, error) {
	const head = 1 + 8
	if len(row) < head {
		return timer{}, errors.New("read timer row: too short")
	}
	owner, name, found := bytes.Cut(row[head:], []byte{separator})
	if !found {
		return timer{}, errors.New("read timer row: no zero byte after the owner")
	}
	micros := packed.FirstOrdered[int64](row[1:head])
	return timer{micros: micros, owner: string(owner), name: bytes.Clone(name)}, nil
}

// microsUp rounds up, because a timer must not fire before its time.
func microsUp(t time.Time) int64 {
	m := t.UnixMicro()
	if t.Nanosecond()%1000 != 0 && m < math.MaxInt64 {
		m++
	}
	return m
}

// prefixEnd returns the smallest key above all keys that start with prefix, or nil if there is none.
func prefixEnd(prefix []byte) []byte {
	for i := len(prefix) - 1; i >= 0; i-- {
		if prefix[i] != 0xff {
			end := bytes.Clone(prefix[:i+1])
			end[i]++
			return end
		}
	}
	return nil
}
