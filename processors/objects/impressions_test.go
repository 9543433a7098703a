package objects_test

import (
	"fmt"
	"maps"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/smartfeed/smartfeed/internal/testkit/deletedtest"
	"github.com/smartfeed/smartfeed/internal/testkit/proctest"
	"github.com/smartfeed/smartfeed/processors/objects"
	"github.com/smartfeed/smartfeed/schemas"
	"github.com/smartfeed/smartfeed/topics"
)

// shown returns the impressions of a visit at some time.
func shown(at time.Time, pins ...schemas.PinID) *schemas.Impressions {
	rec := &schemas.Impressions{User: "user:eve", Time: schemas.MicrosOf(at)}
	for _, p := range pins {
		rec.Pins = append(rec.Pins, schemas.ShownPin{Pin: p, Source: schemas.Following})
	}
	return rec
}

// show publishes impressions of one partition.
func show(w *proctest.Wire, recs ...*schemas.Impressions) {
	partition := topics.Partition(string(recs[0].Pins[0].Pin), w.Kafka.Partitions)
	proctest.PublishTo(w, w.Streams.Impressions, partition, "", time.Time{}, recs...)
}

// pinsIn returns pins of a partition.
func pinsIn(w *proctest.Wire, partition int32, n int) []schemas.PinID {
	var list []schemas.PinID
	for i := 0; len(list) < n; i++ {
		pin := schemas.PinID(fmt.Sprint("pin:of-a-visit-", i))
		if topics.Partition(string(pin), w.Kafka.Partitions) == partition {
			list = append(list, pin)
		}
	}
	return list
}

// impressionsOf returns the impressions in the newest counts of each pin.
func impressionsOf(t *testing.T, w *proctest.Wire) map[schemas.PinID]int64 {
	t.Helper()
	got := map[schemas.PinID]int64{}
	for _, r := range proctest.Drain(w, w.Streams.ItemFeatures) {
		if r.Key != string(r.Value.Pin) {
			t.Errorf("counts of %s under the key %s", r.Value.Pin, r.Key)
		}
		got[r.Value.Pin] = r.Value.Counts[schemas.ImpressionCount]
	}
	return got
}

// Each pin of a visit counts as often as it is listed, even if it is unknown. A deleted pin does not count and is reported
// as dropped.
func TestImpressions_CountEachPin(t *testing.T) {
	t.Parallel()
	w := proctest.New(t)
	m := w.Start("a", objects.Group(objects.DefaultConfig(), w.Streams, deletedtest.Of()))
	at, p := now(), pinsIn(w, 1, 4)
	for _, pin := range p[:3] {
		proctest.Publish(w, w.Streams.Pins, string(pin), pinAt(schemas.Create, pin, at, "c "+string(pin)))
	}
	proctest.Publish(w, w.Streams.Pins, string(p[2]), pinAt(schemas.Delete, p[2], at, "d"))
	w.WaitIdle()
	show(w, shown(at, p[0], p[1], p[0], p[2], p[3]), shown(at, p[1]))
	w.WaitIdle()
	if diff := gocmp.Diff(map[schemas.PinID]int64{p[0]: 2, p[1]: 2, p[3]: 1}, impressionsOf(t, w)); diff != "" {
		t.Errorf("impressions (-want +got):\n%s", diff)
	}
	if got, want := m.Status(topics.Objects).Dropped, map[string]int64{"deleted_pin": 1}; !maps.Equal(got, want) {
		t.Errorf("dropped by reason: got %v, want %v", got, want)
	}
	checkDeadLetters(t, w)
}

// Impressions with a pin of another partition go to the dead-letter topic, and none of them counts. Later ones do.
func TestImpressions_OtherPartitionIsDeadLetter(t *testing.T) {
	t.Parallel()
	w := proctest.New(t)
	w.Start("a", objects.Group(objects.DefaultConfig(), w.Streams, deletedtest.Of()))
	at, here, there := now(), pinsIn(w, 1, 2), pinsIn(w, 2, 1)
	show(w, shown(at, here[0], there[0], here[1]), shown(at, here[1]))
	w.WaitIdle()
	if diff := gocmp.Diff(map[schemas.PinID]int64{here[1]: 1}, impressionsOf(t, w)); diff != "" {
		t.Errorf("impressions (-want +got):\n%s", diff)
	}
	checkDeadLetters(t, w, fmt.Sprintf("access rows of %q: its partition is 2, the record's is 1", there[0]))
}
