package rows

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"time"
)

// A row's key, in the changelog and in the local store, is owner 0x00 row. Owners are not empty, so the keys of the
// empty owner are free for the kernel's own rows; it calls them reserved. Their names start with one of these.
const (
	appliedKind = 'a' // 'a' topic → topic id (16 bytes) and offset (8) of the last record of an input that is applied
	timerKind   = 't' // 't' time (8) owner 0x00 name → empty: a timer
	fenceKind   = 'f' // in the changelog only: written once by every new owner of a partition
	controlKind = 'c' // nowhere: stands for a transaction marker while a table is recovered
	offsetKind  = 'o' // in the local store only: offset (8) of the last changelog record it holds, when it was complete (8)
	emitsKind   = 'v' // 'v' topic → 1 byte: whether what the records of an input emit is sent, see generation.go
	markerKind  = 'm' // in the local store only: whose store it is
)

const separator = 0x00

func reservedKey(name ...byte) []byte { return append([]byte{separator}, name...) }

func appliedName(topic string) []byte { return append([]byte{appliedKind}, topic...) }

// isLocal tells keys that are no rows of a table.
func isLocal(key string) bool {
	if len(key) < 2 || key[0] != separator {
		return false
	}
	return key[1] == fenceKind || key[1] == controlKind || key[1] == offsetKind || key[1] == markerKind
}

// position is the value of an applied row.
type position struct {
	topic  [16]byte // the topic's id: a topic made anew under the same name has another
	offset int64
}

func (p position) append(b []byte) []byte {
	return binary.BigEndian.AppendUint64(append(b, p.topic[:]...), uint64(p.offset))
}

func parsePosition(value []byte) (position, error) {
	var p position
	if len(value) != len(p.topic)+8 {
		return p, fmt.Errorf("read applied row: %d bytes", len(value))
	}
	copy(p.topic[:], value)
	p.offset = int64(binary.BigEndian.Uint64(value[len(p.topic):]))
	return p, nil
}

// timerName orders timers by time, owner, name. Micros before 1970 sort before those after: the sign bit is flipped.
func timerName(micros int64, owner string, name []byte) []byte {
	b := make([]byte, 0, 1+8+len(owner)+1+len(name))
	b = append(b, timerKind)
	b = binary.BigEndian.AppendUint64(b, uint64(micros)^(1<<63))
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
		return timer{}, errors.New("read timer row: no owner")
	}
	micros := int64(binary.BigEndian.Uint64(row[1:head]) ^ (1 << 63))
	return timer{micros: micros, owner: string(owner), name: bytes.Clone(name)}, nil
}

// micros rounds up: a timer never fires before its time.
func microsUp(t time.Time) int64 {
	m := t.UnixMicro()
	if t.Nanosecond()%1000 != 0 && m < math.MaxInt64 {
		m++
	}
	return m
}

// after returns the least key above all that start with prefix, nil if there is none.
func after(prefix []byte) []byte {
	for i := len(prefix) - 1; i >= 0; i-- {
		if prefix[i] != 0xff {
			end := bytes.Clone(prefix[:i+1])
			end[i]++
			return end
		}
	}
	return nil
}
