package app

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/smartfeed/smartfeed/internal/periodic"

	"github.com/smartfeed/smartfeed/topics"
)

const (
	// brokerCheckEvery is the interval between checks.
	brokerCheckEvery = time.Second
	// brokerTimeout is the maximum time for a response: longer than a busy broker takes, and shorter than the timeouts
	// of consumers.
	brokerTimeout = 5 * time.Second
)

// brokerHealth checks whether any broker responds. The consumers and producers detect a hanging broker only after a
// minute or more, and none of them reports to readiness that Kafka is unavailable.
type brokerHealth struct {
	kafka    topics.Kafka
	refused  atomic.Bool
	answered atomic.Int64 // Unix time in nanoseconds when a broker last responded, or Run started; 0: Run has not started
}

// Run checks until ctx is done.
func (h *brokerHealth) Run(ctx context.Context) error {
	client, err := h.kafka.Client()
	if err != nil {
		return err
	}
	defer client.Close()
	h.answered.Store(time.Now().UnixNano())
	return periodic.Run(ctx, brokerCheckEvery, func() error {
		err := client.Ping(ctx)
		if ctx.Err() != nil {
			return nil
		}
		if h.refused.Store(err != nil); err == nil {
			h.answered.Store(time.Now().UnixNano())
		}
		return nil
	})
}

// unavailable reports whether no broker responds. It also checks the time of the last response, because a request to a
// hanging broker blocks until the client's timeout.
func (h *brokerHealth) unavailable() bool {
	answered := h.answered.Load()
	return h.refused.Load() || answered > 0 && time.Since(time.Unix(0, answered)) > brokerCheckEvery+brokerTimeout
}
