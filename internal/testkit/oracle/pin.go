package oracle

import (
	"cmp"
	"slices"

	"github.com/smartfeed/smartfeed/schemas"
)

// pin holds all events of one pin.
type pin struct {
	versions []*schemas.PinEvent // creates and updates, by time, then id
	deleted  bool
}

// applyPin applies an event of a pin. A deletion is final; later events are dropped.
func (p *Product) applyPin(e *schemas.PinEvent) {
	id := schemas.PinID(e.Object)
	if p.pins[id] == nil {
		p.pins[id] = &pin{}
	}
	switch x := p.pins[id]; {
	case x.deleted:
	case e.Verb == schemas.Delete:
		x.deleted = true
	default:
		x.add(e)
	}
}

// add inserts a version, unless a version with its id is kept.
func (x *pin) add(e *schemas.PinEvent) {
	if n := len(x.versions); n > 0 && x.versions[n-1].ID == e.ID {
		return
	}
	at, repeated := slices.BinarySearchFunc(x.versions, e, func(a, b *schemas.PinEvent) int {
		return cmp.Or(cmp.Compare(a.Time, b.Time), cmp.Compare(a.ID, b.ID))
	})
	if !repeated {
		x.versions = slices.Insert(x.versions, at, e)
	}
}

// create returns the earliest create, or nil if there is none. Without a create the pin does not exist.
func (x *pin) create() *schemas.PinEvent {
	for _, e := range x.versions {
		if e.Verb == schemas.Create {
			return e
		}
	}
	return nil
}

// facets returns the author of the earliest create and the other facets of the version.
func (x *pin) facets(version *schemas.PinEvent) schemas.Facets {
	f := version.Facets()
	f.Author = ""
	if create := x.create(); create != nil {
		f.Author = create.Actor
	}
	return f
}

// exists reports whether the pin was created, is not deleted, and its author is not deleted.
func (p *Product) exists(id schemas.PinID) bool {
	x := p.pins[id]
	if x == nil || x.deleted {
		return false
	}
	create := x.create()
	return create != nil && !p.deleted(create.Actor)
}

// Pin is the current state of a pin.
type Pin struct {
	ID schemas.PinID
	schemas.Facets
	Created schemas.Micros
	Quality float64
	Title   string
	Link    string
}

// Pin returns the current state of a pin. It returns false if the pin was never created, or if it or its author is deleted.
func (p *Product) Pin(id schemas.PinID) (Pin, bool) {
	if !p.exists(id) {
		return Pin{}, false
	}
	x := p.pins[id]
	create, newest := x.create(), x.versions[len(x.versions)-1]
	return Pin{
		ID:      id,
		Facets:  x.facets(newest),
		Created: create.Time,
		Quality: p.cfg.Quality(create),
		Title:   newest.Title,
		Link:    newest.Link,
	}, true
}

// List returns the existing pins of the author, board or interest, newest first, ties by pin.
func (p *Product) List(followee schemas.Followee) []schemas.PinID {
	var listed []Pin
	for _, pin := range p.Pins() {
		if pin.Has(followee) {
			listed = append(listed, pin)
		}
	}
	slices.SortFunc(listed, func(a, b Pin) int {
		return cmp.Or(cmp.Compare(b.Created, a.Created), cmp.Compare(a.ID, b.ID))
	})
	ids := make([]schemas.PinID, len(listed))
	for i, pin := range listed {
		ids[i] = pin.ID
	}
	return ids
}
