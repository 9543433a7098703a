package load

import (
	"context"
	"fmt"
	"time"

	"github.com/smartfeed/smartfeed/schemas"
	"github.com/smartfeed/smartfeed/topics"
)

// Open makes a publisher for what a command was set up with. Close it.
func Open(ctx context.Context, s topics.Setup) (*topics.Publisher, error) {
	streams, err := s.Streams(ctx)
	if err != nil {
		return nil, err
	}
	return topics.NewPublisher(s.Kafka, streams)
}

// WorkOff returns when everything acknowledged so far has had its effect, and says meanwhile what it waits for. It
// fails when that takes longer than timeout.
func WorkOff(ctx context.Context, s topics.Setup, timeout time.Duration, say func(state string)) error {
	ctx, cancel := context.WithTimeoutCause(ctx, timeout, fmt.Errorf("not worked off within %s", timeout))
	defer cancel()
	since := schemas.MicrosOf(time.Now())
	return s.Wait(ctx, since, func(w topics.WaitState) { say(w.String()) })
}
