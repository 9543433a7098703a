// Package workload generates the load of `smartfeed bench`. Each run has its own users, follows and pins, with a unique
// prefix, and sends requests by these users.
//
//	publish    a new pin of an author, from its due time until it is in the pool of a follower; every reader follows every
//	           author, so each publication is a fan-out to all readers
//	visits     a reader requests the feed: new items on top of old ones
//	features   up to ten features of a reader
//	actions    a reader acts on a pin, until the brokers have acknowledged the action
//
// Watchers are followers whose pools the workload polls. They never visit, because a visit removes the served pins from the
// pools. Until the pin is there, the workload polls a pool every two milliseconds, and the duration of this request is part of
// the measurement.
package workload

import (
	"context"
	"fmt"
	"time"

	"github.com/smartfeed/smartfeed/internal/convert"
	"github.com/smartfeed/smartfeed/internal/settings"
	"github.com/smartfeed/smartfeed/schemas"
)

// Config sets the size of the generated data. See DefaultConfig.
type Config struct {
	Prefix string // of all ids; must be different in concurrent runs
	Users  int    // readers, 1 to 100,000: each follows every author
	Pins   int    // initial pins per author, 0 to 1,000
	Limit  int    // items of a visit, 1 to 100
}

// authors is the number of authors: enough to use every partition, and few enough for all readers to follow.
const authors = 8

// DefaultConfig returns the defaults with the name of a run.
func DefaultConfig(run string) Config {
	return Config{Prefix: "bench-" + run, Users: 100, Pins: 50, Limit: 25}
}

// Validate reports every value that is out of range.
func (c Config) Validate() error {
	problems := settings.Problems{
		settings.Within("--users", c.Users, 1, 100_000),
		settings.Within("--pins", c.Pins, 0, 1000),
		settings.Within("--limit", c.Limit, 1, 100),
	}
	_, err := schemas.ParseUserID("user:" + c.Prefix + "-reader-100000")
	problems.Want(err == nil, "--prefix %q: %w", c.Prefix, err)
	return problems.Err()
}

func (c Config) author(i int) schemas.UserID {
	return schemas.UserID(fmt.Sprintf("user:%s-author-%d", c.Prefix, i%authors))
}

// watcher returns the follower of an author whose pool the workload polls.
func (c Config) watcher(i int) schemas.UserID {
	return schemas.UserID(fmt.Sprintf("user:%s-watcher-%d", c.Prefix, i%authors))
}

func (c Config) reader(i int) schemas.UserID {
	return schemas.UserID(fmt.Sprintf("user:%s-reader-%d", c.Prefix, i%c.Users))
}

// pin returns an initial pin.
func (c Config) pin(author, i int) schemas.ID {
	return schemas.ID(fmt.Sprintf("pin:%s-old-%d-%d", c.Prefix, author, i))
}

// People returns all users of the run.
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

// event returns an event by a user at the present time.
func (c Config) event(id string, actor schemas.UserID, verb schemas.Verb, object schemas.ID) schemas.Event {
	return schemas.Event{ID: c.Prefix + "-" + id, Time: schemas.MicrosOf(time.Now()), Actor: actor, Verb: verb, Object: object}
}

// Load returns the events that create the data.
func (c Config) Load() []schemas.Line {
	var lines []schemas.Line
	follow := func(who, whom schemas.UserID) {
		e := &schemas.FollowEvent{Event: c.event(fmt.Sprintf("f-%s-%s", who, whom), who, schemas.Follow, schemas.ID(whom))}
		lines = append(lines, schemas.NewLine(e))
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
	return schemas.NewLine(&schemas.PinEvent{
		Event: c.event("p-"+string(pin), author, schemas.Create, pin), Title: "a pin of " + c.Prefix,
		Interests: []schemas.InterestID{schemas.InterestID("interest:" + c.Prefix)}, Attributes: map[string]string{"made_by": "smartfeed bench"},
	})
}

// act returns action n of the run.
func (c Config) act(n int) schemas.Line {
	verbs := []schemas.Verb{schemas.View, schemas.View, schemas.Closeup, schemas.Click, schemas.Save}
	pin := c.pin(n%authors, n/authors%max(c.Pins, 1))
	e := &schemas.ActionEvent{Event: c.event(fmt.Sprint("a-", n), c.reader(n), verbs[n%len(verbs)], pin), Surface: "bench"}
	return schemas.NewLine(e)
}

// Delete returns the events that delete all users of the run, which deletes their pins, edges, pools and feeds.
func (c Config) Delete() []schemas.Line {
	return convert.All(c.People(), func(user schemas.UserID) schemas.Line {
		return schemas.NewLine(&schemas.UserEvent{Event: c.event("d-"+string(user), user, schemas.Delete, schemas.ID(user))})
	})
}

// Publisher publishes events. *topics.Publisher implements it.
type Publisher interface {
	Publish(ctx context.Context, lines []schemas.Line) error
}
