package rows

import (
	"context"
	"testing"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/smartfeed/smartfeed/internal/testkit/eventually"
	"github.com/smartfeed/smartfeed/internal/testkit/faultnet"
	"github.com/smartfeed/smartfeed/internal/testkit/must"
)

// These tests run tests of other files on Kafka instead of the embedded broker.

func TestRealKafkaRecovery(t *testing.T) {
	for _, c := range tableEnds {
		if !c.real {
			continue
		}
		t.Run(c.name, func(t *testing.T) {
			w := newRealWire(t)
			w.recoversFrom(t, func() { c.end(t, w) })
		})
	}
}

func TestRealKafkaJoiningAndLeaving(t *testing.T) { joiningAndLeaving(t, newRealWire(t)) }

func TestRealKafkaOffsetsAreAHint(t *testing.T) {
	for name, at := range wrongOffsets {
		t.Run(name, func(t *testing.T) { offsetsAreAHint(t, newRealWire(t), at) })
	}
}

func TestRealKafkaUnknownOutcome(t *testing.T) { unknownOutcome(t, newRealWire(t), true) }

func TestRealKafkaResponsesLost(t *testing.T) {
	c := &cluster{wire: newRealWire(t), net: faultnet.New()}
	responsesLost(t, c, []kmsg.Key{kmsg.Produce, kmsg.EndTxn, kmsg.OffsetCommit})
}

func TestRealKafkaRecreatedInput(t *testing.T) { recreatedInput(t, newRealWire(t)) }

func TestRealKafkaRecordsDeletedUnread(t *testing.T) {
	w := newRealWire(t)
	recordsDeletedUnread(t, w, func() { w.retain(t, w.ends(t)) })
}

// The broker deletes the records by retention.
func TestRealKafkaRecordsExpiredUnread(t *testing.T) {
	w := newRealWire(t)
	recordsDeletedUnread(t, w, func() { w.expireRecords(t) })
}

func TestRealKafkaMarkersDeletedUnread(t *testing.T) { markersDeletedUnread(t, newRealWire(t)) }

func TestRealKafkaRecordsAreNotSkipped(t *testing.T) { recordsAreNotSkipped(t, newRealWire(t)) }

func TestRealKafkaTimersInOrder(t *testing.T) { timersFireInOrder(t, newRealWire(t)) }

func TestRealKafkaManyTimers(t *testing.T) { manyTimers(t, newRealWire(t)) }

func TestRealKafkaTimersSurvive(t *testing.T) { timersSurvive(t, newRealWire(t)) }

// expireRecords sets the retention of t-in to a millisecond and waits until all records are deleted. The brokers of .ci/services
// check every half second; the default is every five minutes.
func (w *wire) expireRecords(t *testing.T) {
	t.Helper()
	w.configure(t, "t-in", map[string]string{"retention.ms": "1"})
	ends := w.ends(t)
	eventually.True(t, "retention has deleted all records", func() bool {
		starts := must.Get(w.admin.ListStartOffsets(t.Context(), "t-in"))(t)
		gone := true
		starts.Each(func(o kadm.ListedOffset) { gone = gone && o.Offset == ends(o.Partition) })
		return gone
	})
}

// configure sets the configuration of a topic until the test ends. It resets the settings even if the topic is deleted: a
// broker (4.1.2) that is killed later applies the settings of a deleted topic to a new topic of the same name.
func (w *wire) configure(t *testing.T, topic string, settings map[string]string) {
	t.Helper()
	var alter, back []kadm.AlterConfig
	for name, value := range settings {
		alter = append(alter, kadm.AlterConfig{Op: kadm.SetConfig, Name: name, Value: &value})
		back = append(back, kadm.AlterConfig{Op: kadm.DeleteConfig, Name: name})
	}
	t.Cleanup(func() { w.alter(context.Background(), t, topic, back) })
	w.alter(t.Context(), t, topic, alter)
}

func (w *wire) alter(ctx context.Context, t *testing.T, topic string, alter []kadm.AlterConfig) {
	t.Helper()
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	done := must.Get(w.admin.AlterTopicConfigs(ctx, alter, topic))(t)
	for _, d := range done {
		must.OK(t, d.Err)
	}
}
