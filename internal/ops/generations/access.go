// Package generations rebuilds the pools: in place, by a replay of the log of pins, or as a new generation while the
// current one stays active. Package generation defines the states and steps of such a build.
package generations

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"golang.org/x/time/rate"

	"github.com/smartfeed/smartfeed/schemas"
	"github.com/smartfeed/smartfeed/topics"
)

// access holds the clients that one command uses.
type access struct {
	topics.Setup
	streams *topics.Streams
	log     *topics.Log
	client  *kgo.Client
	readers []topics.Reader // consumers to wait for
}

// open connects a command. The caller must close the result.
func open(ctx context.Context, setup topics.Setup) (*access, error) {
	streams, err := setup.Streams(ctx)
	if err != nil {
		return nil, err
	}
	log, err := topics.NewLog(setup.Kafka)
	if err != nil {
		return nil, err
	}
	client, err := setup.Kafka.Client()
	if err != nil {
		log.Close()
		return nil, err
	}
	return &access{setup, streams, log, client, setup.Readers()}, nil
}

func (a *access) close() {
	a.client.Close()
	a.log.Close()
}

// wait returns when all events published before the call have been processed. task shows the progress.
func (a *access) wait(ctx context.Context, task topics.Progress) error {
	return topics.Wait(ctx, a.Kafka, schemas.MicrosOf(time.Now()), func(s topics.WaitState) { task.Say(s.String()) }, a.readers...)
}

// newestRun returns the name of the run with the newest record in a stream, of the runs with a prefix; "": there is none. It
// calls visit for each record of these runs, and skips records that can never be decoded.
func newestRun[T any](
	ctx context.Context, l *topics.Log, s topics.Stream[T], prefix string, runOf func(*T) string, visit func(*T, *kgo.Record),
) (run string, err error) {
	var newest time.Time
	err = l.ReadAll(ctx, s.Name, topics.Decoded(s, func(value *T, rec *kgo.Record) error {
		if !strings.HasPrefix(runOf(value), prefix) {
			return nil
		}
		if !rec.Timestamp.Before(newest) {
			newest, run = rec.Timestamp, runOf(value)
		}
		visit(value, rec)
		return nil
	}))
	return run, err
}

// publisher publishes batches of records at a limited rate.
type publisher struct {
	client *kgo.Client
	pace   *rate.Limiter
	batch  int // records in a batch
}

// publisher returns a publisher of perSecond records per second, in batches of at most a tenth of a second's records
// and at most maxBatch.
func (a *access) publisher(perSecond float64, maxBatch int) publisher {
	batch := min(maxBatch, max(1, int(perSecond/10)))
	return publisher{a.client, rate.NewLimiter(rate.Limit(perSecond), batch), batch}
}

// publish waits for the rate limit, publishes a batch, and returns when it is acknowledged.
func (p publisher) publish(ctx context.Context, batch []*kgo.Record) error {
	if len(batch) == 0 {
		return nil
	}
	if err := p.pace.WaitN(ctx, len(batch)); err != nil {
		return err
	}
	if err := topics.Produce(ctx, p.client, batch...); err != nil {
		return fmt.Errorf("publish %s: %w", batch[0].Topic, err)
	}
	return nil
}
