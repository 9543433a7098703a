package rows

import (
	"context"
	"testing"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/smartfeed/smartfeed/internal/eventually"
	"github.com/smartfeed/smartfeed/topics/faultnet"
)

// What stands in other files for the embedded broker, on a real one.

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

func TestRealKafkaAnswersLost(t *testing.T) {
	c := &cluster{wire: newRealWire(t), net: faultnet.New()}
	answersLost(t, c, []kmsg.Key{kmsg.Produce, kmsg.EndTxn, kmsg.OffsetCommit})
}

func TestRealKafkaTopicMadeAnew(t *testing.T) { madeAnew(t, newRealWire(t)) }

func TestRealKafkaRecordsTakenUnread(t *testing.T) {
	w := newRealWire(t)
	takenUnread(t, w, func() { w.retain(t, w.ends(t)) })
}

// The broker's own clean-up takes the records, because they are old.
func TestRealKafkaRecordsTooOldUnread(t *testing.T) {
	w := newRealWire(t)
	takenUnread(t, w, func() { w.outlive(t) })
}

func TestRealKafkaMarkersTakenUnread(t *testing.T) { markersTakenUnread(t, newRealWire(t)) }

func TestRealKafkaRecordsAreNotPassed(t *testing.T) { recordsAreNotPassed(t, newRealWire(t)) }

func TestRealKafkaTimersInOrder(t *testing.T) { timersFireInOrder(t, newRealWire(t)) }

func TestRealKafkaManyTimers(t *testing.T) { manyTimers(t, newRealWire(t)) }

func TestRealKafkaTimersSurvive(t *testing.T) { timersSurvive(t, newRealWire(t)) }

// outlive has the broker keep records of t-in for a millisecond, and waits until all are gone: brokers of .ci/services look
// every half second, where others do every five minutes.
func (w *wire) outlive(t *testing.T) {
	t.Helper()
	w.configure(t, "t-in", map[string]string{"retention.ms": "1"})
	ends := w.ends(t)
	eventually.True(t, "retention has taken all records", func() bool {
		starts, err := w.admin.ListStartOffsets(t.Context(), "t-in")
		must(t, err)
		gone := true
		starts.Each(func(o kadm.ListedOffset) { gone = gone && o.Offset == ends(o.Partition) })
		return gone
	})
}

// configure sets what a topic has of its own until the test ends. It is taken back, and not left to go with the topic: a
// broker (4.1.2) that is killed later takes the settings of a topic that was deleted for those of the one of its name that
// there is then.
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
	done, err := w.admin.AlterTopicConfigs(ctx, alter, topic)
	must(t, err)
	for _, d := range done {
		must(t, d.Err)
	}
}
