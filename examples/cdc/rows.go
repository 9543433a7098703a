package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/smartfeed/smartfeed/schemas"
)

// tables maps each table to the function that returns the events of a change. Change these functions, and the type row, for
// the tables of your application.
var tables = map[string]func(change, row) []schemas.Input{"users": users, "follows": follows, "pins": pins}

// change is a record of Debezium.
type change struct {
	Op     string          `json:"op"` // c: inserted, u: updated, d: deleted, r: read by a snapshot
	Before json.RawMessage `json:"before"`
	After  json.RawMessage `json:"after"`
	Source struct {
		Committed schemas.Micros `json:"ts_us"`
		LSN       uint64         `json:"lsn"`
	} `json:"source"`
}

// row has the columns of all tables.
type row struct {
	ID        string    `json:"id"`
	Interests []string  `json:"interests"`
	Created   time.Time `json:"created_at"`
	Updated   time.Time `json:"updated_at"`

	Country string `json:"country"`

	Follower string `json:"follower"`
	Kind     string `json:"kind"`
	Followee string `json:"followee"`

	Author string `json:"author"`
	Board  string `json:"board"`
	Title  string `json:"title"`
	Link   string `json:"link"`
}

// eventsOf returns the events of a record, or an error that says why the record has no valid event.
func eventsOf(r *kgo.Record, now schemas.Micros) ([]schemas.Line, error) {
	if len(r.Value) == 0 {
		return nil, nil // a tombstone, for compaction
	}
	var c change
	if err := json.Unmarshal(r.Value, &c); err != nil {
		return nil, fmt.Errorf("read change: %w", err)
	}
	changed, err := c.row()
	if err != nil {
		return nil, fmt.Errorf("read row: %w", err)
	}
	var lines []schemas.Line
	for _, e := range tables[r.Topic[strings.LastIndexByte(r.Topic, '.')+1:]](c, changed) {
		line := schemas.NewLine(e)
		if err := line.Validate(now, nil); err != nil {
			return nil, err
		}
		lines = append(lines, line)
	}
	return lines, nil
}

// row returns the row after the change, or the deleted row.
func (c change) row() (r row, err error) {
	text := c.After
	switch c.Op {
	case "c", "u", "r":
	case "d":
		text = c.Before
	default:
		return r, fmt.Errorf("op %q: want c, u, d or r", c.Op)
	}
	if bytes.Contains(text, []byte("__debezium_unavailable_value")) {
		return r, errors.New("a column is missing: set REPLICA IDENTITY FULL for the table")
	}
	return r, json.Unmarshal(text, &r)
}

// event returns the event of a change, with the time of the commit. If a transaction changes a row twice, the times are equal,
// and the id with the higher LSN wins. A snapshot does not know when a row was committed: at is the time in the row.
func (c change) event(actor, object, key string, at time.Time) schemas.Event {
	e := schemas.Event{Time: c.Source.Committed, Actor: schemas.UserID(actor), Verb: schemas.Update, Object: schemas.ID(object)}
	e.ID = fmt.Sprintf("%s@%016x", key, c.Source.LSN)
	switch c.Op {
	case "r":
		e.Time = schemas.MicrosOf(at)
		e.ID = fmt.Sprintf("%s@%d", key, e.Time)
	case "d":
		e.Verb = schemas.Delete
	}
	return e
}

// users returns an update, or the delete that erases the user.
func users(c change, r row) []schemas.Input {
	id := "user:" + r.ID
	e := schemas.UserEvent{Event: c.event(id, id, id, r.Updated), Interests: interests(r.Interests)}
	e.Attributes = map[string]string{"country": r.Country}
	return []schemas.Input{&e}
}

// follows returns a follow or an unfollow. In a tie, the unfollow wins. A follow has a later time than its commit, so that a row
// that a transaction deletes and inserts again remains a follow.
func follows(c change, r row) []schemas.Input {
	followee := r.Kind + ":" + r.Followee
	e := schemas.FollowEvent{Event: c.event("user:"+r.Follower, followee, r.Follower+">"+followee, r.Created)}
	switch e.Verb {
	case schemas.Delete:
		e.Verb = schemas.Unfollow
	default:
		e.Verb, e.Time = schemas.Follow, e.Time+1
	}
	return []schemas.Input{&e}
}

// pins returns the create, at the time in the row, and the update of a row that has changed since. A changed row repeats the
// create, because smartfeed shows no pin without one, and the row before the change can have been invalid.
func pins(c change, r row) []schemas.Input {
	id := "pin:" + r.ID
	update := schemas.PinEvent{
		Event: c.event("user:"+r.Author, id, id, r.Updated), Interests: interests(r.Interests), Title: r.Title, Link: r.Link,
	}
	if r.Board != "" {
		update.Board = schemas.BoardID("board:" + r.Board)
	}
	create := update
	create.ID, create.Time, create.Verb = id+"@create", schemas.MicrosOf(r.Created), schemas.Create
	switch {
	case c.Op == "d":
		return []schemas.Input{&update}
	case c.Op == "c", c.Op == "r" && !r.Updated.After(r.Created):
		return []schemas.Input{&create}
	}
	return []schemas.Input{&create, &update}
}

// interests returns the ids of interests.
func interests(names []string) []schemas.InterestID {
	var ids []schemas.InterestID
	for _, name := range names {
		ids = append(ids, schemas.InterestID("interest:"+name))
	}
	return ids
}
