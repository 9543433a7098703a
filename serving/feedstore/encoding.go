package feedstore

import (
	"encoding/binary"
	"errors"
	"math"

	"github.com/smartfeed/smartfeed/schemas"
)

// A value is a rank of fixed length, ordered as bytes, followed by the fields of the row. Texts are encoded as their length
// and bytes, integers as varints, and floats as eight bytes. Fields that are in the key are not repeated.
//
//	entry     swept byte, time 8 | pin source author board interests score created [pool]
//	edge      time 8, wins byte  |
//	card      version 8          | deleted author board interests created quality title link
//	listing   version 8          | deleted author board interests created quality
//	floor     position 8         |
//	gone      time 8             |
//	place                        |
//
// The pool is omitted if the entry has none, and in entries written by earlier builds. The rank of a swept entry is above
// that of any item. In a tie between two states of an edge, the winner has the greater byte: dead for a follow, live for a
// block.

func appendText[S ~string](b []byte, s S) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

func appendFloat(b []byte, f float64) []byte {
	return binary.BigEndian.AppendUint64(b, math.Float64bits(f))
}

func appendBool(b []byte, v bool) []byte {
	if v {
		return append(b, 1)
	}
	return append(b, 0)
}

func appendEntry(b []byte, e *schemas.FeedEntry) []byte {
	b = appendUp(appendBool(b, e.Pin == ""), int64(e.Time))
	b = appendText(appendText(b, e.Pin), e.Source)
	b = appendFloat(e.AppendBinary(b), e.Score)
	b = binary.AppendVarint(b, int64(e.Created))
	if e.Pool != "" {
		b = appendText(b, e.Pool)
	}
	return b
}

func appendVersion(b []byte, p *schemas.PinVersion) []byte {
	b = appendBool(appendUp(b, int64(p.Version)), p.Deleted)
	b = binary.AppendVarint(p.AppendBinary(b), int64(p.Created))
	return appendFloat(b, p.Quality)
}

func appendCard(b []byte, c *schemas.Card) []byte {
	return appendText(appendText(appendVersion(b, &c.PinVersion), c.Title), c.Link)
}

func appendEdge(b []byte, e *schemas.Edge) []byte {
	return appendBool(appendUp(b, int64(e.Time)), WinsTie(e.Kind, e.Live))
}

var errCorrupt = errors.New("corrupt row")

// decoder reads the fields of a value in order. After the first missing field it returns zeros and sets err.
type decoder struct {
	rest []byte
	err  error
}

func (d *decoder) take(n uint64) []byte {
	if n > uint64(len(d.rest)) {
		d.rest, d.err = nil, errCorrupt
		return nil
	}
	b := d.rest[:n]
	d.rest = d.rest[n:]
	return b
}

func (d *decoder) ordered() int64 {
	if b := d.take(8); b != nil {
		return up(b)
	}
	return 0
}

func (d *decoder) float() float64 {
	if b := d.take(8); b != nil {
		return math.Float64frombits(binary.BigEndian.Uint64(b))
	}
	return 0
}

func (d *decoder) bool() bool {
	b := d.take(1)
	return b != nil && b[0] == 1
}

func (d *decoder) count() uint64 {
	n, size := binary.Uvarint(d.rest)
	if size <= 0 {
		d.rest, d.err = nil, errCorrupt
		return 0
	}
	d.rest = d.rest[size:]
	return n
}

func (d *decoder) varint() int64 {
	n, size := binary.Varint(d.rest)
	if size <= 0 {
		d.rest, d.err = nil, errCorrupt
		return 0
	}
	d.rest = d.rest[size:]
	return n
}

func text[S ~string](d *decoder) S { return S(d.take(d.count())) }

func (d *decoder) facets() schemas.Facets {
	f, rest, err := schemas.DecodeFacets(string(d.rest), nil)
	if err != nil && d.err == nil {
		d.err = errCorrupt
	}
	d.rest = d.rest[len(d.rest)-len(rest):]
	return f
}

// end returns the first error, or an error if bytes are left over.
func (d *decoder) end() error {
	if d.err == nil && len(d.rest) > 0 {
		d.err = errCorrupt
	}
	return d.err
}

func decodeEntry(user schemas.UserID, position int64, value []byte) (schemas.FeedEntry, error) {
	d := decoder{rest: value}
	e := schemas.FeedEntry{User: user, Position: position}
	d.bool()
	e.Time = schemas.Micros(d.ordered())
	e.Pin, e.Source = text[schemas.PinID](&d), text[schemas.Source](&d)
	e.Facets, e.Score = d.facets(), d.float()
	e.Created = schemas.Micros(d.varint())
	if len(d.rest) > 0 {
		if e.Pool = text[schemas.Source](&d); e.Pool == "" {
			d.err = errCorrupt
		}
	}
	return e, d.end()
}

func (d *decoder) version(pin schemas.PinID) schemas.PinVersion {
	p := schemas.PinVersion{Pin: pin, Version: schemas.Version(d.ordered()), Deleted: d.bool()}
	p.Facets, p.Created = d.facets(), schemas.Micros(d.varint())
	p.Quality = d.float()
	return p
}

func decodeListing(pin schemas.PinID, value []byte) (schemas.PinVersion, error) {
	d := decoder{rest: value}
	p := d.version(pin)
	return p, d.end()
}

func decodeCard(pin schemas.PinID, value []byte) (schemas.Card, error) {
	d := decoder{rest: value}
	c := schemas.Card{PinVersion: d.version(pin)}
	c.Title, c.Link = text[string](&d), text[string](&d)
	return c, d.end()
}

func decodeEdge(e *schemas.Edge, value []byte) error {
	d := decoder{rest: value}
	e.Time = schemas.Micros(d.ordered())
	e.Live = WinsTie(e.Kind, d.bool())
	return d.end()
}
