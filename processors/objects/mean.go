package objects

import (
	"encoding/binary"
	"math"
	"time"

	"github.com/smartfeed/smartfeed/internal/packed"
	"github.com/smartfeed/smartfeed/processors/decay"
	"github.com/smartfeed/smartfeed/schemas"
)

// mean is the decayed mean of vectors as of the newest one's time. Each vector is weighted by its remaining share. The zero
// value is the mean of no vectors.
type mean struct {
	time   schemas.Micros
	weight float64
	of     []float64
}

// add adds a vector of time at, and reports whether it did. It ignores an older vector of another length.
func (m *mean) add(v []float32, at schemas.Micros, halfLife time.Duration) bool {
	newer := at > m.time || m.weight == 0
	if len(v) != len(m.of) {
		if !newer {
			return false
		}
		*m = mean{of: make([]float64, len(v))}
	}
	weight := 1.0
	if newer {
		if m.weight > 0 {
			m.weight *= decay.Left(m.time, at, halfLife)
		}
		m.time = at
	} else {
		weight = decay.Left(at, m.time, halfLife)
	}
	m.weight += weight
	for i, x := range v {
		m.of[i] += (float64(x) - m.of[i]) * weight / m.weight
	}
	return true
}

func (m *mean) vector() []float32 {
	v := make([]float32, len(m.of))
	for i, x := range m.of {
		v[i] = float32(x)
	}
	return v
}

// formatMean is the first byte of the row. It identifies the layout.
const formatMean = 1

// encode returns format, time, weight and elements; the numbers as eight bytes each, big-endian.
func (m *mean) encode() []byte {
	b := make([]byte, 0, 17+8*len(m.of))
	b = append(b, formatMean)
	b = binary.BigEndian.AppendUint64(b, uint64(m.time))
	b = binary.BigEndian.AppendUint64(b, math.Float64bits(m.weight))
	for _, x := range m.of {
		b = binary.BigEndian.AppendUint64(b, math.Float64bits(x))
	}
	return b
}

// decodeMean is the reverse of encode. Without bytes it returns an empty mean.
func decodeMean(b []byte) (*mean, error) {
	if len(b) == 0 {
		return &mean{}, nil
	}
	if b[0] != formatMean || len(b) < 17 || len(b)%8 != 1 {
		return nil, packed.ErrTorn
	}
	m := &mean{time: schemas.Micros(binary.BigEndian.Uint64(b[1:])), weight: math.Float64frombits(binary.BigEndian.Uint64(b[9:]))}
	for rest := b[17:]; len(rest) > 0; rest = rest[8:] {
		m.of = append(m.of, math.Float64frombits(binary.BigEndian.Uint64(rest)))
	}
	return m, nil
}
