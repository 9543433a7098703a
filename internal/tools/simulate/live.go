package simulate

import (
	"fmt"
	"iter"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/smartfeed/smartfeed/schemas"
)

// Limits of the pins that users act on: the newest ones of each interest.
const (
	shelfPins = 500    // minimum per interest; up to twice as many are kept
	knownPins = 20_000 // maximum of initial pins
)

// live generates the live events of a world.
type live struct {
	*world
	run     string
	chance  *rand.Rand
	events  int
	created int
	shelves map[int][]shelved // recent pins by interest, oldest first
}

// shelved is a pin with the data that actions on it need.
type shelved struct {
	id     schemas.PinID
	author int
}

// newLive returns the live events of a world. Their ids and the ids of new pins contain the run. The world, the run and the
// times determine the events.
func newLive(w *world, run string) *live {
	l := &live{world: w, run: run, chance: w.random("run "+run, 0), shelves: map[int][]shelved{}}
	for n := max(0, w.Pins-knownPins); n < w.Pins; n++ {
		l.shelve(w.pin(n))
	}
	return l
}

func (l *live) shelve(p pin) {
	for _, i := range p.interests {
		shelf := append(l.shelves[i], shelved{id: p.id, author: p.author})
		if len(shelf) > 2*shelfPins {
			shelf = slices.Clone(shelf[shelfPins:])
		}
		l.shelves[i] = shelf
	}
}

// all yields one event for each time that tick yields.
func (l *live) all(tick iter.Seq[time.Time]) iter.Seq[schemas.Line] {
	return func(yield func(schemas.Line) bool) {
		for now := range tick {
			if !yield(l.next(schemas.MicrosOf(now))) {
				return
			}
		}
	}
}

// next returns the next event. Of 1,000 events, 60 are new pins, 40 follows, 15 unfollows, and the rest actions.
func (l *live) next(now schemas.Micros) schemas.Line {
	actor := popular(l.chance, l.Users)
	switch n := l.chance.IntN(1000); {
	case n < 60:
		return l.post(actor, now)
	case n < 100:
		return l.edge(schemas.Follow, actor, l.discovery(actor), now)
	case n < 115:
		return l.edge(schemas.Unfollow, actor, pick(l.chance, l.edges(actor)), now)
	}
	pin, ok := l.choose(actor)
	if !ok {
		return l.post(actor, now)
	}
	return l.act(actor, pin, now)
}

func (l *live) eventID() string {
	l.events++
	return fmt.Sprintf("sim/%s/%d", l.run, l.events)
}

// post creates a new pin of the author.
func (l *live) post(author int, now schemas.Micros) schemas.Line {
	l.created++
	p := l.newPin(l.chance, author, fmt.Sprintf("%s-%s-%d", l.userName(author), l.run, l.created))
	l.shelve(p)
	return l.create(p, l.eventID(), now)
}

func (l *live) edge(v schemas.Verb, actor int, followee schemas.ID, now schemas.Micros) schemas.Line {
	return schemas.NewLine(&schemas.FollowEvent{Event: l.event(l.eventID(), now, actor, v, followee)})
}

// discovery returns a popular followee: a person in most cases, or an interest or a board.
func (l *live) discovery(actor int) schemas.ID {
	other := popular(l.chance, l.Users)
	if other == actor {
		other = (other + 1) % l.Users
	}
	switch n := l.chance.IntN(10); {
	case n < 3:
		return schemas.ID(l.interest(popular(l.chance, l.Interests)))
	case n < 5 && l.BoardsPerUser > 0:
		return schemas.ID(l.board(other, l.chance.IntN(l.BoardsPerUser)))
	}
	return schemas.ID(l.user(other))
}

// choose returns a pin for the actor to act on. The pin is from one of the actor's interests with a probability of 0.8, and
// newer pins are more likely. choose returns false if it finds none.
func (l *live) choose(actor int) (shelved, bool) {
	for range 5 {
		interest := popular(l.chance, l.Interests)
		if l.chance.IntN(5) > 0 {
			tastes := l.tastes(actor)
			interest = tastes[popular(l.chance, len(tastes))]
		}
		shelf := l.shelves[interest]
		if len(shelf) == 0 {
			continue
		}
		if pin := shelf[len(shelf)-1-popular(l.chance, len(shelf))]; pin.author != actor {
			return pin, true
		}
	}
	return shelved{}, false
}

// act returns an action on a pin, most often a view.
func (l *live) act(actor int, pin shelved, now schemas.Micros) schemas.Line {
	verb := l.verb()
	e := &schemas.ActionEvent{
		Event:      l.event(l.eventID(), now, actor, verb, schemas.ID(pin.id)),
		Surface:    pick(l.chance, l.words.surfaces),
		Attributes: map[string]string{"device": pick(l.chance, l.words.devices)},
	}
	switch {
	case verb == schemas.Save && l.BoardsPerUser > 0:
		e.Board = l.board(actor, l.chance.IntN(l.BoardsPerUser))
	case verb == schemas.Closeup:
		e.Attributes["dwell_seconds"] = fmt.Sprint(1 + popular(l.chance, 120))
	}
	return schemas.NewLine(e)
}

func (l *live) verb() schemas.Verb {
	switch n := l.chance.IntN(1000); {
	case n < 450:
		return schemas.View
	case n < 650:
		return schemas.Closeup
	case n < 840:
		return schemas.Click
	case n < 970:
		return schemas.Save
	case n < 998:
		return schemas.Hide
	}
	return schemas.Report
}
