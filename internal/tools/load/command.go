package load

import (
	"context"
	"fmt"
	"time"

	"github.com/smartfeed/smartfeed/schemas"
	"github.com/smartfeed/smartfeed/topics"
)

// Open returns a publisher for the brokers of a command. The caller must close it.
func Open(ctx context.Context, s topics.Setup) (*topics.Publisher, error) {
	streams, err := s.Streams(ctx)
	if err != nil {
		return nil, err
	}
	return topics.NewPublisher(s.Kafka, streams)
}

// WaitProcessed waits until all acknowledged events have been processed, and reports its progress to say. It returns an
// error after timeout.
func WaitProcessed(ctx context.Context, s topics.Setup, timeout time.Duration, say func(state string)) error {
	ctx, cancel := context.WithTimeoutCause(ctx, timeout, fmt.Errorf("not processed within %s", timeout))
	defer cancel()
	since := schemas.MicrosOf(time.Now())
	return s.Wait(ctx, since, func(w topics.WaitState) { say(w.String()) })
}
