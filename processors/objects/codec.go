package objects

import (
	"encoding/binary"
	"errors"
	"math"

	"github.com/smartfeed/smartfeed/schemas"
)

// formatPin is the first byte of the state of a pin. Another one is another layout.
const formatPin = 1

var errTorn = errors.New("cut short, or not of a known form")

// encode returns the state without the id, which the owner of the row is. Numbers are varints, texts and lists start
// with their length:
//
//	format, stamp, deletedBy,
//	origin: time, id, author, quality (8 bytes IEEE 754),
//	head: board, interests, title, link,
//	kept: (time, id)…, told: followee…
func (p *pin) encode() []byte {
	b := make([]byte, 0, 512)
	b = append(b, formatPin)
	b = binary.AppendVarint(b, int64(p.stamp))
	b = appendText(b, p.deletedBy)
	b = appendMoment(b, p.origin.moment)
	b = appendText(b, p.origin.author)
	b = binary.BigEndian.AppendUint64(b, math.Float64bits(p.origin.quality))
	b = appendText(b, p.head.board)
	b = appendList(b, p.head.interests, appendText)
	b = appendText(b, p.head.title)
	b = appendText(b, p.head.link)
	b = appendList(b, p.kept, appendMoment)
	return appendList(b, p.told, appendText)
}

// decode is the reverse of encode. Bytes that encode did not write, every truncation among them, are an error.
func (p *pin) decode(value []byte) error {
	r := &reader{rest: value}
	if r.byte() != formatPin {
		return errTorn
	}
	p.stamp = schemas.Version(r.varint())
	p.deletedBy = r.text()
	p.origin.moment = readMoment(r)
	p.origin.author = schemas.UserID(r.text())
	p.origin.quality = r.float()
	p.head.board = schemas.BoardID(r.text())
	p.head.interests = readList(r, func(r *reader) schemas.InterestID { return schemas.InterestID(r.text()) })
	p.head.title = r.text()
	p.head.link = r.text()
	p.kept = readList(r, readMoment)
	p.told = readList(r, func(r *reader) schemas.Followee { return schemas.Followee(r.text()) })
	if r.torn || len(r.rest) > 0 {
		return errTorn
	}
	return nil
}

func appendText[T ~string](b []byte, s T) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

func appendMoment(b []byte, m moment) []byte {
	return appendText(binary.AppendVarint(b, int64(m.time)), m.id)
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

// take returns the next n bytes; n of them zero bytes long if there are fewer.
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

func (r *reader) float() float64 {
	if b := r.take(8); b != nil {
		return math.Float64frombits(binary.BigEndian.Uint64(b))
	}
	return 0
}

func (r *reader) varint() int64 {
	v, n := binary.Varint(r.rest)
	return value(r, v, n)
}

func (r *reader) uvarint() uint64 {
	v, n := binary.Uvarint(r.rest)
	return value(r, v, n)
}

// value takes the n bytes that v was read from; n of 0 or less says that there was none.
func value[T int64 | uint64](r *reader, v T, n int) T {
	if n <= 0 {
		r.torn, r.rest = true, nil
		return 0
	}
	r.take(uint64(n))
	return v
}

func (r *reader) text() string { return string(r.take(r.uvarint())) }

func readMoment(r *reader) moment { return moment{schemas.Micros(r.varint()), r.text()} }

func readList[T any](r *reader, item func(*reader) T) []T {
	n := r.uvarint()
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
