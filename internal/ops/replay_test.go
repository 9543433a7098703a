package ops_test

import (
	"testing"
	"time"

	"github.com/smartfeed/smartfeed/internal/ops"
	"github.com/smartfeed/smartfeed/internal/testkit/zeros"
	"github.com/smartfeed/smartfeed/schemas"
	"github.com/smartfeed/smartfeed/topics"
)

// A batch that is too large to read does not stop a replay: the events around it are processed again.
func TestReplayPassesByWhatIsTooLarge(t *testing.T) {
	w := newWire(t)
	pin := func(id string) {
		t.Helper()
		event := schemas.Event{ID: id, Time: schemas.MicrosOf(time.Now()), Actor: "user:ada", Verb: schemas.Create, Object: "pin:1"}
		line := schemas.Line{Stream: topics.Pins, Key: "pin:1", Event: &schemas.PinEvent{Event: event}}
		if err := w.publisher(t).Publish(t.Context(), []schemas.Line{line}); err != nil {
			t.Fatal(err)
		}
	}
	pin("before")
	partition := topics.Partition("pin:1", w.setup.Kafka.Partitions)
	if _, err := zeros.Produce(t.Context(), w.client(t), topics.Pins, partition, topics.MaxDecompressedBytes+1); err != nil {
		t.Fatal(err)
	}
	pin("behind")
	r := ops.Replayer{Setup: w.setup, Streams: w.streams, Readers: []topics.Reader{{Group: "nobody"}}, Rate: 1000}
	got, err := r.Replay(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if want := 2 * 2; got.Events != int64(want) || len(w.drain(t, topics.Replays)) != want { // in each of two passes
		t.Errorf("%d events are published, want %d: of both sides of the batch", got.Events, want)
	}
}
