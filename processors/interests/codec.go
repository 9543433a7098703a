package interests

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"

	"github.com/smartfeed/smartfeed/processors/decay"
	"github.com/smartfeed/smartfeed/processors/rows"
	"github.com/smartfeed/smartfeed/schemas"
)

// format is the first byte of every row's value. Another one is another layout. Behind it numbers are varints, sums and
// weights eight bytes (IEEE 754, big-endian), and texts and lists start with their length: an action reads and writes
// eight rows and more, and as JSON these were most of what the group cost.
const format = 1

var errTorn = errors.New("cut short, or not of a known form")

// record is what a row holds.
type record[T any] interface {
	*T
	appendTo(b []byte) []byte
	readFrom(r *reader)
}

func encode[T any, R record[T]](rec R) []byte {
	return rec.appendTo(append(make([]byte, 0, 128), format))
}

// decode is the reverse of encode. Bytes that encode did not write, every truncation among them, are an error.
func decode[T any, R record[T]](value []byte) (rec T, err error) {
	r := reader{rest: value}
	if r.byte() != format {
		return rec, errTorn
	}
	R(&rec).readFrom(&r)
	if r.torn || len(r.rest) > 0 {
		return rec, errTorn
	}
	return rec, nil
}

// get reads a row; the zero value if there is none.
func get[T any, R record[T]](own getter, name []byte) (rec T, found bool, err error) {
	value, err := own.Get(name)
	if err != nil || value == nil {
		return rec, false, err
	}
	if rec, err = decode[T, R](value); err != nil {
		return rec, false, fmt.Errorf("read row %q: %w", name, err)
	}
	return rec, true, nil
}

func put[T any, R record[T]](own rows.Owner, name []byte, rec R) error {
	return own.Put(name, encode[T](rec))
}

// number is a row that is a number.
type number int64

func (n *number) appendTo(b []byte) []byte { return binary.AppendVarint(b, int64(*n)) }
func (n *number) readFrom(r *reader)       { *n = number(r.varint()) }

func (s *saying) appendTo(b []byte) []byte {
	b = binary.AppendVarint(b, int64(s.Version))
	b = appendText(b, s.Author)
	b = binary.AppendVarint(b, int64(s.Created))
	b = appendList(b, s.Interests, appendText)
	b = appendList(b, s.Terms, appendText)
	return appendFlag(b, s.Deleted)
}

func (s *saying) readFrom(r *reader) {
	s.Version = schemas.Version(r.varint())
	s.Author = text[schemas.UserID](r)
	s.Created = schemas.Micros(r.varint())
	s.Interests = readList(r, text[schemas.InterestID])
	s.Terms = readList(r, text[string])
	s.Deleted = r.flag()
}

func (v *visitor) appendTo(b []byte) []byte {
	b = appendText(b, v.Source)
	b = binary.AppendVarint(b, int64(v.Time))
	b = appendFlag(b, v.Liked)
	return binary.AppendVarint(b, int64(v.Forget))
}

func (v *visitor) readFrom(r *reader) {
	v.Source = text[schemas.Source](r)
	v.Time = schemas.Micros(r.varint())
	v.Liked = r.flag()
	v.Forget = schemas.Micros(r.varint())
}

func (l *liking) appendTo(b []byte) []byte {
	b = appendFloat(b, float64(l.Strength))
	return appendList(b, l.Evidence, func(b []byte, e schemas.Evidence) []byte {
		b = appendText(appendText(b, e.Pin), e.Verb)
		return binary.AppendVarint(appendFloat(b, e.Weight), int64(e.Time))
	})
}

func (l *liking) readFrom(r *reader) {
	l.Strength = decay.Sum(r.float())
	l.Evidence = readList(r, func(r *reader) schemas.Evidence {
		return schemas.Evidence{
			Pin: text[schemas.PinID](r), Verb: text[schemas.Verb](r), Weight: r.float(), Time: schemas.Micros(r.varint()),
		}
	})
}

func (t *term) appendTo(b []byte) []byte {
	b = binary.AppendVarint(binary.AppendVarint(binary.AppendVarint(b, t.Pins), t.Over), t.People)
	return appendFloat(b, float64(t.Recent))
}

func (t *term) readFrom(r *reader) {
	t.Pins, t.Over, t.People = r.varint(), r.varint(), r.varint()
	t.Recent = decay.Sum(r.float())
}

func appendText[T ~string](b []byte, s T) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

func appendFlag(b []byte, set bool) []byte {
	if set {
		return append(b, 1)
	}
	return append(b, 0)
}

func appendFloat(b []byte, x float64) []byte {
	return binary.BigEndian.AppendUint64(b, math.Float64bits(x))
}

func appendList[T any](b []byte, list []T, add func([]byte, T) []byte) []byte {
	b = binary.AppendUvarint(b, uint64(len(list)))
	for _, x := range list {
		b = add(b, x)
	}
	return b
}

// reader takes values from the front of rest. Once torn, it hands out zero values.
type reader struct {
	rest []byte
	torn bool
}

// take returns the next n bytes, none if there are fewer.
func (r *reader) take(n uint64) []byte {
	if r.torn || n > uint64(len(r.rest)) {
		r.torn, r.rest = true, nil
		return nil
	}
	b := r.rest[:n]
	r.rest = r.rest[n:]
	return b
}

func (r *reader) byte() byte {
	if b := r.take(1); b != nil {
		return b[0]
	}
	return 0
}

func (r *reader) flag() bool {
	b := r.byte()
	r.torn = r.torn || b > 1
	return b == 1
}

func (r *reader) float() float64 {
	if b := r.take(8); b != nil {
		return math.Float64frombits(binary.BigEndian.Uint64(b))
	}
	return 0
}

func (r *reader) varint() int64 {
	v, n := binary.Varint(r.rest)
	return whole(r, v, n)
}

func (r *reader) length() uint64 {
	v, n := binary.Uvarint(r.rest)
	return whole(r, v, n)
}

// whole takes the n bytes that v was read from; n of 0 or less says that there was none.
func whole[T int64 | uint64](r *reader, v T, n int) T {
	if n <= 0 {
		r.torn, r.rest = true, nil
		return 0
	}
	r.take(uint64(n))
	return v
}

func text[T ~string](r *reader) T { return T(r.take(r.length())) }

func readList[T any](r *reader, item func(*reader) T) []T {
	n := r.length()
	if n == 0 || n > uint64(len(r.rest)) { // an item takes a byte at least
		r.torn = r.torn || n > 0
		return nil
	}
	list := make([]T, 0, n)
	for range n {
		list = append(list, item(r))
	}
	return list
}
