package lastfm

import (
	"fmt"
	"iter"
	"strconv"
	"time"

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
		return &schemas.UserEvent{Event: schemas.Event{
			ID:     fmt.Sprintf("lastfm/user/%d", user),
			Time:   at,
			Actor:  userID(user),
			Verb:   schemas.Update,
			Object: schemas.ID(userID(user)),
		}}
	})
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
	return &schemas.FollowEvent{Event: schemas.Event{
		ID:     fmt.Sprintf("lastfm/follow/%d-%s", user, followee),
		Time:   at,
		Actor:  userID(user),
		Verb:   schemas.Follow,
		Object: followee,
	}}
}

// Pins yields the pins, newest first, and those of one day by user and artist. The order affects only the cost: pools that
// are full of the newest pins reject the rest.
func (d *Dataset) Pins(shift time.Duration) iter.Seq[schemas.Line] {
	return lines(d.pins, func(p pin) schemas.Input {
		by := d.artistOf(p.artist)
		e := &schemas.PinEvent{
			Event: schemas.Event{
				ID:     fmt.Sprintf("lastfm/pin/%d-%d", p.user, p.artist),
				Time:   moved(utc(int64(p.day)*secondsADay), shift),
				Actor:  userID(p.user),
				Verb:   schemas.Create,
				Object: pinID(p.user, p.artist),
			},
			Board:      schemas.BoardID(fmt.Sprintf("board:%d-%d", p.user, p.tags[0])),
			Interests:  interestIDs(p.tags),
			Title:      by.name,
			Link:       by.link,
			Attributes: map[string]string{"artist": number(p.artist)},
		}
		return e
	})
}

// Actions yields the actions, in file order, which is the order of their times.
func (d *Dataset) Actions(shift time.Duration) iter.Seq[schemas.Line] {
	return lines(d.actions, func(a action) schemas.Input {
		e := &schemas.ActionEvent{
			Event: schemas.Event{
				ID:     fmt.Sprintf("lastfm/action/%d", a.row),
				Time:   moved(a.time(), shift),
				Actor:  userID(a.user),
				Verb:   verbOf(a.weight),
				Object: pinID(a.author, a.artist),
			},
			Attributes: map[string]string{"weight": number(a.weight)},
		}
		return e
	})
}

// lines yields an event for each row.
func lines[R any](rows []R, event func(R) schemas.Input) iter.Seq[schemas.Line] {
	return func(yield func(schemas.Line) bool) {
		for _, row := range rows {
			if !yield(schemas.NewLine(event(row))) {
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

func interestIDs(tags []int32) []schemas.InterestID {
	ids := make([]schemas.InterestID, len(tags))
	for i, tag := range tags {
		ids[i] = interestID(tag)
	}
	return ids
}

func pinID(user, artist int32) schemas.ID { return schemas.ID(fmt.Sprintf("pin:%d-%d", user, artist)) }
