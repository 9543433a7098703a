// Package oracle computes the results of the pipeline by brute force: it keeps every event, and evaluates all of them for
// every query. Tests compare the pipeline with it. Therefore it shares only the records and the formula of the score with
// the pipeline. If the two differ, check both against the specification.
//
// You can apply events in any order and any number of times, except actions. Apply only valid events: neither events that the
// API would reject, nor events that the pipeline would send to the dead-letter topic.
//
// The oracle has no arrival times, so nothing expires. Edge weights are 1. Pools and lists have no cap except the requested one.
// Affinities and related pins are not computed.
package oracle

import (
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
	users   map[schemas.UserID]bool // by whether the user is deleted
	pins    map[schemas.PinID]*pin
	edges   map[schemas.UserID]map[schemas.ID]*edge // by the follower or blocker, then by the other side
	seen    map[schemas.UserID]map[schemas.PinID]bool
	actions map[schemas.UserID][]Action

	present []Pin // result of Pins since the last event; nil: not computed
}

// New returns a product without events.
func New(cfg Config) *Product {
	if cfg.Quality == nil {
		cfg.Quality = func(*schemas.PinEvent) float64 { return 1 }
	}
	return &Product{
		cfg:     cfg,
		users:   map[schemas.UserID]bool{},
		pins:    map[schemas.PinID]*pin{},
		edges:   map[schemas.UserID]map[schemas.ID]*edge{},
		seen:    map[schemas.UserID]map[schemas.PinID]bool{},
		actions: map[schemas.UserID][]Action{},
	}
}

// Apply applies an event. It keeps the event, which must not be modified afterwards. Events by a deleted user are dropped.
func (p *Product) Apply(line schemas.Line) {
	p.present = nil
	switch e := line.Event.(type) {
	case *schemas.UserEvent:
		p.users[e.Actor] = p.users[e.Actor] || e.Verb == schemas.Delete
	case *schemas.FollowEvent:
		if p.acts(e.Actor) {
			p.edge(e.Actor, e.Object).apply(e)
		}
	case *schemas.PinEvent:
		if p.acts(e.Actor) {
			p.applyPin(e)
		}
	case *schemas.ActionEvent:
		if p.acts(e.Actor) {
			p.applyAction(e)
		}
	}
}

// acts adds the user, and reports whether the user is not deleted.
func (p *Product) acts(id schemas.UserID) bool {
	deleted := p.users[id]
	p.users[id] = deleted
	return !deleted
}

// Users returns the users who were the actor of an event and are not deleted, in ascending order.
func (p *Product) Users() []schemas.UserID {
	var users []schemas.UserID
	for id, deleted := range p.users {
		if !deleted {
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

func (p *Product) deleted(id schemas.UserID) bool { return p.users[id] }
