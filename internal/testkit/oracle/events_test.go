package oracle

import (
	"fmt"

	"github.com/smartfeed/smartfeed/schemas"
)

const second schemas.Micros = 1e6

// event returns the common fields of an event. Its id consists of the time, the actor, the verb and the object.
func event(at int, actor schemas.UserID, verb schemas.Verb, object schemas.ID) schemas.Event {
	return schemas.Event{
		ID:     fmt.Sprintf("%d %s %s %s", at, actor, verb, object),
		Time:   schemas.Micros(at) * second,
		Actor:  actor,
		Verb:   verb,
		Object: object,
	}
}

func edgeEvent(at int, actor schemas.UserID, verb schemas.Verb, other schemas.ID) schemas.Line {
	return schemas.NewLine(&schemas.FollowEvent{Event: event(at, actor, verb, other)})
}

func pinEvent(at int, actor schemas.UserID, verb schemas.Verb, id schemas.ID, change ...func(*schemas.PinEvent)) schemas.Line {
	e := &schemas.PinEvent{Event: event(at, actor, verb, id)}
	for _, f := range change {
		f(e)
	}
	return schemas.NewLine(e)
}

func on(board schemas.BoardID, interests ...schemas.InterestID) func(*schemas.PinEvent) {
	return func(e *schemas.PinEvent) { e.Board, e.Interests = board, interests }
}

func userEvent(at int, user schemas.UserID, verb schemas.Verb) schemas.Line {
	return schemas.NewLine(&schemas.UserEvent{Event: event(at, user, verb, schemas.ID(user))})
}
