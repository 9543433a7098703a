// Package packed encodes and decodes the values of rows. Numbers are varints, sums and weights are eight bytes (IEEE
// 754, big-endian), flags are one byte, and texts and lists follow their length. The package that stores a row defines
// the fields and their order, and starts the row with the version of its format.
package packed

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
)

// ErrTorn is returned when bytes are truncated, too long, or of another format.
var ErrTorn = errors.New("row is truncated or corrupt")

// VersionError is returned for a row with another format version.
type VersionError struct{ Got, Want byte }

// Error returns both versions.
func (e *VersionError) Error() string {
	return fmt.Sprintf("row has format version %d, want %d", e.Got, e.Want)
}

// AppendText appends a text, or bytes, after its length.
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

// AppendOrdered appends eight bytes that sort like the numbers, negative ones first.
func AppendOrdered[T ~int64](b []byte, n T) []byte {
	return binary.BigEndian.AppendUint64(b, uint64(n)^1<<63)
}

// AppendList appends the number of items, and each item with add, which must append at least one byte.
func AppendList[T any](b []byte, list []T, add func([]byte, T) []byte) []byte {
	b = binary.AppendUvarint(b, uint64(len(list)))
	for _, x := range list {
		b = add(b, x)
	}
	return b
}

// Reader reads values from the front of bytes. After an error, it returns zero values, and End returns the error.
// Therefore callers check for errors once per row.
type Reader struct {
	rest   []byte
	shared string // see ShareTexts
	err    error  // the first one
}

// NewReader returns a reader of b, which it does not copy.
func NewReader(b []byte) *Reader { return &Reader{rest: b} }

// NewVersionReader returns a reader of a row that starts with the byte of its version.
func NewVersionReader(b []byte, want byte) *Reader { return NewReader(b).Version(want) }

// Version reads the byte of the row's version. If it differs from want, End returns a *VersionError.
func (r *Reader) Version(want byte) *Reader {
	if got := r.Byte(); r.err == nil && got != want {
		r.rest, r.err = nil, &VersionError{got, want}
	}
	return r
}

// End returns an error if a value was incomplete, bytes are left, or the row has another version.
func (r *Reader) End() error {
	if len(r.rest) > 0 {
		r.tear()
	}
	return r.err
}

// tear records that the row is corrupt.
func (r *Reader) tear() {
	r.rest = nil
	if r.err == nil {
		r.err = ErrTorn
	}
}

// More reports whether bytes are left to read.
func (r *Reader) More() bool { return len(r.rest) > 0 }

// take returns the next n bytes, or nil if there are fewer.
func (r *Reader) take(n uint64) []byte {
	if r.err != nil || n > uint64(len(r.rest)) {
		r.tear()
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

// Flag is the reverse of AppendFlag. A byte above 1 is an error.
func (r *Reader) Flag() bool {
	b := r.Byte()
	if b > 1 {
		r.tear()
	}
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

// FirstOrdered is the reverse of AppendOrdered for the first eight bytes of b, which it must have.
func FirstOrdered[T ~int64](b []byte) T { return T(binary.BigEndian.Uint64(b) ^ 1<<63) }

// Ordered is the reverse of AppendOrdered.
func Ordered[T ~int64](r *Reader) T { return T(r.Uint64() ^ 1<<63) }

// Varint is the reverse of binary.AppendVarint.
func (r *Reader) Varint() int64 {
	v, n := binary.Varint(r.rest)
	return consume(r, v, n)
}

func (r *Reader) length() uint64 {
	v, n := binary.Uvarint(r.rest)
	return consume(r, v, n)
}

// consume consumes the n bytes from which v was read. If n is 0 or less, it records an error.
func consume[T int64 | uint64](r *Reader, v T, n int) T {
	if n <= 0 {
		r.tear()
		return 0
	}
	r.take(uint64(n))
	return v
}

// Bytes is the reverse of AppendText for bytes. It returns a slice of the input, not a copy.
func (r *Reader) Bytes() []byte {
	if b := r.rest; len(b) > 0 && b[0] < 0x80 && int(b[0]) < len(b) { // fast path: most are short, and scans read millions of them
		end := 1 + int(b[0])
		r.rest = b[end:]
		return b[1:end]
	}
	return r.take(r.length())
}

// ShareTexts makes Text return parts of one copy of the remaining bytes, instead of a copy of each text. It saves
// allocations if a row has several texts, but each of them keeps the whole copy in memory.
func (r *Reader) ShareTexts() *Reader {
	r.shared = string(r.rest)
	return r
}

// Part reads a value with decode, which receives the remaining bytes as a string and returns those after the value.
func Part[T any](r *Reader, decode func(s string) (v T, rest string, err error)) (v T) {
	if r.shared == "" {
		r.ShareTexts()
	}
	v, rest, err := decode(r.shared[len(r.shared)-len(r.rest):])
	if err != nil {
		r.tear()
	}
	r.take(uint64(max(len(r.rest)-len(rest), 0)))
	return v
}

// Text is the reverse of AppendText for texts.
func Text[T ~string](r *Reader) T {
	b := r.Bytes()
	if r.shared == "" {
		return T(b)
	}
	end := len(r.shared) - len(r.rest)
	return T(r.shared[end-len(b) : end])
}

// List is the reverse of AppendList. It returns nil if there are no items. It allocates nothing if the number of items
// exceeds the remaining bytes.
func List[T any](r *Reader, item func(*Reader) T) []T {
	n := r.length()
	if n > uint64(len(r.rest)) { // an item has at least one byte
		r.tear()
	}
	if n == 0 || r.err != nil {
		return nil
	}
	list := make([]T, 0, n)
	for range n {
		list = append(list, item(r))
	}
	return list
}
