package feedstore

import (
	"encoding/binary"

	"github.com/smartfeed/smartfeed/internal/packed"
	"github.com/smartfeed/smartfeed/schemas"
)

// A value is a rank of fixed length, ordered as bytes, followed by the version and the fields of the row, if it has any.
// Fields that are in the key are not repeated.
//
//	entry     swept byte, time 8 | version pin source author board interests score created pool
//	edge      time 8, wins byte  |
//	card      version 8          | version deleted author board interests created quality title link
//	listing   version 8          | version deleted author board interests created quality
//	trimmed   position 8         |
//	deleted   time 8             |
//	place                        |
//
// The rank of a swept entry is above that of any item. In a tie between two states of an edge, the winner has the greater
// byte: dead for a follow, live for a block.

// rowVersion is the version of the fields of a row.
const rowVersion = 3

func appendEntry(b []byte, e *schemas.FeedEntry) []byte {
	b = packed.AppendOrdered(packed.AppendFlag(b, e.Pin == ""), e.Time)
	b = packed.AppendText(packed.AppendText(append(b, rowVersion), e.Pin), e.Source)
	b = packed.AppendFloat(e.AppendBinary(b), float64(e.RankScore))
	return packed.AppendText(binary.AppendVarint(b, int64(e.Created)), e.Pool)
}

func decodeEntry(user schemas.UserID, position int64, value []byte) (schemas.FeedEntry, error) {
	e := schemas.FeedEntry{User: user, Position: position}
	r := packed.NewReader(value).ShareTexts()
	r.Flag()
	e.Time = packed.Ordered[schemas.Micros](r)
	r.Version(rowVersion)
	e.Pin, e.Source = packed.Text[schemas.PinID](r), packed.Text[schemas.Source](r)
	e.Facets, e.RankScore = packed.Part(r, schemas.DecodeFacets), schemas.RankScore(r.Float())
	e.Created, e.Pool = schemas.Micros(r.Varint()), packed.Text[schemas.Source](r)
	return e, r.End()
}

func appendVersion(b []byte, p *schemas.PinVersion) []byte {
	b = packed.AppendFlag(append(packed.AppendOrdered(b, p.Version), rowVersion), p.Deleted)
	b = binary.AppendVarint(p.AppendBinary(b), int64(p.Created))
	return packed.AppendFloat(b, p.Quality)
}

func readVersion(r *packed.Reader, pin schemas.PinID) schemas.PinVersion {
	p := schemas.PinVersion{Pin: pin, Version: packed.Ordered[schemas.Version](r)}
	p.Deleted = r.Version(rowVersion).Flag()
	p.Facets, p.Created = packed.Part(r, schemas.DecodeFacets), schemas.Micros(r.Varint())
	p.Quality = r.Float()
	return p
}

func decodeListing(pin schemas.PinID, value []byte) (schemas.PinVersion, error) {
	r := packed.NewReader(value).ShareTexts()
	p := readVersion(r, pin)
	return p, r.End()
}

func appendCard(b []byte, c *schemas.Card) []byte {
	return packed.AppendText(packed.AppendText(appendVersion(b, &c.PinVersion), c.Title), c.Link)
}

func decodeCard(pin schemas.PinID, value []byte) (schemas.Card, error) {
	r := packed.NewReader(value).ShareTexts()
	c := schemas.Card{PinVersion: readVersion(r, pin)}
	c.Title, c.Link = packed.Text[string](r), packed.Text[string](r)
	return c, r.End()
}

func appendEdge(b []byte, e *schemas.Edge) []byte {
	return packed.AppendFlag(packed.AppendOrdered(b, e.Time), WinsTie(e.Kind, e.Live))
}

func decodeEdge(e *schemas.Edge, value []byte) error {
	r := packed.NewReader(value)
	e.Time = packed.Ordered[schemas.Micros](r)
	e.Live = WinsTie(e.Kind, r.Flag())
	return r.End()
}
