// Package workload is what `smartfeed bench` asks of a running product: users, follows and pins of its own, under a prefix
// that no other run has, and requests by them.
//
//	publish    a new pin of an author, from when it was due until it stands in the pool of a follower; every reader
//	           follows the author, too, so that each publication is a fan-out to all of them
//	visits     a reader asks for the feed: new items, if there are some, on top of old ones
//	features   up to ten features of a reader
//	actions    a reader acts on a pin, until the brokers have acknowledged it
//
// Followers whose pools are looked at never visit, because a visit takes what it shows out of the pools. A pool is looked
// at every two milliseconds, by one request at a time, and the time that it takes is a part of what is measured.
package workload

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/smartfeed/smartfeed/internal/bounds"
	"github.com/smartfeed/smartfeed/schemas"
)

// Config says how large the made-up product is. See DefaultConfig.
type Config struct {
	Prefix string // of all names; two runs at once need two
	Users  int    // readers, 1 to 100,000: each follows every author
	Pins   int    // of each author at first, 0 to 1,000
	Limit  int    // items of a visit, 1 to 100
}

// authors is among how many publications are spread: enough to be in every partition, few for all readers to follow.
const authors = 8

// DefaultConfig returns the defaults, with the name of a run.
func DefaultConfig(run string) Config {
	return Config{Prefix: "bench-" + run, Users: 100, Pins: 50, Limit: 25}
}

// Validate reports every value that is out of its bounds.
func (c Config) Validate() error {
	problems := []error{
		bounds.Within("--users", c.Users, 1, 100_000),
		bounds.Within("--pins", c.Pins, 0, 1000),
		bounds.Within("--limit", c.Limit, 1, 100),
	}
	if _, err := schemas.ParseUserID("user:" + c.Prefix + "-reader-100000"); err != nil {
		problems = append(problems, fmt.Errorf("--prefix %q: %w", c.Prefix, err))
	}
	return errors.Join(problems...)
}

func (c Config) author(i int) schemas.UserID {
	return schemas.UserID(fmt.Sprintf("user:%s-author-%d", c.Prefix, i%authors))
}

// watcher is the follower of an author whose pool is looked at.
func (c Config) watcher(i int) schemas.UserID {
	return schemas.UserID(fmt.Sprintf("user:%s-watcher-%d", c.Prefix, i%authors))
}

func (c Config) reader(i int) schemas.UserID {
	return schemas.UserID(fmt.Sprintf("user:%s-reader-%d", c.Prefix, i%c.Users))
}

// pin is one of those that there are at first.
func (c Config) pin(author, i int) schemas.ID {
	return schemas.ID(fmt.Sprintf("pin:%s-old-%d-%d", c.Prefix, author, i))
}

// People are all users of the run.
func (c Config) People() []schemas.UserID {
	var all []schemas.UserID
	for i := range authors {
		all = append(all, c.author(i), c.watcher(i))
	}
	for i := range c.Users {
		all = append(all, c.reader(i))
	}
	return all
}

// event is one by a user, now.
func (c Config) event(id string, actor schemas.UserID, verb schemas.Verb, object schemas.ID) schemas.Event {
	return schemas.Event{ID: c.Prefix + "-" + id, Time: schemas.MicrosOf(time.Now()), Actor: actor, Verb: verb, Object: object}
}

// Load is the events that make the product.
func (c Config) Load() []schemas.Line {
	var lines []schemas.Line
	follow := func(who, whom schemas.UserID) {
		e := &schemas.FollowEvent{Event: c.event(fmt.Sprintf("f-%s-%s", who, whom), who, schemas.Follow, schemas.ID(whom))}
		lines = append(lines, schemas.Line{Stream: schemas.StreamFollows, Event: e, Key: e.Key()})
	}
	for a := range authors {
		follow(c.watcher(a), c.author(a))
		for u := range c.Users {
			follow(c.reader(u), c.author(a))
		}
	}
	for a := range authors {
		for i := range c.Pins {
			lines = append(lines, c.create(c.author(a), c.pin(a, i)))
		}
	}
	return lines
}

func (c Config) create(author schemas.UserID, pin schemas.ID) schemas.Line {
	e := &schemas.PinEvent{
		Event: c.event("p-"+string(pin), author, schemas.Create, pin), Title: "a pin of " + c.Prefix,
		Interests: []schemas.InterestID{schemas.InterestID("interest:" + c.Prefix)}, Attributes: map[string]string{"made_by": "smartfeed bench"},
	}
	return schemas.Line{Stream: schemas.StreamPins, Event: e, Key: e.Key()}
}

// act is action n of the run.
func (c Config) act(n int) schemas.Line {
	verbs := []schemas.Verb{schemas.View, schemas.View, schemas.Closeup, schemas.Click, schemas.Save}
	pin := c.pin(n%authors, n/authors%max(c.Pins, 1))
	e := &schemas.ActionEvent{Event: c.event(fmt.Sprint("a-", n), c.reader(n), verbs[n%len(verbs)], pin), Surface: "bench"}
	return schemas.Line{Stream: schemas.StreamActions, Event: e, Key: e.Key()}
}

// Delete is the events that delete everybody of the run, which takes their pins, edges, pools and feeds with them.
func (c Config) Delete() []schemas.Line {
	var lines []schemas.Line
	for _, user := range c.People() {
		e := &schemas.UserEvent{Event: c.event("d-"+string(user), user, schemas.Delete, schemas.ID(user))}
		lines = append(lines, schemas.Line{Stream: schemas.StreamUsers, Event: e, Key: e.Key()})
	}
	return lines
}

// Publisher puts events into their topics; *topics.Publisher is one.
type Publisher interface {
	Publish(ctx context.Context, lines []schemas.Line) error
}
