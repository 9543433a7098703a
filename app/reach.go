package app

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/smartfeed/smartfeed/topics"
)

const (
	// reachEvery is the interval between checks.
	reachEvery = time.Second
	// reachWithin is the maximum time for an answer: more than a busy broker takes, less than the timeouts of
	// consumers.
	reachWithin = 5 * time.Second
)

// reach checks whether any broker responds. The parts that need a broker notice failures themselves, but notice one
// that hangs only after a timeout of a minute or more. None of them reports that Kafka is unavailable.
type reach struct {
	kafka    topics.Kafka
	refused  atomic.Bool
	answered atomic.Int64 // when a broker last responded, or Run started; nanoseconds since the epoch, 0: Run has not started
}

// Run checks until ctx is done.
func (r *reach) Run(ctx context.Context) error {
	client, err := r.kafka.Client()
	if err != nil {
		return err
	}
	defer client.Close()
	r.answered.Store(time.Now().UnixNano())
	for {
		select {
		case <-time.After(reachEvery):
		case <-ctx.Done():
			return nil
		}
		err := client.Ping(ctx)
		if ctx.Err() != nil {
			return nil
		}
		if r.refused.Store(err != nil); err == nil {
			r.answered.Store(time.Now().UnixNano())
		}
	}
}

// away also compares the time, because a request to a broker that hangs may take as long as the client allows.
func (r *reach) away() bool {
	began := r.answered.Load()
	return r.refused.Load() || began > 0 && time.Since(time.Unix(0, began)) > reachEvery+reachWithin
}
