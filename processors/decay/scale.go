package decay

import (
	"encoding/binary"
	"fmt"
	"math"
	"time"

	"github.com/smartfeed/smartfeed/internal/packed"
	"github.com/smartfeed/smartfeed/schemas"
)

// Scale is what sums are measured by: a weight w at time t adds w · 2^(t/half-life) · e^origin, t being counted from 1970.
// The origin is 0 until the half-life changes.
type Scale struct {
	halfLife time.Duration
	origin   float64
}

// NewScale returns the scale of sums whose half-life has always been the same; it is a microsecond at least.
func NewScale(halfLife time.Duration) Scale { return Scale{halfLife: halfLife} }

// From returns the scale on which the half-life is another one from a time on. What a sum was worth then it is worth on both,
// so that neither sums nor their order change. A weight that comes later counts by the new half-life, however old it is.
func (s Scale) From(now schemas.Micros, halfLife time.Duration) Scale {
	return Scale{halfLife: halfLife, origin: s.one(now) - NewScale(halfLife).one(now)}
}

// one is the logarithm of what a weight of 1 at a time adds.
func (s Scale) one(at schemas.Micros) float64 {
	return float64(at)/1e6/s.halfLife.Seconds()*math.Ln2 + s.origin
}

// Getter reads rows.
type Getter interface {
	Get(row []byte) ([]byte, error)
}

// Rows are the rows beside which sums are kept, such as the common ones of a partition.
type Rows interface {
	Getter
	Put(row, value []byte) error
}

// scaleRow is the name of the row that has the scale.
const scaleRow = "scale"

// Keep returns the scale of the sums that are kept beside a row that says so. With another half-life than it had, the row
// says so from now on. Without a row the sums, if there are any, are taken for those of halfLife, and there is one.
func Keep(beside Rows, now schemas.Micros, halfLife time.Duration) (Scale, error) {
	s, found, err := read(beside)
	switch {
	case err != nil || found && s.halfLife == halfLife:
		return s, err
	case found:
		s = s.From(now, halfLife)
	default:
		s = NewScale(halfLife)
	}
	return s, beside.Put([]byte(scaleRow), s.encode())
}

// Kept returns the scale that Keep has kept; without any, that of halfLife.
func Kept(beside Getter, halfLife time.Duration) (Scale, error) {
	s, found, err := read(beside)
	if err == nil && !found {
		s = NewScale(halfLife)
	}
	return s, err
}

func read(beside Getter) (s Scale, found bool, err error) {
	value, err := beside.Get([]byte(scaleRow))
	if err != nil || value == nil {
		return s, false, err
	}
	if s, err = decode(value); err != nil {
		return s, false, fmt.Errorf("read row %q: %w", scaleRow, err)
	}
	return s, true, nil
}

// formatScale is the first byte of the row. Another one is another layout.
const formatScale = 1

// encode returns format, half-life in nanoseconds, origin.
func (s Scale) encode() []byte {
	return packed.AppendFloat(binary.AppendVarint([]byte{formatScale}, int64(s.halfLife)), s.origin)
}

// decode is the reverse of encode.
func decode(value []byte) (Scale, error) {
	r := packed.NewReader(value)
	if r.Byte() != formatScale {
		return Scale{}, packed.ErrTorn
	}
	s := Scale{halfLife: time.Duration(r.Varint()), origin: r.Float()}
	return s, r.End()
}
