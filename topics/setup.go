package topics

import (
	"context"
	"log/slog"
	"strings"
	"time"

	"github.com/smartfeed/smartfeed/internal/secure"
	"github.com/smartfeed/smartfeed/schemas"
)

// Setup is what the commands need of the program's configuration.
type Setup struct {
	Kafka    Kafka
	Registry string        // address of the schema registry, a URL or host:port; commas separate several
	Access   secure.HTTP   // to the registry
	Verbs    schemas.Verbs // that actions may have; nil: the built-in ones
	Log      *slog.Logger
	// FeedStores names the feed stores beside the first: each is filled by a reader of its own.
	FeedStores []string
	// Outsiders are waited for beside the readers.
	Outsiders []Outsider
	// Progress starts telling a person about a piece of work, of so many steps or, if that is negative, of nobody knows
	// how many; nil: nobody is told. Start calls it.
	Progress func(what string, total int) Progress
	// Work asks what the processes that work the topics off have done so far; nil: nobody can be asked.
	Work func(ctx context.Context) (Work, error)
}

// Progress tells a person how far one piece of work is.
type Progress interface {
	Add(steps int)
	Say(state string)
	Done() time.Duration // ends it, and returns how long it took
}

// Streams opens the streams at the setup's registry.
func (s Setup) Streams(ctx context.Context) (*Streams, error) {
	registry, err := schemas.NewRegistryAs(s.Access, strings.Split(s.Registry, ",")...)
	if err != nil {
		return nil, err
	}
	return Open(ctx, registry)
}

// Readers are all that Wait waits for, but for those that hold a topic whole.
func (s Setup) Readers() []Reader {
	readers := ReadersOf(Catalogue(Profile{Partitions: s.Kafka.Partitions}))
	for _, store := range s.FeedStores {
		readers = append(readers, Reader{Group: MaterializeGroup(store), Topics: ReadBy(Materialize)})
	}
	return readers
}

// Wait is Wait for the setup's readers, and then AwaitOutsiders for its outsiders.
func (s Setup) Wait(ctx context.Context, since schemas.Micros, progress func(WaitState)) error {
	if err := Wait(ctx, s.Kafka, since, progress, s.Readers()...); err != nil {
		return err
	}
	return AwaitOutsiders(ctx, s.Kafka, progress, s.Outsiders...)
}

// Start begins telling a person about a piece of work, see Progress, if the setup has somebody to be told.
func (s Setup) Start(what string, total int) Progress {
	if s.Progress == nil {
		return untold{began: time.Now()}
	}
	return s.Progress(what, total)
}

// untold is the progress of work that nobody is told of.
type untold struct{ began time.Time }

func (untold) Add(int)               {}
func (untold) Say(string)            {}
func (u untold) Done() time.Duration { return time.Since(u.began) }
