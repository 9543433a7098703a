package topics_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/smartfeed/smartfeed/internal/testkit/eventually"
	"github.com/smartfeed/smartfeed/internal/testkit/expect"
	"github.com/smartfeed/smartfeed/internal/testkit/faultnet"
	"github.com/smartfeed/smartfeed/internal/testkit/must"
	"github.com/smartfeed/smartfeed/schemas"
	"github.com/smartfeed/smartfeed/topics"
)

// These tests run tests of other files on Kafka instead of the embedded broker, and test behavior specific to Kafka: see
// newWire.

func TestRealKafkaConsume(t *testing.T) {
	t.Run("commits after the effect", TestConsume_CommitsAfterEffect)
	t.Run("returns the handler's error", TestConsume_ReturnsErrorOfHandler)
	t.Run("commits past markers", TestConsume_CommitsPastMarkers)
	t.Run("hands over", TestConsume_HandsOver)
	t.Run("reports unavailable brokers", TestConsume_ReportsUnavailableBrokers)
}

func TestRealKafkaWait(t *testing.T) {
	t.Run("under traffic", TestWait_IsExactUnderTraffic)
	t.Run("slow clock", TestWait_SlowClock)
	t.Run("global tables", TestWait_IncludesGlobalTables)
	t.Run("empty topics", TestWait_EmptyTopics)
	t.Run("ignores markers and aborted records", TestWait_IgnoresMarkersAndAbortedRecords)
	t.Run("open transaction", TestWait_WaitsForOpenTransaction)
	t.Run("taken unread", TestWait_IgnoresRecordsThatRetentionRemoved)
}

func TestRealKafkaGlobalTables(t *testing.T) {
	t.Run("newest of every key", TestGlobalTable_HoldsNewestRecordOfEachKey)
	t.Run("reports changes", TestGlobalTable_ReportsChanges)
	t.Run("new process", TestGlobalTable_StartsOverInNewProcess)
	t.Run("open transaction", TestGlobalTable_IsReadyAfterOpenTransactionEnds)
}

func TestRealKafkaLog(t *testing.T) {
	t.Run("continues at the oldest record", TestLog_ContinuesAtOldestRecord)
}

// Kafka's response to a fetch of deleted records does not contain the start of the log; the embedded broker's does.
func TestLog_ContinuesAtOldestRecord(t *testing.T) {
	w, n := newWire(t), faultnet.New()
	p := w.sendNumbers(t, topics.Pins, 0, 5)
	w.DeleteBefore(topics.Pins, p, 3)
	n.Alter(kmsg.Fetch, 1, func(resp kmsg.Response) {
		resp.(*kmsg.FetchResponse).Topics[0].Partitions[0].LogStartOffset = -1
	})
	w.Kafka.Dial = n.Dial
	l := w.Log()
	records, next, err := l.Read(t.Context(), topics.Pins, p, 1)
	if err != nil || len(records) != 0 || next != 3 {
		t.Errorf("read from before the oldest record: %d records, next %d, %v; want none, next 3", len(records), next, err)
	}
	expect.True(t, n.Hits(kmsg.Fetch) > 0, "a fetch is intercepted")
	if records, next, err = l.Read(t.Context(), topics.Pins, p, 3); err != nil || len(records) != 2 || next != 5 {
		t.Errorf("read at the oldest record: %d records, next %d, %v; want 2, next 5", len(records), next, err)
	}
	if _, _, err = l.Read(t.Context(), topics.Pins, p, 9); err == nil {
		t.Error("read beyond the end: no error")
	}
}

// Wait does not wait for records that retention deleted unread.
func TestWait_IgnoresRecordsThatRetentionRemoved(t *testing.T) {
	w := newWire(t)
	p := w.sendNumbers(t, topics.Pins, 0, 5)
	w.commit(t, "mill", topics.Pins, p, 1)
	w.DeleteBefore(topics.Pins, p, 3)
	expect.Error(t, w.waitChecks(t, 1, pipelineReaders...), "mill: 4 of pins", "Wait")
	w.DeleteBefore(topics.Pins, p, 5)
	must.OK(t, w.wait(t, time.Minute))
}

// compact makes Kafka compact a topic until it has no tombstones and one record per key. Meanwhile it sends records with
// the key meanwhile to all partitions, which do not count.
func (w *wire) compact(t *testing.T, topic, meanwhile string) {
	t.Helper()
	var alter []kadm.AlterConfig
	for name, value := range map[string]string{
		"segment.ms": "200", "min.cleanable.dirty.ratio": "0", "delete.retention.ms": "0", "file.delete.delay.ms": "1000",
	} {
		alter = append(alter, kadm.AlterConfig{Op: kadm.SetConfig, Name: name, Value: &value})
	}
	must.Get(w.Admin().AlterTopicConfigs(t.Context(), alter, topic))(t)
	l, anywhere := w.Log(), w.Client(kgo.RecordPartitioner(kgo.ManualPartitioner()))
	before := w.Records(topic)
	left := 0
	eventually.True(t, "the topic is compacted", func() bool {
		for p := range w.Kafka.Partitions {
			r := &kgo.Record{Topic: topic, Partition: p, Key: []byte(meanwhile), Value: before[0].Value}
			must.OK(t, anywhere.ProduceSync(t.Context(), r).FirstErr())
		}
		var keys []string
		twice := w.visit(t, l, topic, func(r *kgo.Record) bool {
			if key := string(r.Key); key != meanwhile {
				keys = append(keys, key)
				return r.Value == nil || slices.Index(keys, key) < len(keys)-1
			}
			return false
		})
		left = len(keys)
		return !twice
	})
	if t.Logf("compaction kept %[2]d of %[1]d records", len(before), left); left >= len(before) {
		t.Error("compaction removed no record")
	}
}

// visit reports whether found is true for a record of a topic.
func (w *wire) visit(t *testing.T, l *topics.Log, topic string, found func(*kgo.Record) bool) (is bool) {
	t.Helper()
	ends, err := l.Ends(t.Context(), topic)
	for p, end := range ends[topic] {
		if err == nil {
			err = l.ReadTo(t.Context(), topic, p, 0, end, func(r *kgo.Record) error { is = found(r) || is; return nil })
		}
	}
	must.OK(t, err)
	return is
}

// A running process and a later one have the same global table, whatever compaction has removed in between. Wait waits for
// both.
func TestRealKafkaGlobalTableOfACompactedTopic(t *testing.T) {
	w := newWire(t)
	const users = 40
	first, _ := w.deletedUsers(t, "first")
	for at := range schemas.Micros(4) {
		var records []*kgo.Record
		for i := range users {
			if at < 3 || i%4 == 0 { // a quarter of the records are tombstones
				records = append(records, w.deleted(t, schemas.UserID(fmt.Sprint("user:", i)), (at+1)%4))
			}
		}
		w.Send(records...)
	}
	w.compact(t, topics.UsersDeleted, "user:meanwhile")
	later, _ := w.deletedUsers(t, "later")
	w.Send(w.deleted(t, "user:last", 1))
	must.OK(t, w.wait(t, time.Minute))
	for name, table := range map[string]topics.DeletedUsers{"first": first, "later": later} {
		for i := range users {
			user := schemas.UserID(fmt.Sprint("user:", i))
			if got, ok := table.Get(string(user)); ok != (i%4 != 0) || ok && got.Time != 3 {
				t.Errorf("%s: %s = %v", name, user, got)
			}
		}
		if want := users*3/4 + 2; table.Len() != want || !table.Has("user:last") {
			t.Errorf("%s holds %d users, want %d", name, table.Len(), want)
		}
	}
}
