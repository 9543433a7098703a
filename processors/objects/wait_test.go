package objects_test

import (
	"context"
	"testing"
	"time"

	"github.com/smartfeed/smartfeed/internal/testkit/deletedtest"
	"github.com/smartfeed/smartfeed/internal/testkit/must"
	"github.com/smartfeed/smartfeed/internal/testkit/proctest"
	"github.com/smartfeed/smartfeed/processors/objects"
	"github.com/smartfeed/smartfeed/schemas"
	"github.com/smartfeed/smartfeed/topics"
)

// WaitIdle does not wait for an action that is held until its pin arrives.
func TestWaitIdle_IgnoresHeldActions(t *testing.T) {
	t.Parallel()
	w := proctest.New(t)
	cfg := objects.DefaultConfig()
	cfg.JoinTimeout = time.Hour
	group := objects.Group(cfg, w.Streams, deletedtest.Of())
	w.Start("a", group)
	proctest.Publish(w, w.Streams.Actions, "pin:1", actionAt(schemas.Click, "pin:1", now(), "in vain"))
	reader := topics.Reader{Group: topics.Objects, Topics: group.Reads()}
	ctx, cancel := context.WithTimeout(t.Context(), proctest.Patience)
	defer cancel()
	must.OK(t, topics.Wait(ctx, w.Kafka, schemas.MicrosOf(time.Now()), nil, reader))
	held := 0
	for _, r := range w.Rows(topics.Objects, "pin:1") {
		if r.Name[0] == 'h' {
			held++
		}
	}
	if joined := len(proctest.Drain(w, w.Streams.ActionsJoined)); held != 1 || joined != 0 {
		t.Errorf("%d actions held, %d forwarded; want 1 and 0", held, joined)
	}
}
