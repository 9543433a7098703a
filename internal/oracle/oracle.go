// Package oracle is the product computed by brute force: everything is kept as it was said, and every question is
// answered by looking at all of it. It is what tests hold the real pipeline against, so it shares nothing with it but
// the records and the formula of the score; where the two differ, read the rules, not the pipeline.
//
// Events may come in any order and any number of times. Events must be valid: what a door would refuse or the pipeline
// would send to the dead letters must not be applied.
//
// It knows no arrival times, therefore: event ids of actions are remembered for ever, an action waits for its pin until
// StopWaiting, and nothing expires. Edge weights are 1, pools and lists have no cap but the asked one, affinities and
// related pins are not computed.
package oracle

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/smartfeed/smartfeed/schemas"
)

// Config is what of the pipeline's configuration its answers depend on.
type Config struct {
	HalfLife time.Duration                          // of scores, > 0
	Quality  func(create *schemas.PinEvent) float64 // > 0; nil: 1 for every pin

	MaxFollowees int // follows of a user that count, the earliest first; 0: all
}

// Product is all that was said so far. It is not for concurrent use.
type Product struct {
	cfg     Config
	users   map[schemas.UserID]*user
	pins    map[schemas.PinID]*pin
	edges   map[schemas.UserID]map[schemas.ID]*edge // by who follows or blocks, and whom
	offers  map[schemas.UserID][]*schemas.Offer
	seen    map[schemas.UserID]map[schemas.PinID]bool
	actions map[schemas.UserID][]*schemas.EnrichedAction // joined
	waiting map[schemas.PinID][]*schemas.ActionEvent     // for a pin of which nothing is known
	counted map[string]bool                              // ids of actions
	steps   map[schemas.PinID]map[schemas.Micros]map[string]int64

	present []Pin // what Pins answered since the last event; nil: not asked
}

// user is a person as the stream of users tells it.
type user struct {
	profile *schemas.UserEvent // the update with the highest (time, id); nil: none
	deleted bool
}

// New returns a product of which nothing was said.
func New(cfg Config) *Product {
	if cfg.Quality == nil {
		cfg.Quality = func(*schemas.PinEvent) float64 { return 1 }
	}
	return &Product{
		cfg:     cfg,
		users:   map[schemas.UserID]*user{},
		pins:    map[schemas.PinID]*pin{},
		edges:   map[schemas.UserID]map[schemas.ID]*edge{},
		offers:  map[schemas.UserID][]*schemas.Offer{},
		seen:    map[schemas.UserID]map[schemas.PinID]bool{},
		actions: map[schemas.UserID][]*schemas.EnrichedAction{},
		waiting: map[schemas.PinID][]*schemas.ActionEvent{},
		counted: map[string]bool{},
		steps:   map[schemas.PinID]map[schemas.Micros]map[string]int64{},
	}
}

// Apply takes in one event, which it keeps and must not be changed afterwards. What a deleted user does is dropped.
func (p *Product) Apply(line schemas.Line) {
	p.present = nil
	switch e := line.Event.(type) {
	case *schemas.UserEvent:
		p.user(e.Actor).apply(e)
	case *schemas.FollowEvent:
		if !p.user(e.Actor).deleted {
			p.edge(e.Actor, e.Object).apply(e)
		}
	case *schemas.PinEvent:
		if !p.user(e.Actor).deleted {
			p.applyPin(e)
		}
	case *schemas.ActionEvent:
		p.applyAction(e)
	case *schemas.Offer:
		p.offers[e.User] = append(p.offers[e.User], e)
	}
}

// Users returns everybody who was named as an actor and is not deleted, in ascending order.
func (p *Product) Users() []schemas.UserID {
	var users []schemas.UserID
	for id, u := range p.users {
		if !u.deleted {
			users = append(users, id)
		}
	}
	slices.Sort(users)
	return users
}

// Pins returns all pins that exist, in ascending order, which must not be changed.
func (p *Product) Pins() []Pin {
	if p.present != nil {
		return p.present
	}
	p.present = []Pin{}
	for _, id := range slices.Sorted(maps.Keys(p.pins)) {
		if pin, ok := p.Pin(id); ok {
			p.present = append(p.present, pin)
		}
	}
	return p.present
}

// Serve remembers that the user was shown the pins.
func (p *Product) Serve(user schemas.UserID, pins ...schemas.PinID) {
	if p.seen[user] == nil {
		p.seen[user] = map[schemas.PinID]bool{}
	}
	for _, pin := range pins {
		p.seen[user][pin] = true
	}
}

func (p *Product) user(id schemas.UserID) *user {
	if p.users[id] == nil {
		p.users[id] = &user{}
	}
	return p.users[id]
}

// deleted says whether a user is gone, without making a user of an id.
func (p *Product) deleted(id schemas.UserID) bool { return p.users[id] != nil && p.users[id].deleted }

func (u *user) apply(e *schemas.UserEvent) {
	switch {
	case e.Verb == schemas.Delete:
		u.deleted = true
	case u.profile == nil, u.profile.ID != e.ID && later(&e.Event, &u.profile.Event):
		u.profile = e
	}
}

// later says whether a comes after b: by event time, then by id.
func later(a, b *schemas.Event) bool {
	return cmp.Or(cmp.Compare(a.Time, b.Time), cmp.Compare(a.ID, b.ID)) > 0
}
