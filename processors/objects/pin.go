package objects

import (
	"cmp"
	"slices"

	"github.com/smartfeed/smartfeed/internal/packed"
	"github.com/smartfeed/smartfeed/schemas"
)

// Reasons for dropping an event, or for processing an action incompletely.
const (
	dropNoActor     = "no_actor"
	dropBot         = "bot"
	dropDeletedUser = "deleted_user"
	dropDeletedPin  = "deleted_pin"
	dropDuplicate   = "duplicate"
	partHoldLimit   = "hold_limit"
	partUnknownPin  = "unknown_pin"
	partLateCount   = "late_count"
)

// pin is the state of one pin. A pin with only an id has no event.
type pin struct {
	id          schemas.PinID
	lastVersion schemas.Version    // last version number, 0: none
	deletedBy   string             // event id of the delete, "" if the pin is not deleted
	origin      origin             // set by the earliest create
	head        head               // set by the newest create or update
	kept        []moment           // the newest creates and updates, whose attributes are kept for joins, newest first
	notified    []schemas.Followee // every followee that received a publication, those of the last one first
}

// moment is the position of an event in the order of events: by time, then id.
type moment struct {
	time schemas.Micros
	id   string
}

func (m moment) compare(n moment) int {
	return cmp.Or(cmp.Compare(m.time, n.time), cmp.Compare(m.id, n.id))
}

// origin holds the fields that the earliest create of a pin sets.
type origin struct {
	moment  // of that create; zero: none yet
	author  schemas.UserID
	quality float64
}

// head holds the fields that the newest create or update of a pin sets, except the attributes.
type head struct {
	facets schemas.Facets // without the author, see origin
	title  string
	link   string
}

// change is the effect of an event on a pin.
type change struct {
	drop    string             // reason for having no effect; the other fields are zero then
	keep    bool               // the event's attributes are kept for joins
	forget  []moment           // events whose attributes are no longer kept
	version bool               // the pin has a new version
	notify  []schemas.Followee // followees to notify of the version; empty if no field that they depend on changed
}

func (p *pin) deleted() bool { return p.deletedBy != "" }

// known reports whether a create, update or delete of the pin has arrived. Otherwise the id may not belong to a pin.
func (p *pin) known() bool { return len(p.kept) > 0 || p.deleted() }

func (p *pin) created() bool { return p.origin.id != "" }

// apply applies an event to the pin, without other pins and without a clock. Any order and any repetition of a pin's
// events leads to the same pin; only the version numbers depend on the order of arrival.
func (p *pin) apply(e *schemas.PinEvent, cfg Config) change {
	switch {
	case e.ID == p.deletedBy || p.hasEvent(e.ID):
		return change{drop: dropDuplicate}
	case p.deleted():
		return change{drop: dropDeletedPin}
	case e.Verb == schemas.Delete:
		return p.delete(e)
	}
	before, existed := p.version(), p.created()
	at := moment{e.Time, e.ID}
	newer := len(p.kept) == 0 || at.compare(p.kept[0]) > 0
	earlier := e.Verb == schemas.Create && (!existed || at.compare(p.origin.moment) < 0)

	c := p.keep(at, cfg.MaxVersions)
	if newer {
		p.head = head{e.Facets(), e.Title, e.Link}
		p.head.facets.Author = ""
	}
	if earlier {
		p.origin = origin{at, e.Actor, quality(cfg.QualityRules, e)}
	}
	c.version = earlier || newer && existed
	if c.version {
		p.nextVersion(e.Time)
		c.notify = p.audience(before, existed, cfg.MaxFollowees)
	}
	return c
}

// hasEvent reports whether the event is the origin or one of the kept events.
func (p *pin) hasEvent(id string) bool {
	return p.created() && p.origin.id == id ||
		slices.ContainsFunc(p.kept, func(m moment) bool { return m.id == id })
}

// keep inserts an event into the kept ones and removes all but the newest n.
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

// delete deletes the pin and notifies every followee that ever received it. Only the deletion, the creation time and the quality
// are kept.
func (p *pin) delete(e *schemas.PinEvent) change {
	c := change{forget: p.kept, version: true, notify: p.notified}
	p.deletedBy = e.ID
	p.kept, p.notified = nil, nil
	p.head, p.origin.author = head{}, ""
	p.nextVersion(e.Time)
	return c
}

func (p *pin) nextVersion(at schemas.Micros) {
	p.lastVersion = max(schemas.Version(at), p.lastVersion+1)
}

// audience returns the followees to notify of a version: every current and former one if a field that they depend on
// changed. It stores up to limit of them, the current ones first. It drops those that have been former ones for longest; these
// have all been notified of the withdrawal.
func (p *pin) audience(before schemas.PinVersion, existed bool, limit int) []schemas.Followee {
	now := p.version()
	if existed && sameForFollowees(before, now) {
		return nil
	}
	all := slices.Collect(now.Followees)
	for _, f := range p.notified {
		if !slices.Contains(all, f) {
			all = append(all, f)
		}
	}
	p.notified = all[:min(len(all), limit)]
	return all
}

// sameForFollowees reports whether two versions of a pin are equal in all fields that followees depend on.
func sameForFollowees(a, b schemas.PinVersion) bool {
	return a.Facets.Equal(b.Facets) && a.Created == b.Created && a.Quality == b.Quality && a.Deleted == b.Deleted
}

func (p *pin) facets() schemas.Facets {
	f := p.head.facets
	f.Author = p.origin.author
	return f
}

// version returns the pin for other groups. A deleted pin has no facets, because its former author must not be revealed;
// p.notified determines the followees to notify.
func (p *pin) version() schemas.PinVersion {
	v := schemas.PinVersion{
		Pin: p.id, Version: p.lastVersion, PinContent: schemas.PinContent{Facets: p.facets(), Created: p.origin.time, Deleted: p.deleted()}, Quality: p.origin.quality,
	}
	if !p.created() {
		v.Quality = 1
	}
	return v
}

func (p *pin) card() schemas.Card {
	return schemas.Card{PinVersion: p.version(), Title: p.head.title, Link: p.head.link}
}

// asOf returns the version of the attributes for an action at time t: the newest that is not after t, or else the oldest.
// There must be at least one.
func (p *pin) asOf(t schemas.Micros) moment {
	for _, m := range p.kept {
		if m.time <= t {
			return m
		}
	}
	return p.kept[len(p.kept)-1]
}

// Pack implements packed.Row. The id is the owner of the row.
func (p *pin) Pack(to *packed.Packer) {
	to.Version(2)
	packed.Int(to, &p.lastVersion)
	packed.String(to, &p.deletedBy)
	packMoment(to, &p.origin.moment)
	packed.String(to, &p.origin.author)
	packed.Float(to, &p.origin.quality)
	packed.Encoded(to, &p.head.facets, (*schemas.Facets).AppendBinary, schemas.DecodeFacets)
	packed.String(to, &p.head.title)
	packed.String(to, &p.head.link)
	packed.Items(to, &p.kept, packMoment)
	packed.Items(to, &p.notified, packed.String[schemas.Followee])
}

func packMoment(p *packed.Packer, m *moment) {
	packed.Int(p, &m.time)
	packed.String(p, &m.id)
}
