package objects

import (
	"github.com/smartfeed/smartfeed/internal/packed"
	"github.com/smartfeed/smartfeed/schemas"
)

// Pack implements packed.Row. The id is the owner of the row.
func (p *pin) Pack(to *packed.Packer) {
	to.Version(1)
	packed.Int(to, &p.lastVersion)
	packed.String(to, &p.deletedBy)
	packMoment(to, &p.origin.moment)
	packed.String(to, &p.origin.author)
	packed.Float(to, &p.origin.quality)
	packed.String(to, &p.head.board)
	packed.Items(to, &p.head.interests, packed.String[schemas.InterestID])
	packed.String(to, &p.head.title)
	packed.String(to, &p.head.link)
	packed.Items(to, &p.kept, packMoment)
	packed.Items(to, &p.notified, packed.String[schemas.Followee])
}

func packMoment(p *packed.Packer, m *moment) {
	packed.Int(p, &m.time)
	packed.String(p, &m.id)
}
