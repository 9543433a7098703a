package schemas

import "time"

// Micros is a moment in microseconds since 1970-01-01 UTC, the resolution of every event, row and feed entry.
type Micros int64

// MicrosOf floors t to microseconds.
func MicrosOf(t time.Time) Micros { return Micros(t.UnixMicro()) }

// Time returns the moment in UTC.
func (m Micros) Time() time.Time { return time.UnixMicro(int64(m)).UTC() }
