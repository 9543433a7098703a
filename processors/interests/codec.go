package interests

import (
	"github.com/smartfeed/smartfeed/internal/packed"
	"github.com/smartfeed/smartfeed/schemas"
)

// format is the version of the format of all rows. An action reads and writes eight rows or more. They are packed, because
// JSON would be most of the cost of the group.
const format = 1

// number is a row that holds a number.
type number int64

// Pack implements packed.Row.
func (n *number) Pack(p *packed.Packer) {
	p.Version(format)
	packed.Int(p, n)
}

// Pack implements packed.Row.
func (s *pinTerms) Pack(p *packed.Packer) {
	p.Version(format)
	packed.Int(p, &s.Version)
	packed.String(p, &s.Author)
	packed.Int(p, &s.Created)
	packed.Items(p, &s.Interests, packed.String[schemas.InterestID])
	packed.Items(p, &s.Terms, packed.String[string])
	p.Flags(&s.Deleted)
}

// Pack implements packed.Row.
func (l *liker) Pack(p *packed.Packer) {
	p.Version(format)
	packed.Int(p, &l.LastAt)
	packed.Int(p, &l.ExpiresAt)
}

// Pack implements packed.Row.
func (s *shown) Pack(p *packed.Packer) {
	p.Version(format)
	packed.Items(p, &s.Impressions, func(p *packed.Packer, i *impression) {
		packed.String(p, &i.Pin)
		packed.String(p, &i.Source)
		packed.Int(p, &i.Time)
	})
}

// Pack implements packed.Row.
func (l *userInterest) Pack(p *packed.Packer) {
	p.Version(format)
	packed.Float(p, &l.Strength)
	packed.Items(p, &l.Evidence, func(p *packed.Packer, e *schemas.Evidence) {
		packed.String(p, &e.Pin)
		packed.String(p, &e.Verb)
		packed.Float(p, &e.Weight)
		packed.Int(p, &e.Time)
	})
}

// Pack implements packed.Row.
func (t *term) Pack(p *packed.Packer) {
	p.Version(format)
	packed.Int(p, &t.Pins)
	packed.Int(p, &t.MaxError)
	packed.Int(p, &t.People)
	packed.Float(p, &t.Recent)
}
