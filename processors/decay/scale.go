package decay

import (
	"fmt"
	"math"
	"time"

	"github.com/smartfeed/smartfeed/internal/packed"
	"github.com/smartfeed/smartfeed/schemas"
)

// Scale is the unit of sums: a weight w at time t adds w · 2^(t/half-life) · e^origin, with t counted from 1970. The origin
// is 0 until the half-life changes.
type Scale struct {
	halfLife time.Duration
	origin   float64
}

// NewScale returns the scale of sums whose half-life has never changed. halfLife is at least one microsecond.
func NewScale(halfLife time.Duration) Scale { return Scale{halfLife: halfLife} }

// WithHalfLife returns a scale with another half-life, valid from now. At now, every sum has the same value on both scales,
// so neither the sums nor their order change. Weights that are added later decay by the new half-life, even if their times
// are older.
func (s Scale) WithHalfLife(now schemas.Micros, halfLife time.Duration) Scale {
	return Scale{halfLife: halfLife, origin: s.logUnit(now) - NewScale(halfLife).logUnit(now)}
}

// logUnit returns the logarithm of the addition of a weight of 1 at a time.
func (s Scale) logUnit(at schemas.Micros) float64 {
	return float64(at)/1e6/s.halfLife.Seconds()*math.Ln2 + s.origin
}

// Getter reads rows.
type Getter interface {
	Get(row []byte) ([]byte, error)
}

// Rows stores the scale with the sums, for example in the common rows of a partition.
type Rows interface {
	Getter
	Put(row, value []byte)
}

// scaleRow is the name of the row that holds the scale.
const scaleRow = "scale"

// UpdateScale returns the scale that is stored in the rows. If the stored half-life differs from halfLife, it switches to
// halfLife at now and stores the new scale. If no scale is stored, it assumes that existing sums have halfLife, and stores
// that scale.
func UpdateScale(rows Rows, now schemas.Micros, halfLife time.Duration) (Scale, error) {
	s, found, err := read(rows)
	switch {
	case err != nil || found && s.halfLife == halfLife:
		return s, err
	case found:
		s = s.WithHalfLife(now, halfLife)
	default:
		s = NewScale(halfLife)
	}
	rows.Put([]byte(scaleRow), packed.Encode(&s))
	return s, nil
}

// LoadScale returns the scale that UpdateScale stored, or the scale of halfLife if none is stored.
func LoadScale(rows Getter, halfLife time.Duration) (Scale, error) {
	s, found, err := read(rows)
	if err == nil && !found {
		s = NewScale(halfLife)
	}
	return s, err
}

func read(rows Getter) (s Scale, found bool, err error) {
	value, err := rows.Get([]byte(scaleRow))
	if err != nil || value == nil {
		return s, false, err
	}
	if s, err = packed.Decode[Scale](value); err != nil {
		return s, false, fmt.Errorf("read row %q: %w", scaleRow, err)
	}
	return s, true, nil
}

// Pack implements packed.Row.
func (s *Scale) Pack(p *packed.Packer) {
	p.Version(1)
	packed.Int(p, &s.halfLife)
	packed.Float(p, &s.origin)
}
