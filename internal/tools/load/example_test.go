package load_test

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"github.com/smartfeed/smartfeed/internal/tools/load"
	"github.com/smartfeed/smartfeed/schemas"
)

// broker acknowledges all records except those that are too large. *topics.Publisher uses a real broker.
type broker struct{}

func (broker) Send(_ context.Context, line schemas.Line, done func(error)) {
	if line.Key == "user:large" {
		done(errors.New("record is too large"))
		return
	}
	done(nil)
}

func (broker) Flush(context.Context) error { return nil }

// All stops at the first rejected event.
func ExampleAll() {
	users := func(names ...string) iter.Seq[schemas.Line] {
		return func(yield func(schemas.Line) bool) {
			for _, name := range names {
				event := schemas.Event{ID: name, Time: 1, Actor: schemas.UserID(name), Verb: schemas.Update, Object: schemas.ID(name)}
				if !yield(schemas.Line{Stream: schemas.StreamUsers, Key: name, Event: &schemas.UserEvent{Event: event}}) {
					return
				}
			}
		}
	}
	acknowledged := 0
	err := load.All(context.Background(), broker{}, load.Concat(users("user:ada", "user:bob"), users("user:large")),
		func(schemas.Line) { acknowledged++ })
	fmt.Println(acknowledged, "acknowledged")
	fmt.Println(err)
	// Output:
	// 2 acknowledged
	// publish: record is too large
}
