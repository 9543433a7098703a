package objects

import (
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
			m.weight *= decay.Factor(m.time, at, halfLife)
		}
		m.time = at
	} else {
		weight = decay.Factor(at, m.time, halfLife)
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

// Pack implements packed.Row.
func (m *mean) Pack(p *packed.Packer) {
	p.Version(2)
	packed.Int(p, &m.time)
	packed.Float(p, &m.weight)
	packed.Items(p, &m.of, packed.Float[float64])
}
