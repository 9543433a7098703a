package schemas

import "time"

// Micros is a time in microseconds since 1970-01-01 UTC, the resolution of every event, row and feed entry.
type Micros int64

// MicrosIn returns a duration in the unit of event times.
func MicrosIn(d time.Duration) Micros { return Micros(d / time.Microsecond) }

// MicrosOf floors t to microseconds.
func MicrosOf(t time.Time) Micros { return Micros(t.UnixMicro()) }

// Writable returns the nearest time that RFC 3339 can represent, from the year 1 to the end of the year 9999. Event times
// have no lower bound, and external systems may send any time.
func (m Micros) Writable() Micros {
	const yearOne, yearTenThousand = -62135596800 * 1e6, 253402300800 * 1e6
	return min(max(m, yearOne), yearTenThousand-1)
}

// Time returns the time in UTC.
func (m Micros) Time() time.Time { return time.UnixMicro(int64(m)).UTC() }
