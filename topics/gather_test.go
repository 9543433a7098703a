package topics_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/smartfeed/smartfeed/internal/testkit/eventually"
	"github.com/smartfeed/smartfeed/internal/testkit/expect"
	"github.com/smartfeed/smartfeed/internal/testkit/must"
	"github.com/smartfeed/smartfeed/internal/testkit/topicstest"
	"github.com/smartfeed/smartfeed/schemas"
	"github.com/smartfeed/smartfeed/topics"
)

// gather consumes the topic edges as the group g, and passes records to handle only when stop is called. It returns when the
// consumer has gathered all records: it fetches at the end of a partition after it has polled the records before.
func (w *wire) gather(t *testing.T, handle func(context.Context, []*kgo.Record) error) (stop func() error) {
	t.Helper()
	ends := must.Get(w.Log().Ends(t.Context(), topics.Edges))(t)[topics.Edges]
	var mu sync.Mutex
	w.Broker().ControlKey(int16(kmsg.Fetch), func(req kmsg.Request) (kmsg.Response, error, bool) {
		mu.Lock()
		defer mu.Unlock()
		for _, topic := range req.(*kmsg.FetchRequest).Topics {
			for _, p := range topic.Partitions {
				if p.FetchOffset >= ends[p.Partition] {
					delete(ends, p.Partition)
				}
			}
		}
		return nil, nil, false
	})
	cfg := w.consumer("g", topics.Edges)
	cfg.MaxAge, cfg.MaxBytes = time.Hour, 1<<20
	stop = topicstest.Run(t, func(ctx context.Context) error { return topics.Consume(ctx, cfg, handle) })
	eventually.True(t, "all records are gathered", func() bool {
		mu.Lock()
		defer mu.Unlock()
		return len(ends) == 0
	})
	return stop
}

// The new owner of a partition passes its records to handle, and the previous owner does not. It passes the others when it stops.
func TestConsume_GathersRecordsOfOwnPartitions(t *testing.T) {
	w := newWire(t)
	w.produce(topics.Edges, numbered("a", 100)...)
	var got, other seen
	stop := w.gather(t, got.handle)
	expect.Equal(t, w.Committed("g", topics.Edges), 0, "offsets committed before the effect")
	stopOther := w.consume(t, &other)
	eventually.True(t, "another consumer has partitions", func() bool { return other.len() > 0 })
	must.OK(t, stop())
	must.OK(t, stopOther())
	expect.True(t, got.len() > 0, "the consumer passes records to handle")
	expect.Equal(t, got.len()+other.len(), 100, "records of both consumers")
	expect.Equal(t, w.Committed("g", topics.Edges), 100, "committed offsets")
}

func TestWait_IgnoresGatheredFeatureFiles(t *testing.T) {
	w := newWire(t)
	w.produce(topics.FeatureLog, "a")
	reader := topics.Reader{Group: topics.FeatureFiles, Topics: []string{topics.FeatureLog}}
	must.OK(t, topics.Wait(t.Context(), w.Kafka, schemas.MicrosOf(time.Now()), nil, reader))
}
