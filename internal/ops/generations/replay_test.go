package generations

import (
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/smartfeed/smartfeed/internal/testkit/expect"
	"github.com/smartfeed/smartfeed/internal/testkit/must"
	"github.com/smartfeed/smartfeed/internal/testkit/topicstest"
	"github.com/smartfeed/smartfeed/internal/testkit/zeros"
	"github.com/smartfeed/smartfeed/schemas"
	"github.com/smartfeed/smartfeed/topics"
)

func TestReplayer_SkipsBatchThatIsTooLargeToRead(t *testing.T) {
	setup := topicstest.Start(t, 0).Setup()
	a := must.Get(open(t.Context(), setup))(t)
	t.Cleanup(a.close)
	a.readers = []topics.Reader{{Group: "none"}}
	publisher := must.Get(topics.NewPublisher(setup.Kafka, a.streams))(t)
	t.Cleanup(publisher.Close)
	pin := func(id string) {
		t.Helper()
		event := schemas.Event{ID: id, Time: schemas.MicrosOf(time.Now()), Actor: "user:ada", Verb: schemas.Create, Object: "pin:1"}
		line := schemas.Line{Stream: topics.Pins, Key: "pin:1", Event: &schemas.PinEvent{Event: event}}
		must.OK(t, publisher.Publish(t.Context(), []schemas.Line{line}))
	}

	pin("before")
	partition := topics.Partition("pin:1", setup.Kafka.Partitions)
	must.Get(zeros.Produce(t.Context(), a.client, topics.Pins, partition, topics.MaxDecompressedBytes+1))(t)
	pin("behind")
	got := must.Get((&replayer{access: a, rate: 1000}).replay(t.Context()))(t)
	written := 0
	must.OK(t, a.log.ReadAll(t.Context(), topics.Replays, func(*kgo.Record) error { written++; return nil }))
	if want := 2 * 2; got.Events != int64(want) || written != want { // in each of two passes
		t.Errorf("got %d events, %d records, want %d: of both sides of the batch", got.Events, written, want)
	}
}

// If the registry is unavailable, records may be missing, so no pins are chosen from the others.
func TestReplayer_FailsWhenRegistryIsUnavailable(t *testing.T) {
	c := topicstest.Start(t, 0)
	a := must.Get(open(t.Context(), c.Setup()))(t)
	t.Cleanup(a.close)
	pin := must.Get(a.streams.Pins.Encode(&schemas.PinEvent{Event: schemas.Event{ID: "p", Actor: "user:ada", Verb: schemas.Create, Object: "pin:1"}}))(t)
	record := &kgo.Record{Topic: topics.Pins, Key: []byte("pin:1"), Value: topicstest.ByOtherWriter(pin)}
	must.OK(t, topics.Produce(t.Context(), a.client, record))
	a.streams = c.WithoutRegistry()
	expect.Is(t, (&replayer{access: a}).choose(t.Context()), schemas.ErrRegistryUnavailable, "choose")
}
