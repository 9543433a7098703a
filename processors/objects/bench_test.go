package objects_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/smartfeed/smartfeed/internal/testkit/proctest"
	"github.com/smartfeed/smartfeed/processors/objects"
	"github.com/smartfeed/smartfeed/schemas"
)

// Processes a backlog of pins with five followees each on the embedded broker in the same process.
func BenchmarkPins(b *testing.B) {
	w := proctest.New(b)
	at := now()
	for i := range b.N {
		pin := schemas.PinID(fmt.Sprintf("pin:%d", i/50))
		verb := schemas.Update
		if i%50 == 0 {
			verb = schemas.Create
		}
		e := pinAt(verb, pin, at.Add(time.Duration(i%50)*time.Second), fmt.Sprint("e", i), func(e *schemas.PinEvent) {
			e.Board = schemas.BoardID(fmt.Sprintf("board:%d", i%2))
			e.Interests = []schemas.InterestID{"interest:1", "interest:2", "interest:3"}
		})
		proctest.Publish(w, w.Streams.Pins, string(pin), e)
	}
	b.ResetTimer()
	w.Start("a", objects.Group(objects.DefaultConfig(), w.Streams, deletedUsers{}))
	w.WaitIdle()
}

// Processes a backlog of actions on a thousand pins.
func BenchmarkActions(b *testing.B) {
	w := proctest.New(b)
	at := now()
	const pins = 1000
	for i := range pins {
		pin := schemas.PinID(fmt.Sprintf("pin:%d", i))
		proctest.Publish(w, w.Streams.Pins, string(pin), pinAt(schemas.Create, pin, at, fmt.Sprint("p", i)))
		var list []*schemas.ActionEvent
		for n := i; n < b.N; n += pins {
			list = append(list, actionAt(schemas.Click, pin, at, fmt.Sprint("a", n)))
		}
		proctest.Publish(w, w.Streams.Actions, string(pin), list...)
	}
	b.ResetTimer()
	w.Start("a", objects.Group(objects.DefaultConfig(), w.Streams, deletedUsers{}))
	w.WaitIdle()
}
