package topics_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/smartfeed/smartfeed/internal/testkit/eventually"
	"github.com/smartfeed/smartfeed/internal/testkit/expect"
	"github.com/smartfeed/smartfeed/internal/testkit/must"
	"github.com/smartfeed/smartfeed/topics"
)

// A producer does not wait for a response after its context is canceled.
func TestProduce_ReturnsWhenContextEnds(t *testing.T) {
	w := newWire(t)
	var held atomic.Int64
	w.Broker().ControlKey(int16(kmsg.Produce), func(kmsg.Request) (kmsg.Response, error, bool) {
		w.Broker().KeepControl()
		held.Add(1)
		return nil, nil, true // never answered
	})
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	ended := make(chan error, 1)
	client := w.Client()
	go func() { ended <- topics.Produce(ctx, client, &kgo.Record{Topic: topics.Pins, Key: []byte("k")}) }()
	eventually.True(t, "the record is sent", func() bool { return held.Load() > 0 })
	enough := errors.New("enough")
	cancel(enough)
	select {
	case err := <-ended:
		expect.Is(t, err, enough, "error")
	case <-time.After(eventually.Patience / 4):
		t.Error("Produce waits for the response")
	}
}

func TestProduce_ReturnsFirstError(t *testing.T) {
	w := newWire(t)
	client := w.Client(kgo.RecordPartitioner(kgo.ManualPartitioner()))
	must.OK(t, topics.Produce(t.Context(), client))
	good := []*kgo.Record{{Topic: topics.Pins, Value: []byte("a")}, {Topic: topics.Pins, Partition: 1, Value: []byte("b")}}
	must.OK(t, topics.Produce(t.Context(), client, good...))
	expect.Equal(t, len(w.Records(topics.Pins)), len(good), "records in the topic")
	long := &kgo.Record{Topic: topics.Pins, Value: make([]byte, 4<<20)}
	expect.Fails(t, topics.Produce(t.Context(), client, append(good, long)...), "record that is too large")
}
