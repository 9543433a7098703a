package feed

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/smartfeed/smartfeed/internal/testkit/expect"
	"github.com/smartfeed/smartfeed/internal/testkit/must"
	"github.com/smartfeed/smartfeed/internal/testkit/topicstest"
	"github.com/smartfeed/smartfeed/schemas"
	"github.com/smartfeed/smartfeed/topics"
)

// TestLog uses a real broker and stops it at the end.
func TestLog(t *testing.T) {
	c := topicstest.Start(t, 0)
	log := NewLog(c.Client(), c.Streams)

	want := schemas.Served{ID: "s-1", User: viewer, Time: 5, Feed: "home", Items: []schemas.ServedItem{item("a")}}
	outcome, err := log.Publish(t.Context(), &want)
	if outcome != schemas.Acknowledged || err != nil {
		t.Fatalf("got %q, %v, want %q", outcome, err, schemas.Acknowledged)
	}
	record := c.Records(topics.Served)[0]
	got := must.Get(c.Streams.Served.Decode(record.Value))(t)
	same(t, "published", got.Items[0].Pin, want.Items[0].Pin)
	same(t, "key", string(record.Key), string(viewer))
	same(t, "partition", record.Partition, topics.Partition(string(viewer), c.Kafka.Partitions))

	huge := want
	huge.Items = []schemas.ServedItem{item(strings.Repeat("x", 4<<20))}
	outcome, err = log.Publish(t.Context(), &huge)
	expect.Equal(t, outcome, schemas.Failed, "outcome of a visit that is too large")
	expect.Fails(t, err, "visit that is too large")

	announced := schemas.UserActivity{User: viewer, Time: 5}
	must.OK(t, log.Announce(t.Context(), &announced))
	record = c.Records(topics.UserActivity)[0]
	visit := must.Get(c.Streams.UserActivity.Decode(record.Value))(t)
	same(t, "announced", *visit, announced)
	same(t, "key", string(record.Key), string(viewer))

	must.OK(t, c.Close())
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	start := time.Now()
	outcome, err = log.Publish(ctx, &want)
	expect.Equal(t, outcome, schemas.Unknown, "outcome with an unavailable broker")
	expect.Is(t, err, context.DeadlineExceeded, "unavailable broker")
	expect.AtMost(t, time.Since(start), 20*time.Second, "duration with an unavailable broker")
	expect.Fails(t, log.Announce(ctx, &announced), "announcement to a stopped broker")
}

func TestOutcomeOf(t *testing.T) {
	for err, want := range map[error]schemas.Outcome{
		kgo.ErrMaxBuffered:            schemas.Failed,
		kgo.ErrRecordTimeout:          schemas.Failed,
		kerr.MessageTooLarge:          schemas.Failed,
		kerr.TopicAuthorizationFailed: schemas.Failed,
		kgo.ErrClientClosed:           schemas.Unknown,
		kerr.RequestTimedOut:          schemas.Unknown,
		kerr.OutOfOrderSequenceNumber: schemas.Unknown,
		errors.New("anything else"):   schemas.Unknown,
	} {
		expect.Equal(t, outcomeOf(err), want, "%v", err)
	}
}
