// Package ranked is how pins stand in rows that are read best first: the score as eight bytes that sort descending, a
// compact body beside it, and the rule that says when a list of such rows is trimmed. It is shared by the groups that
// keep such lists; the encodings are private to the project's tables.
package ranked

import (
	"encoding/binary"
	"errors"
	"math"

	"github.com/smartfeed/smartfeed/schemas"
)

// ScoreBytes is the length of a score in a row name.
const ScoreBytes = 8

const signBit = 1 << 63

// AppendScore appends a finite score so that rows in ascending order are best first. Zero and negative zero are
// different scores.
func AppendScore(b []byte, score float64) []byte {
	bits := math.Float64bits(score)
	if bits&signBit == 0 {
		bits = ^(bits | signBit) // the larger the number, the smaller the bytes
	}
	return binary.BigEndian.AppendUint64(b, bits)
}

// Score reads back the first ScoreBytes bytes of s, which must have that many.
func Score(s string) float64 {
	bits := uint64At(s)
	if bits&signBit == 0 {
		bits = ^bits &^ signBit
	}
	return math.Float64frombits(bits)
}

// AppendVersion appends a version as eight bytes that sort ascending.
func AppendVersion(b []byte, v schemas.Version) []byte {
	return binary.BigEndian.AppendUint64(b, uint64(v)^signBit)
}

// Version reads back the first eight bytes of s, which must have that many.
func Version(s string) schemas.Version { return schemas.Version(uint64At(s) ^ signBit) }

func uint64At(s string) (n uint64) {
	for i := range 8 {
		n = n<<8 | uint64(s[i])
	}
	return n
}

// Body is what a row says of a pin beside its place.
type Body struct {
	schemas.Facets
	Created schemas.Micros
	Deleted bool
}

const flagDeleted = 1

// AppendBody appends the body:
//
//	flags      1 byte, 1: deleted
//	created    8 bytes, big-endian
//	author     length as uvarint, bytes; so board, too
//	interests  number as uvarint, then each as author
func AppendBody(b []byte, body *Body) []byte {
	flags := byte(0)
	if body.Deleted {
		flags = flagDeleted
	}
	b = append(b, flags)
	b = binary.BigEndian.AppendUint64(b, uint64(body.Created))
	b = appendString(b, body.Author)
	b = appendString(b, body.Board)
	b = binary.AppendUvarint(b, uint64(len(body.Interests)))
	for _, id := range body.Interests {
		b = appendString(b, id)
	}
	return b
}

func appendString[T ~string](b []byte, s T) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

// errBody says that a row does not hold a body. The table was written by another program, or is damaged.
var errBody = errors.New("parse body: cut short or malformed")

// ParseHead reads the first of what AppendBody wrote, which is most of what a list is put in order by.
func ParseHead(s string) (created schemas.Micros, deleted bool, err error) {
	if len(s) < headBytes || s[0] > flagDeleted {
		return 0, false, errBody
	}
	return schemas.Micros(uint64At(s[1:])), s[0] == flagDeleted, nil
}

const headBytes = 9 // flags, created

// ParseBody reads what AppendBody wrote, and all of it: an error says that s is anything else. The strings of the body
// are parts of s.
func ParseBody(s string) (Body, error) {
	return parseBody(s, func(n int) []schemas.InterestID { return make([]schemas.InterestID, n) })
}

// Bodies reads many bodies, whose interests share pieces of memory: one is kept for as long as anybody has a body of it.
// The zero value is ready.
type Bodies struct{ free []schemas.InterestID }

// Parse is ParseBody.
func (b *Bodies) Parse(s string) (Body, error) { return parseBody(s, b.take) }

func (b *Bodies) take(n int) []schemas.InterestID {
	const piece = 256 // 4 KiB
	if n > len(b.free) {
		b.free = make([]schemas.InterestID, max(n, piece))
	}
	taken := b.free[:n:n]
	b.free = b.free[n:]
	return taken
}

func parseBody(s string, take func(n int) []schemas.InterestID) (Body, error) {
	created, deleted, err := ParseHead(s)
	if err != nil {
		return Body{}, err
	}
	body := Body{Created: created, Deleted: deleted}
	r := reader{rest: s[headBytes:]}
	body.Author = schemas.UserID(r.string())
	body.Board = schemas.BoardID(r.string())
	n := r.length()
	if n > 0 && !r.bad {
		body.Interests = take(n)
	}
	for i := range body.Interests {
		body.Interests[i] = schemas.InterestID(r.string())
	}
	if r.bad || r.rest != "" {
		return Body{}, errBody
	}
	return body, nil
}

// reader takes a string apart. After the first problem it yields zero values and is bad.
type reader struct {
	rest string
	bad  bool
}

// length reads a uvarint that counts things of at least one byte each.
func (r *reader) length() int {
	var n uint64
	for i := 0; i < len(r.rest) && i < binary.MaxVarintLen32; i++ {
		n |= uint64(r.rest[i]&0x7f) << (7 * i)
		if r.rest[i] < 0x80 {
			r.rest = r.rest[i+1:]
			r.bad = r.bad || n > uint64(len(r.rest))
			return int(min(n, uint64(len(r.rest))))
		}
	}
	r.bad, r.rest = true, ""
	return 0
}

func (r *reader) string() string {
	n := r.length()
	s := r.rest[:n]
	r.rest = r.rest[n:]
	return s
}

// Hash is FNV-1a, 64 bits.
func Hash[T ~string](s T) uint64 {
	h := uint64(14695981039346656037)
	for i := range len(s) {
		h = (h ^ uint64(s[i])) * 1099511628211
	}
	return h
}

// TrimDue says for one row in every n that the list it was put in is to be trimmed now. So a list is trimmed once per n
// rows put on average, the same after a replay, without a counter that would have to be kept for each list: a trim of a
// few times n rows costs each put a constant. Between two trims a list takes more than k·n rows with probability e^-k.
// list and row are hashes of what names the list and the row; n is at least 1.
func TrimDue(list, row uint64, n int) bool {
	// The finalizer of SplitMix64 (Steele, Lea, Flood 2014): FNV's low bits alone follow the last byte too closely.
	h := list*0x9e3779b97f4a7c15 ^ row
	h = (h ^ h>>30) * 0xbf58476d1ce4e5b9
	h = (h ^ h>>27) * 0x94d049bb133111eb
	return (h^h>>31)%uint64(n) == 0
}
