package objects

import (
	"encoding/binary"

	"github.com/smartfeed/smartfeed/internal/packed"
	"github.com/smartfeed/smartfeed/schemas"
)

// formatPin is the first byte of the encoded state of a pin. It identifies the layout.
const formatPin = 1

// encode returns the packed state without the id, which is the owner of the row:
//
//	format, stamp, deletedBy,
//	origin: time, id, author, quality (8 bytes IEEE 754),
//	head: board, interests, title, link,
//	kept: (time, id)…, told: followee…
func (p *pin) encode() []byte {
	b := make([]byte, 0, 512)
	b = append(b, formatPin)
	b = binary.AppendVarint(b, int64(p.stamp))
	b = packed.AppendText(b, p.deletedBy)
	b = appendMoment(b, p.origin.moment)
	b = packed.AppendText(b, p.origin.author)
	b = packed.AppendFloat(b, p.origin.quality)
	b = packed.AppendText(b, p.head.board)
	b = packed.AppendList(b, p.head.interests, packed.AppendText)
	b = packed.AppendText(b, p.head.title)
	b = packed.AppendText(b, p.head.link)
	b = packed.AppendList(b, p.kept, appendMoment)
	return packed.AppendList(b, p.told, packed.AppendText)
}

// decode is the reverse of encode. It returns an error for any other bytes, including every truncation.
func (p *pin) decode(value []byte) error {
	r := packed.NewReader(value)
	if r.Byte() != formatPin {
		return packed.ErrTorn
	}
	p.stamp = schemas.Version(r.Varint())
	p.deletedBy = packed.Text[string](r)
	p.origin.moment = readMoment(r)
	p.origin.author = packed.Text[schemas.UserID](r)
	p.origin.quality = r.Float()
	p.head.board = packed.Text[schemas.BoardID](r)
	p.head.interests = packed.List(r, packed.Text[schemas.InterestID])
	p.head.title = packed.Text[string](r)
	p.head.link = packed.Text[string](r)
	p.kept = packed.List(r, readMoment)
	p.told = packed.List(r, packed.Text[schemas.Followee])
	return r.End()
}

func appendMoment(b []byte, m moment) []byte {
	return packed.AppendText(binary.AppendVarint(b, int64(m.time)), m.id)
}

func readMoment(r *packed.Reader) moment {
	return moment{schemas.Micros(r.Varint()), packed.Text[string](r)}
}
