// Package proctest runs groups of package rows in tests, over a real network connection. It starts an embedded broker and
// schema registry with all topics of the catalogue. Tests can start, kill, pause and restart members, drop responses of
// the broker, and read the resulting rows and records.
//
//	w := proctest.New(t)
//	w.Start("a", fanout.Group(cfg, w.Kafka.Partitions, w.Streams, deleted))
//	proctest.Publish(w, w.Streams.Follows, "user:1", &follow)
//	w.WaitIdle()
//	edges := proctest.Drain(w, w.Streams.Edges)
//
// All functions fail the test on an error and clean up after the test. Broker and members run in the process of the test.
// Kill simulates a crash; for kill -9, see the torture test of package rows.
package proctest

import (
	"bytes"
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/smartfeed/smartfeed/internal/convert"
	"github.com/smartfeed/smartfeed/internal/testkit/eventually"
	"github.com/smartfeed/smartfeed/internal/testkit/must"
	"github.com/smartfeed/smartfeed/internal/testkit/topicstest"
	"github.com/smartfeed/smartfeed/schemas"
	"github.com/smartfeed/smartfeed/topics"
)

// Patience is the timeout after which methods that wait fail the test.
const Patience = eventually.Patience

// Wire is a cluster with the members that process its topics.
type Wire struct {
	*topicstest.Cluster

	t       testing.TB
	dir     string
	client  *kgo.Client // produces to Record.Partition
	members map[string]*Member
	reads   map[string][]string // topics by group, for every group that was ever started
}

// New starts a broker with the number of partitions of the embedded profile.
func New(t testing.TB) *Wire { return NewOf(t, topics.EmbeddedPartitions) }

// NewOf starts a broker whose topics have the given number of partitions.
func NewOf(t testing.TB, partitions int32) *Wire {
	t.Helper()
	return newWire(t, topicstest.Start(t, partitions))
}

// NewReal returns a wire on topicstest.Real.
func NewReal(t testing.TB, names ...string) *Wire {
	t.Helper()
	return newWire(t, topicstest.Real(t, names...))
}

func newWire(t testing.TB, c *topicstest.Cluster) *Wire {
	t.Helper()
	return &Wire{
		Cluster: c, t: t, dir: t.TempDir(), members: map[string]*Member{}, reads: map[string][]string{},
		client: c.Client(
			kgo.RecordPartitioner(kgo.ManualPartitioner()),
			kgo.RecordDeliveryTimeout(0)), // the timeout counts from a record's timestamp, and PublishAt sends old ones
	}
}

// CreateTopics creates topics that are not in the catalogue, with the same number of partitions.
func (w *Wire) CreateTopics(names ...string) {
	w.t.Helper()
	made := must.Get(kadm.NewClient(w.client).CreateTopics(w.t.Context(), w.Kafka.Partitions, 1, nil, names...))(w.t)
	must.OK(w.t, made.Error())
}

// Publish sends records to a stream's topic under key and waits for the acknowledgement. Their timestamp is the current
// time.
func Publish[T any](w *Wire, s topics.Stream[T], key string, recs ...*T) {
	w.t.Helper()
	PublishTo(w, s, topics.Partition(key, w.Kafka.Partitions), key, time.Time{}, recs...)
}

// PublishAt is Publish with another timestamp.
func PublishAt[T any](w *Wire, s topics.Stream[T], at time.Time, key string, recs ...*T) {
	w.t.Helper()
	PublishTo(w, s, topics.Partition(key, w.Kafka.Partitions), key, at, recs...)
}

// PublishTo is Publish to an explicit partition and with a timestamp. The zero time stands for the current time.
func PublishTo[T any](w *Wire, s topics.Stream[T], partition int32, key string, at time.Time, recs ...*T) {
	w.t.Helper()
	records := make([]*kgo.Record, len(recs))
	for i, rec := range recs {
		value := must.Get(s.Encode(rec))(w.t)
		records[i] = &kgo.Record{Topic: s.Name, Partition: partition, Key: []byte(key), Value: value, Timestamp: at}
	}
	must.OK(w.t, w.client.ProduceSync(w.t.Context(), records...).FirstErr())
}

// PublishBytes sends values without encoding them, for records that cannot be decoded.
func (w *Wire) PublishBytes(topic, key string, values ...[]byte) {
	w.t.Helper()
	for _, value := range values {
		r := &kgo.Record{Topic: topic, Partition: topics.Partition(key, w.Kafka.Partitions), Key: []byte(key), Value: value}
		must.OK(w.t, w.client.ProduceSync(w.t.Context(), r).FirstErr())
	}
}

// Tick fires the timers of an owner's partition that are due at a time, which may be in the future.
func (w *Wire) Tick(group, owner string, at time.Time) {
	w.t.Helper()
	r := &kgo.Record{Topic: topics.TicksOf(group), Partition: topics.Partition(owner, w.Kafka.Partitions), Timestamp: at}
	must.OK(w.t, w.client.ProduceSync(w.t.Context(), r).FirstErr())
}

// Hold runs a function next to the members, such as a global table, until the test ends. It must return when its context
// ends.
func (w *Wire) Hold(run func(context.Context) error) {
	w.t.Helper()
	stop := topicstest.Run(w.t, run)
	w.t.Cleanup(func() { must.OK(w.t, stop()) })
}

// WaitIdle waits until all groups that were ever started have processed all published records, including derived ones. It
// does not wait for timers that are not due.
func (w *Wire) WaitIdle() {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.t.Context(), eventually.Limit())
	defer cancel()
	var readers []topics.Reader
	for group, reads := range w.reads {
		readers = append(readers, topics.Reader{Group: group, Topics: reads})
	}
	must.AtLeast(w.t, len(readers), 1, "started groups")
	must.OK(w.t, topics.Wait(ctx, w.Kafka, schemas.MicrosOf(time.Now())+1, nil, readers...))
}

// Eventually polls a condition until it is true.
func (w *Wire) Eventually(what string, cond func() bool) {
	w.t.Helper()
	eventually.True(w.t, what, cond)
}

// Record is a decoded record of a topic.
type Record[T any] struct {
	Key       string
	Partition int32
	Offset    int64
	Time      time.Time
	Since     schemas.Micros // arrival of the external event that the record originates from
	Value     *T             // nil: a tombstone
}

// Drain returns all committed records of a stream's topic. The records of each partition are in order.
func Drain[T any](w *Wire, s topics.Stream[T]) []Record[T] {
	w.t.Helper()
	var out []Record[T]
	for _, r := range w.Records(s.Name) {
		rec := Record[T]{Key: string(r.Key), Partition: r.Partition, Offset: r.Offset, Time: r.Timestamp, Since: topics.OriginTime(r)}
		if r.Value != nil {
			value := must.Get(s.Decode(r.Value))(w.t)
			rec.Value = value
		}
		out = append(out, rec)
	}
	return out
}

// Values returns the values of records, none of which is a tombstone.
func Values[T any](records []Record[T]) []T {
	return convert.All(records, func(r Record[T]) T { return *r.Value })
}

// DeadLetterReasons returns the sorted reasons of all dead letters.
func (w *Wire) DeadLetterReasons() []string {
	w.t.Helper()
	reasons := convert.All(Drain(w, w.Streams.DeadLetters), func(r Record[schemas.DeadLetter]) string { return r.Value.Reason })
	slices.Sort(reasons)
	return reasons
}

// Row is one row of an owner.
type Row struct {
	Owner string
	Name  []byte
	Value []byte
}

// Rows returns the rows of an owner in order, as stored in the changelog. If owner is "", it returns the rows of all owners.
func (w *Wire) Rows(group, owner string) []Row {
	w.t.Helper()
	state := map[string]Row{}
	for _, r := range w.Records(topics.TableOf(group)) {
		name, row, _ := bytes.Cut(r.Key, []byte{0})
		if len(name) == 0 || owner != "" && string(name) != owner {
			continue // a reserved row, or another owner's
		}
		if r.Value == nil {
			delete(state, string(r.Key))
			continue
		}
		state[string(r.Key)] = Row{Owner: string(name), Name: row, Value: r.Value}
	}
	return slices.SortedFunc(maps.Values(state), func(a, b Row) int {
		return cmp.Or(strings.Compare(a.Owner, b.Owner), bytes.Compare(a.Name, b.Name))
	})
}

// RowsOfKind returns the rows of Rows whose names begin with a byte.
func (w *Wire) RowsOfKind(group, owner string, kind byte) []Row {
	w.t.Helper()
	return slices.DeleteFunc(w.Rows(group, owner), func(r Row) bool { return r.Name[0] != kind })
}
