package app

import (
	"fmt"
	"maps"
	"time"
)

// event returns an event. more are its other fields, if any.
func event(at time.Time, id, stream, actor, verb, object string, more map[string]any) map[string]any {
	e := map[string]any{
		"stream": stream, "id": id, "time": at.Format(time.RFC3339Nano), "actor": actor, "verb": verb, "object": object,
	}
	maps.Copy(e, more)
	return e
}

// story collects events.
type story struct {
	prefix string // of the ids; unique in a test
	now    time.Time
	events []map[string]any
}

// add adds an event, a millisecond after the previous one.
func (s *story) add(stream, actor, verb, object string, more map[string]any) {
	s.addAt(s.now.Add(time.Duration(len(s.events))*time.Millisecond), stream, actor, verb, object, more)
}

// addAt adds an event with another time.
func (s *story) addAt(at time.Time, stream, actor, verb, object string, more map[string]any) {
	s.events = append(s.events, event(at, fmt.Sprint("story-", s.prefix, len(s.events)), stream, actor, verb, object, more))
}
