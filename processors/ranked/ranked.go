// Package ranked defines the row format of lists of pins that are read best first. It encodes scores as eight bytes that
// sort in descending order, and the fields of a pin in a compact form. It also decides when a list is trimmed. Several
// groups share it. The encodings are private to the tables of this project.
package ranked

import (
	"encoding/binary"
	"errors"
	"math"

	"github.com/smartfeed/smartfeed/internal/packed"
	"github.com/smartfeed/smartfeed/schemas"
)

// ScoreBytes is the length of an encoded score in a row name.
const ScoreBytes = 8

const signBit = 1 << 63

// AppendScore appends a finite score. Rows in ascending byte order are then best first. Zero and negative zero are different
// scores.
func AppendScore[T ~float64](b []byte, score T) []byte {
	bits := math.Float64bits(float64(score))
	if bits&signBit == 0 {
		bits = ^(bits | signBit) // the larger the number, the smaller the bytes
	}
	return binary.BigEndian.AppendUint64(b, bits)
}

// Score decodes the first ScoreBytes bytes of s. It panics if s is shorter.
func Score[T ~float64](s string) T {
	bits := uint64At(s)
	if bits&signBit == 0 {
		bits = ^bits &^ signBit
	}
	return T(math.Float64frombits(bits))
}

// AppendVersion appends a version as eight bytes that sort in ascending order.
func AppendVersion(b []byte, v schemas.Version) []byte {
	return packed.AppendOrdered(b, v)
}

// Version decodes the first eight bytes of s. It panics if s is shorter.
func Version(s string) schemas.Version { return schemas.Version(uint64At(s) ^ signBit) }

func uint64At(s string) uint64 { return binary.BigEndian.Uint64([]byte(s[:8])) }

// The first byte of a body: the version of its format, and the flag.
const (
	formatBody  = 2
	flagDeleted = 1
)

// AppendBody appends the encoded body:
//
//	format     1 byte: twice the version, plus 1 if deleted
//	created    8 bytes, big-endian
//	facets     see schemas.Facets.AppendBinary
func AppendBody(b []byte, body *schemas.PinContent) []byte {
	first := byte(formatBody << 1)
	if body.Deleted {
		first |= flagDeleted
	}
	b = append(b, first)
	b = binary.BigEndian.AppendUint64(b, uint64(body.Created))
	return body.AppendBinary(b)
}

// PackNeighbor packs a neighbor without its id as a part of a row; see package packed.
func PackNeighbor(p *packed.Packer, n *schemas.Neighbor) {
	packed.Int(p, &n.Version)
	packed.Float(p, &n.Quality)
	packed.Int(p, &n.Created)
	packed.Encoded(p, &n.Facets, (*schemas.Facets).AppendBinary, schemas.DecodeFacets)
}

// errBody is returned for a row that holds no body: another program wrote the table, or the row is damaged.
var errBody = errors.New("parse body: truncated or malformed")

// ParseHead decodes the first fields of a body. The order of most lists depends only on these.
func ParseHead(s string) (created schemas.Micros, deleted bool, err error) {
	if len(s) < headBytes {
		return 0, false, errBody
	}
	if version := s[0] >> 1; version != formatBody {
		return 0, false, &packed.VersionError{Got: version, Want: formatBody}
	}
	return schemas.Micros(uint64At(s[1:])), s[0]&flagDeleted != 0, nil
}

const headBytes = 9 // format, created

// ParseBody decodes a body. It returns an error unless s is exactly one encoded body. The strings of the body share the
// memory of s.
func ParseBody(s string) (schemas.PinContent, error) {
	return parseBody(s, nil)
}

// Bodies parses many bodies with few allocations: their interests share blocks of memory. A block stays in memory while any
// of its bodies is in use. The zero value is ready to use.
type Bodies struct{ free []schemas.InterestID }

// Parse is like ParseBody.
func (b *Bodies) Parse(s string) (schemas.PinContent, error) { return parseBody(s, b.take) }

func (b *Bodies) take(n int) []schemas.InterestID {
	const piece = 256 // 4 KiB
	if n > len(b.free) {
		b.free = make([]schemas.InterestID, max(n, piece))
	}
	taken := b.free[:n:n]
	b.free = b.free[n:]
	return taken
}

func parseBody(s string, newList func(n int) []schemas.InterestID) (schemas.PinContent, error) {
	created, deleted, err := ParseHead(s)
	if err != nil {
		return schemas.PinContent{}, err
	}
	facets, rest, err := schemas.DecodeFacetsInto(s[headBytes:], newList)
	if err != nil || rest != "" {
		return schemas.PinContent{}, errBody
	}
	return schemas.PinContent{Facets: facets, Created: created, Deleted: deleted}, nil
}
