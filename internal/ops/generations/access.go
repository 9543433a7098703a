// Package generations rebuilds the pools: those of one user in place, and those of all users as a new generation while the
// current one stays active. Package generation defines the states and steps of such a build. A replay also processes the
// log of pins again before it.
package generations

import (
	"context"
	"fmt"
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

// publisher publishes records in batches, at a limited rate.
type publisher struct {
	client    *kgo.Client
	pace      *rate.Limiter
	size      int // records in a full batch
	batch     []*kgo.Record
	published int64
}

// newPublisher returns a publisher of perSecond records per second, in batches of at most a tenth of a second's records and
// at most maxBatch.
func newPublisher(client *kgo.Client, perSecond rate.Limit, maxBatch int) *publisher {
	size := int(min(float64(maxBatch), max(1, float64(perSecond)/10)))
	return &publisher{client: client, pace: rate.NewLimiter(perSecond, size), size: size}
}

// add adds a record to the batch, and publishes the batch if it is full.
func (p *publisher) add(ctx context.Context, r *kgo.Record) error {
	if p.batch = append(p.batch, r); len(p.batch) < p.size {
		return nil
	}
	return p.flush(ctx)
}

// flush waits for the rate limit, publishes the batch, and returns when it is acknowledged.
func (p *publisher) flush(ctx context.Context) error {
	if len(p.batch) == 0 {
		return nil
	}
	if err := p.pace.WaitN(ctx, len(p.batch)); err != nil {
		return err
	}
	if err := topics.Produce(ctx, p.client, p.batch...); err != nil {
		return fmt.Errorf("publish %s: %w", p.batch[0].Topic, err)
	}
	p.published += int64(len(p.batch))
	p.batch = p.batch[:0]
	return nil
}
