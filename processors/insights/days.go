package insights

import (
	"bytes"
	"encoding/binary"
	"time"

	"github.com/smartfeed/smartfeed/internal/packed"
	"github.com/smartfeed/smartfeed/schemas"
)

// day is a UTC day, counted from 1970-01-01.
type day int32

func dayOf(m schemas.Micros) day {
	const length = schemas.Micros(24 * time.Hour / time.Microsecond)
	d := m / length
	if m%length < 0 {
		d--
	}
	return day(d)
}

func (d day) String() string { return time.Unix(int64(d)*86400, 0).UTC().Format(time.DateOnly) }

// weekday returns the day of the week, Monday being 0. 1970-01-01 was a Thursday.
func (d day) weekday() int { return int(((d+3)%7 + 7) % 7) }

// monday returns the first day of the week.
func (d day) monday() day { return d - day(d.weekday()) }

// start returns the first moment of the day.
func (d day) start() schemas.Micros { return schemas.Micros(d) * 86400e6 }

// KeepDays is the number of days of a user's activity that are kept, up to the newest one.
const KeepDays = 448 // 64 weeks

// activity is the days on which a user acted.
type activity struct {
	first day // the earliest ever
	last  day // the newest
	// on has a bit for each of the KeepDays up to last. The lowest bit is last itself.
	on [KeepDays / 64]uint64
}

// add records a day. A day before the kept ones only changes first.
func (a *activity) add(d day) {
	if *a == (activity{}) {
		*a = activity{first: d, last: d}
	}
	a.first = min(a.first, d)
	if d > a.last {
		a.shift(int(d - a.last))
		a.last = d
	}
	if age := int(a.last - d); age < KeepDays {
		a.on[age/64] |= 1 << (age % 64)
	}
}

// shift shifts the bits for n newer days.
func (a *activity) shift(n int) {
	old := a.on
	a.on = [KeepDays / 64]uint64{}
	for i := range old {
		at, by := i+n/64, n%64
		if at < len(a.on) {
			a.on[at] |= old[i] << by
		}
		if by > 0 && at+1 < len(a.on) {
			a.on[at+1] |= old[i] >> (64 - by)
		}
	}
}

// active reports whether the user acted on a day.
func (a *activity) active(d day) bool {
	age := int(a.last - d)
	return age >= 0 && age < KeepDays && a.on[age/64]>>(age%64)&1 == 1
}

// within returns on how many of the n days up to and including d the user acted.
func (a *activity) within(d day, n int) int {
	count := 0
	for i := range n {
		if a.active(d - day(i)) {
			count++
		}
	}
	return count
}

// before returns the newest day of activity before d, and false if none is known.
func (a *activity) before(d day) (day, bool) {
	for at := min(d-1, a.last); at > a.last-KeepDays; at-- {
		if a.active(at) {
			return at, true
		}
		if word := int(a.last-at) / 64; a.on[word] == 0 { // skip the rest of an empty word
			at = a.last - day(word*64+63)
		}
	}
	return a.first, a.first < d
}

// format is the version of the format of all rows.
const format = 1

// Pack implements packed.Row.
func (a *activity) Pack(p *packed.Packer) {
	p.Version(format)
	packed.Int(p, &a.first)
	packed.Int(p, &a.last)
	for i := range a.on {
		packed.Int(p, &a.on[i])
	}
}

// hours is the actions by weekday, Monday first, and hour.
type hours [7][24]uint64

// Pack implements packed.Row.
func (h *hours) Pack(p *packed.Packer) {
	p.Version(format)
	for d := range h {
		for at := range h[d] {
			packed.Int(p, &h[d][at])
		}
	}
}

// countHour returns a packed row of hours with one more action in an hour of the week. It changes only the bytes of that count:
// to decode and encode all 168 counts would be half of the cost of an action.
func countHour(row []byte, hour int) ([]byte, error) {
	if !bytes.HasPrefix(row, []byte{format}) {
		return nil, packed.ErrTorn
	}
	at, n, count := 0, 1, int64(0) // the first byte is the version
	for range hour + 1 {
		at += n
		if count, n = binary.Varint(row[at:]); n <= 0 {
			return nil, packed.ErrTorn
		}
	}
	counted := append(make([]byte, 0, len(row)+1), row[:at]...)
	return append(binary.AppendVarint(counted, count+1), row[at+n:]...), nil
}

func (h *hours) total() (n uint64) {
	for _, day := range h {
		for _, actions := range day {
			n += actions
		}
	}
	return n
}
