// Package oracle computes the results of the pipeline by brute force: it keeps every event, and evaluates all of them for
// every query. Tests compare the pipeline with it. Therefore it shares only the records and the formula of the score with
// the pipeline. If the two differ, check both against the specification.
//
// You can apply events in any order and any number of times. Apply only valid events: neither events that the API would
// reject, nor events that the pipeline would send to the dead-letter topic.
//
// The oracle has no arrival times. Therefore:
//
//   - it remembers the event ids of actions forever;
//   - an action waits for its pin until StopWaiting;
//   - nothing expires.
//
// Edge weights are 1. Pools and lists have no cap except the requested one. Affinities and related pins are not computed.
package oracle

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/smartfeed/smartfeed/schemas"
)

// Config is the part of the pipeline's configuration that determines the results.
type Config struct {
	HalfLife time.Duration                          // of scores, > 0
	Quality  func(create *schemas.PinEvent) float64 // quality of a pin, > 0; nil: 1 for every pin

	MaxFollowees int // maximum number of a user's follows; the earliest have priority; 0: unlimited
}

// Product is the state after the events applied so far. It is not safe for concurrent use.
type Product struct {
	cfg     Config
	users   map[schemas.UserID]*user
	pins    map[schemas.PinID]*pin
	edges   map[schemas.UserID]map[schemas.ID]*edge // by the follower or blocker, then by the other side
	offers  map[schemas.UserID][]*schemas.Offer
	seen    map[schemas.UserID]map[schemas.PinID]bool
	actions map[schemas.UserID][]*schemas.EnrichedAction // joined
	waiting map[schemas.PinID][]*schemas.ActionEvent     // actions whose pin is unknown
	counted map[string]bool                              // ids of actions
	steps   map[schemas.PinID]map[schemas.Micros]map[string]int64

	present []Pin // result of Pins since the last event; nil: not computed
}

// user is the state of a user from the stream of users.
type user struct {
	profile *schemas.UserEvent // the update with the highest (time, id); nil: none
	deleted bool
}

// New returns a product without events.
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

// Apply applies an event. It keeps the event, which must not be modified afterwards. Events by a deleted user are dropped.
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

// Users returns the users who were the actor of an event and are not deleted, in ascending order.
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

// Pins returns all pins that exist, in ascending order. The result must not be modified.
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

// Serve records that the pins were served to the user.
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

// deleted reports whether a user is deleted. Unlike user, it does not create an entry.
func (p *Product) deleted(id schemas.UserID) bool { return p.users[id] != nil && p.users[id].deleted }

func (u *user) apply(e *schemas.UserEvent) {
	switch {
	case e.Verb == schemas.Delete:
		u.deleted = true
	case u.profile == nil, u.profile.ID != e.ID && later(&e.Event, &u.profile.Event):
		u.profile = e
	}
}

// later reports whether a is after b, by event time, then by id.
func later(a, b *schemas.Event) bool {
	return cmp.Or(cmp.Compare(a.Time, b.Time), cmp.Compare(a.ID, b.ID)) > 0
}
