package actors

import (
	"github.com/smartfeed/smartfeed/internal/packed"
	"github.com/smartfeed/smartfeed/processors/ranked"
	"github.com/smartfeed/smartfeed/schemas"
)

// Rows of a user, by the first byte of their names.
const (
	profileRow = 'u' // → the newest update, or the delete, as a record of users
	facetRow   = 'f' // author, board or interest → the affinity for it, a facet; may have a timer
	recentRow  = 'r' // → the last positive actions, newest first: recentActions
	sentRow    = 's' // → when affinities were last sent: sent; may have a timer
	numberRow  = 'n' // → the number of the last action: number
)

// recentActions are the last positive actions of a user, newest first. They are one row, because they are always read
// together, and a get costs much less than a scan.
type recentActions []schemas.Near

// Pack implements packed.Row.
func (r *recentActions) Pack(p *packed.Packer) {
	p.Version(4)
	packed.Items(p, (*[]schemas.Near)(r), func(p *packed.Packer, a *schemas.Near) {
		packed.Int(p, &a.Time)
		packed.Float(p, &a.Weight)
		packed.String(p, &a.Neighbor.ID)
		ranked.PackNeighbor(p, &a.Neighbor)
	})
}

func facetName(id schemas.ID) []byte { return append([]byte{facetRow}, id...) }

// facetOf returns the facet of a row or timer name. It returns false for other rows.
func facetOf(name []byte) (schemas.ID, bool) {
	if len(name) < 2 || name[0] != facetRow {
		return "", false
	}
	return schemas.ID(name[1:]), true
}

// Pack implements packed.Row.
func (f *facet) Pack(p *packed.Packer) {
	p.Version(2)
	f.Amount.Pack(p)
	packed.Float32(p, &f.sentWeight)
	packed.Int(p, &f.sentAt)
	packed.Int(p, &f.timerAt)
}

// number is the number of a user's last action.
type number int64

// Pack implements packed.Row.
func (n *number) Pack(p *packed.Packer) {
	p.Version(1)
	packed.Int(p, n)
}

// sent records when a user's affinities were last sent.
type sent struct {
	at     schemas.Micros // arrival time; 0: never
	due    schemas.Micros // when the timer sends them again; 0: no timer is set
	facets int            // number of affinity rows
}

// Pack implements packed.Row.
func (s *sent) Pack(p *packed.Packer) {
	p.Version(2)
	packed.Int(p, &s.at)
	packed.Int(p, &s.due)
	packed.Int(p, &s.facets)
}
