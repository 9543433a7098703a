package topics

import (
	"context"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/smartfeed/smartfeed/internal/secure"
	"github.com/smartfeed/smartfeed/schemas"
)

// Setup is the part of the program's configuration that the commands need.
type Setup struct {
	Kafka    Kafka
	Registry string        // addresses of the schema registry: URLs or host:port, separated by commas
	Access   secure.HTTP   // settings of the connection to the registry
	Verbs    schemas.Verbs // allowed verbs of actions; nil: the built-in ones
	Log      *slog.Logger
	// FeedStores names the feed stores beyond the first. Each is filled by its own consumer group.
	FeedStores []string
	// ExternalConsumers are the external consumers that Wait waits for. They take the place of the reader Features.
	ExternalConsumers []ExternalConsumer
	// Progress starts a progress display for an operation of total steps, or of an unknown number of steps if total is
	// negative; nil: no display. Start calls it.
	Progress func(what string, total int) Progress
	// Results returns the counts of the running processes; nil: they cannot be queried.
	Results func(ctx context.Context) (Results, error)
}

// Progress displays the progress of one operation.
type Progress interface {
	Add(steps int)
	Say(state string)
	Done() time.Duration // ends the display and returns the elapsed time
}

// Streams opens the streams with the setup's registry.
func (s Setup) Streams(ctx context.Context) (*Streams, error) {
	registry, err := schemas.NewRegistryAs(s.Access, strings.Split(s.Registry, ",")...)
	if err != nil {
		return nil, err
	}
	return Open(ctx, registry)
}

// Readers returns all readers that Wait waits for, apart from those of global tables.
func (s Setup) Readers() []Reader {
	readers := ReadersOf(Catalogue(Profile{Partitions: s.Kafka.Partitions}))
	if len(s.ExternalConsumers) > 0 {
		readers = slices.DeleteFunc(readers, func(r Reader) bool { return r.Group == Features })
	}
	for _, store := range s.FeedStores {
		readers = append(readers, Reader{Group: MaterializeGroup(store), Topics: ReadBy(Materialize)})
	}
	return readers
}

// Wait calls Wait for the setup's readers, and then AwaitExternalConsumers for its external consumers.
func (s Setup) Wait(ctx context.Context, since schemas.Micros, progress func(WaitState)) error {
	if err := Wait(ctx, s.Kafka, since, progress, s.Readers()...); err != nil {
		return err
	}
	return AwaitExternalConsumers(ctx, s.Kafka, progress, s.ExternalConsumers...)
}

// Start starts a progress display, if the setup has one, see Progress.
func (s Setup) Start(what string, total int) Progress {
	if s.Progress == nil {
		return noProgress{began: time.Now()}
	}
	return s.Progress(what, total)
}

// noProgress measures the time of an operation without a display.
type noProgress struct{ began time.Time }

func (noProgress) Add(int)               {}
func (noProgress) Say(string)            {}
func (u noProgress) Done() time.Duration { return time.Since(u.began) }
