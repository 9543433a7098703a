package product

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/smartfeed/smartfeed/internal/pause"
	"github.com/smartfeed/smartfeed/topics"
)

const (
	// reachEvery is how long nothing is asked after an answer or a refusal.
	reachEvery = time.Second
	// reachWithin is how late an answer may be: more than a busy broker takes, less than the patience of those who consume.
	reachWithin = 5 * time.Second
)

// reach knows whether any broker answers. The parts that need one notice that themselves, but one that hangs only when
// they have waited for it, a minute or more, and none of them says that it is Kafka that is away.
type reach struct {
	kafka    topics.Kafka
	refused  atomic.Bool
	answered atomic.Int64 // when a broker did last, or Run began; nanoseconds since the epoch, 0: it has not begun
}

// Run asks until ctx ends.
func (r *reach) Run(ctx context.Context) error {
	client, err := r.kafka.Client()
	if err != nil {
		return err
	}
	defer client.Close()
	r.answered.Store(time.Now().UnixNano())
	for pause.For(ctx, reachEvery) {
		err := client.Ping(ctx)
		if ctx.Err() != nil {
			break
		}
		if r.refused.Store(err != nil); err == nil {
			r.answered.Store(time.Now().UnixNano())
		}
	}
	return nil
}

// away is told by the time, too: a request to a broker that hangs may take as long as the client likes.
func (r *reach) away() bool {
	began := r.answered.Load()
	return r.refused.Load() || began > 0 && time.Since(time.Unix(0, began)) > reachEvery+reachWithin
}
