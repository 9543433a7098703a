package lastfm

import (
	"fmt"
	"iter"
	"strconv"
	"time"

	"github.com/smartfeed/smartfeed/internal/convert"
	"github.com/smartfeed/smartfeed/internal/tools/load"
	"github.com/smartfeed/smartfeed/schemas"
)

// Events yields all events: users first, then follows, pins and actions.
func (d *Dataset) Events(shift time.Duration) iter.Seq[schemas.Line] {
	return load.Concat(d.Users(shift), d.Follows(shift), d.Pins(shift), d.Actions(shift))
}

// Users yields the users, ascending.
func (d *Dataset) Users(shift time.Duration) iter.Seq[schemas.Line] {
	at := moved(utc(beginning), shift)
	return lines(d.users, func(user int32) schemas.Input {
		return &schemas.UserEvent{Event: event("user/"+number(user), at, user, schemas.Update, schemas.ID(userID(user)))}
	})
}

// event returns an event with the prefix of the import in its id.
func event(id string, at schemas.Micros, actor int32, verb schemas.Verb, object schemas.ID) schemas.Event {
	return schemas.Event{ID: "lastfm/" + id, Time: at, Actor: userID(actor), Verb: verb, Object: object}
}

// Follows yields the follows: of friends, in file order, then of interests, by user.
func (d *Dataset) Follows(shift time.Duration) iter.Seq[schemas.Line] {
	at := moved(utc(beginning), shift)
	friends := lines(d.friends, func(f friendship) schemas.Input {
		return follow(f.user, schemas.ID(userID(f.friend)), at)
	})
	interests := lines(d.favorites, func(f favorite) schemas.Input {
		return follow(f.user, schemas.ID(interestID(f.tag)), at)
	})
	return load.Concat(friends, interests)
}

func follow(user int32, followee schemas.ID, at schemas.Micros) schemas.Input {
	return &schemas.FollowEvent{Event: event(fmt.Sprintf("follow/%d-%s", user, followee), at, user, schemas.Follow, followee)}
}

// Pins yields the pins, newest first, and those of one day by user and artist. The order affects only the cost: pools that
// are full of the newest pins reject the rest.
func (d *Dataset) Pins(shift time.Duration) iter.Seq[schemas.Line] {
	return lines(d.pins, func(p pin) schemas.Input {
		by, at := d.artistOf(p.artist), moved(utc(int64(p.day)*secondsADay), shift)
		return &schemas.PinEvent{
			Event:      event(fmt.Sprintf("pin/%d-%d", p.user, p.artist), at, p.user, schemas.Create, pinID(p.user, p.artist)),
			Board:      schemas.BoardID(fmt.Sprintf("board:%d-%d", p.user, p.tags[0])),
			Interests:  interestIDs(p.tags),
			Title:      by.name,
			Link:       by.link,
			Attributes: map[string]string{"artist": number(p.artist)},
		}
	})
}

// Actions yields the actions, in file order, which is the order of their times.
func (d *Dataset) Actions(shift time.Duration) iter.Seq[schemas.Line] {
	return lines(d.actions, func(a action) schemas.Input {
		return &schemas.ActionEvent{
			Event:      event("action/"+number(a.row), moved(a.time(), shift), a.user, verbOf(a.weight), pinID(a.author, a.artist)),
			Attributes: map[string]string{"weight": number(a.weight)},
		}
	})
}

// lines yields an event for each row.
func lines[R any](rows []R, of func(R) schemas.Input) iter.Seq[schemas.Line] {
	return func(yield func(schemas.Line) bool) {
		for _, row := range rows {
			if !yield(schemas.NewLine(of(row))) {
				return
			}
		}
	}
}

// artistOf returns the artist's name and link. The name of an artist without a description contains its number.
func (d *Dataset) artistOf(id int32) artist {
	a, known := d.artists[id]
	if !known {
		a.name = fmt.Sprintf("artist %d", id)
	}
	return a
}

func verbOf(weight int32) schemas.Verb {
	if weight >= SaveWeight {
		return schemas.Save
	}
	return schemas.Click
}

func moved(t time.Time, shift time.Duration) schemas.Micros { return schemas.MicrosOf(t.Add(shift)) }

func number(n int32) string { return strconv.Itoa(int(n)) }

func userID(user int32) schemas.UserID { return schemas.UserID("user:" + number(user)) }

func interestID(tag int32) schemas.InterestID { return schemas.InterestID("interest:" + number(tag)) }

func interestIDs(tags []int32) []schemas.InterestID { return convert.All(tags, interestID) }

func pinID(user, artist int32) schemas.ID { return schemas.ID(fmt.Sprintf("pin:%d-%d", user, artist)) }
