// Package packed puts the values of rows into bytes and reads them back: numbers as varints, sums and weights as eight
// bytes (IEEE 754, big-endian), flags as one, texts and lists behind their length. What the fields are, and in which
// order, is the business of who owns the row, who also begins it with a byte that tells its layout.
package packed

import (
	"encoding/binary"
	"errors"
	"math"
)

// ErrTorn says that bytes are not what was appended: cut short, too long, or of another form.
var ErrTorn = errors.New("cut short, or not of a known form")

// AppendText appends a text, or bytes, behind its length.
func AppendText[T ~string | ~[]byte](b []byte, s T) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

// AppendFlag appends a byte, 1 if set.
func AppendFlag(b []byte, set bool) []byte {
	if set {
		return append(b, 1)
	}
	return append(b, 0)
}

// AppendFloat appends the eight bytes of a number.
func AppendFloat(b []byte, x float64) []byte {
	return binary.BigEndian.AppendUint64(b, math.Float64bits(x))
}

// AppendList appends how many items there are, and each by add, which appends a byte at least.
func AppendList[T any](b []byte, list []T, add func([]byte, T) []byte) []byte {
	b = binary.AppendUvarint(b, uint64(len(list)))
	for _, x := range list {
		b = add(b, x)
	}
	return b
}

// Reader takes values from the front of bytes. Where they are torn it hands out zero values from then on, and End says so:
// so a row is read field after field without a look at each.
type Reader struct {
	rest []byte
	torn bool
}

// NewReader returns a reader of b, which it does not copy.
func NewReader(b []byte) *Reader { return &Reader{rest: b} }

// End returns ErrTorn if a value was not whole, or if anything is left.
func (r *Reader) End() error {
	if r.torn || len(r.rest) > 0 {
		return ErrTorn
	}
	return nil
}

// take returns the next n bytes, none if there are fewer.
func (r *Reader) take(n uint64) []byte {
	if r.torn || n > uint64(len(r.rest)) {
		r.torn, r.rest = true, nil
		return nil
	}
	b := r.rest[:n]
	r.rest = r.rest[n:]
	return b
}

// Byte reads a byte.
func (r *Reader) Byte() byte {
	if b := r.take(1); b != nil {
		return b[0]
	}
	return 0
}

// Flag is the reverse of AppendFlag. A byte above 1 is torn.
func (r *Reader) Flag() bool {
	b := r.Byte()
	r.torn = r.torn || b > 1
	return b == 1
}

// Uint64 is the reverse of binary.BigEndian.AppendUint64.
func (r *Reader) Uint64() uint64 {
	if b := r.take(8); b != nil {
		return binary.BigEndian.Uint64(b)
	}
	return 0
}

// Float is the reverse of AppendFloat.
func (r *Reader) Float() float64 { return math.Float64frombits(r.Uint64()) }

// Varint is the reverse of binary.AppendVarint.
func (r *Reader) Varint() int64 {
	v, n := binary.Varint(r.rest)
	return whole(r, v, n)
}

func (r *Reader) length() uint64 {
	v, n := binary.Uvarint(r.rest)
	return whole(r, v, n)
}

// whole takes the n bytes that v was read from; n of 0 or less says that there was none.
func whole[T int64 | uint64](r *Reader, v T, n int) T {
	if n <= 0 {
		r.torn, r.rest = true, nil
		return 0
	}
	r.take(uint64(n))
	return v
}

// Bytes is the reverse of AppendText for bytes: a part of what is read, no copy.
func (r *Reader) Bytes() []byte { return r.take(r.length()) }

// Text is the reverse of AppendText for texts.
func Text[T ~string](r *Reader) T { return T(r.Bytes()) }

// List is the reverse of AppendList, nil if there are no items. A number of items that cannot be there takes no memory.
func List[T any](r *Reader, item func(*Reader) T) []T {
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
