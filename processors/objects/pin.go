package objects

import (
	"cmp"
	"slices"

	"github.com/smartfeed/smartfeed/schemas"
)

// Reasons for dropping an event, or for letting an action go on without something.
const (
	dropNoActor     = "no_actor"
	dropBot         = "bot"
	dropDeletedUser = "deleted_user"
	dropDeletedPin  = "deleted_pin"
	dropRepeat      = "repeat"
	lackHeldFull    = "held_full"
	lackNoObject    = "no_object"
	lackLateCount   = "late_count"
)

// pin is the state of one pin. Its zero value, with an id, is a pin that nothing has been heard of.
type pin struct {
	id        schemas.PinID
	stamp     schemas.Version    // last version given out, 0: none
	deletedBy string             // event id of the delete, "" while the pin lives
	origin    origin             // what the earliest create says for good
	head      head               // what the newest create or update says
	kept      []moment           // the newest creates and updates whose attributes are kept for joins, newest first
	told      []schemas.Followee // who ever got a publication, those of the last one first
}

// moment is the place of an event in the order of intent: by time, then id.
type moment struct {
	time schemas.Micros
	id   string
}

func (m moment) compare(n moment) int {
	return cmp.Or(cmp.Compare(m.time, n.time), cmp.Compare(m.id, n.id))
}

// origin is what the earliest create of a pin fixes.
type origin struct {
	moment  // of that create; the zero moment: none yet
	author  schemas.UserID
	quality float64
}

// head is what the newest create or update of a pin says, as far as others are told.
type head struct {
	board     schemas.BoardID
	interests []schemas.InterestID
	title     string
	link      string
}

// change is what an event did to a pin.
type change struct {
	drop    string             // why it did nothing; then the rest is zero
	keep    bool               // its attributes are among those kept for joins
	forget  []moment           // whose attributes are kept no longer
	version bool               // there is a new version of the pin
	tell    []schemas.Followee // who is told of that version; none if nothing moved that they go by
}

func (p *pin) deleted() bool { return p.deletedBy != "" }

// known reports whether a create, update or delete of the pin has come: without one the id may be of nothing.
func (p *pin) known() bool { return len(p.kept) > 0 || p.deleted() }

func (p *pin) created() bool { return p.origin.id != "" }

// apply changes the pin by an event. It needs no other pin, no clock, and comes to the same pin whatever the order in
// which the events of a pin are applied, and however often; only the version numbers go by the order of arrival.
func (p *pin) apply(e *schemas.PinEvent, cfg Config) change {
	switch {
	case e.ID == p.deletedBy || p.holds(e.ID):
		return change{drop: dropRepeat}
	case p.deleted():
		return change{drop: dropDeletedPin}
	case e.Verb == schemas.Delete:
		return p.delete(e)
	}
	before, existed := p.version(), p.created()
	at := moment{e.Time, e.ID}
	newer := len(p.kept) == 0 || at.compare(p.kept[0]) > 0
	earlier := e.Verb == schemas.Create && (!existed || at.compare(p.origin.moment) < 0)

	c := p.keep(at, cfg.Versions)
	if newer {
		p.head = head{e.Board, e.Interests, e.Title, e.Link}
	}
	if earlier {
		p.origin = origin{at, e.Actor, quality(cfg.Quality, e)}
	}
	c.version = earlier || newer && existed
	if c.version {
		p.restamp(e.Time)
		c.tell = p.audience(before, existed, cfg.MaxFollowees)
	}
	return c
}

// holds says that an event is one of those the pin is made of.
func (p *pin) holds(id string) bool {
	return p.created() && p.origin.id == id ||
		slices.ContainsFunc(p.kept, func(m moment) bool { return m.id == id })
}

// keep puts a version of the attributes in its place and cuts what is beyond the newest n.
func (p *pin) keep(at moment, n int) change {
	i, _ := slices.BinarySearchFunc(p.kept, at, func(m, at moment) int { return at.compare(m) })
	if i >= n {
		return change{}
	}
	p.kept = slices.Insert(p.kept, i, at)
	c := change{keep: true}
	if len(p.kept) > n {
		c.forget = slices.Clone(p.kept[n:])
		p.kept = p.kept[:n]
	}
	return c
}

// delete ends the pin. Everybody who ever heard of it is told; nothing is kept but the fact, and when it was made.
func (p *pin) delete(e *schemas.PinEvent) change {
	c := change{forget: p.kept, version: true, tell: p.told}
	p.deletedBy = e.ID
	p.kept, p.told = nil, nil
	p.head, p.origin.author = head{}, ""
	p.restamp(e.Time)
	return c
}

func (p *pin) restamp(at schemas.Micros) {
	p.stamp = max(schemas.Version(at), p.stamp+1)
}

// audience returns who must hear of a version: if anything moved that followees go by, the present followees and every
// former one. It remembers them, the present ones first; of more than most the longest gone are forgotten, who have
// all been told that the pin is theirs no more.
func (p *pin) audience(before schemas.PinVersion, existed bool, most int) []schemas.Followee {
	now := p.version()
	if existed && sameForFollowees(before, now) {
		return nil
	}
	tell := followees(now.Facets)
	for _, f := range p.told {
		if !slices.Contains(tell, f) {
			tell = append(tell, f)
		}
	}
	p.told = tell[:min(len(tell), most)]
	return tell
}

// sameForFollowees says that two versions of a pin have the same place in every followee's publications.
func sameForFollowees(a, b schemas.PinVersion) bool {
	return a.Author == b.Author && a.Board == b.Board && slices.Equal(a.Interests, b.Interests) &&
		a.Created == b.Created && a.Quality == b.Quality && a.Deleted == b.Deleted
}

func followees(f schemas.Facets) []schemas.Followee {
	all := make([]schemas.Followee, 0, 2+len(f.Interests))
	all = append(all, schemas.Followee(f.Author))
	if f.Board != "" {
		all = append(all, schemas.Followee(f.Board))
	}
	for _, i := range f.Interests {
		all = append(all, schemas.Followee(i))
	}
	return all
}

func (p *pin) facets() schemas.Facets {
	return schemas.Facets{Author: p.origin.author, Board: p.head.board, Interests: p.head.interests}
}

// version returns the pin as everybody downstream sees it. A deleted pin has no facets: whoever had the pin is told
// because of p.told, and whose it was is nobody's business any more.
func (p *pin) version() schemas.PinVersion {
	v := schemas.PinVersion{
		Pin: p.id, Version: p.stamp, Facets: p.facets(),
		Created: p.origin.time, Quality: p.origin.quality, Deleted: p.deleted(),
	}
	if !p.created() {
		v.Quality = 1
	}
	return v
}

func (p *pin) card() schemas.Card {
	return schemas.Card{PinVersion: p.version(), Title: p.head.title, Link: p.head.link}
}

// asOf returns the version of the attributes that an action of time t is joined with: the newest not after it, else
// the oldest. There must be one.
func (p *pin) asOf(t schemas.Micros) moment {
	for _, m := range p.kept {
		if m.time <= t {
			return m
		}
	}
	return p.kept[len(p.kept)-1]
}
