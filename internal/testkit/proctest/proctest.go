// Package proctest runs groups of package rows in tests, over a real network connection. It starts an embedded broker and
// schema registry with all topics of the catalogue. Tests can start, kill, pause and restart members, drop answers of the
// broker, and read the resulting rows and records.
//
//	w := proctest.New(t)
//	w.Start("a", fanout.Group(cfg, w.Kafka.Partitions, w.Streams, nobody))
//	proctest.Publish(w, w.Streams.Follows, "user:1", &follow)
//	w.WaitIdle()
//	edges := proctest.Drain(w, w.Streams.Edges)
//
// All functions fail the test on an error and clean up after the test. Broker and members run in the test's process, so Kill
// drops what a crash would drop. For kill -9, see the torture test of package rows.
package proctest

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/smartfeed/smartfeed/schemas"
	"github.com/smartfeed/smartfeed/topics"
	"github.com/smartfeed/smartfeed/topics/embedded"
)

// Patience is how long the methods wait for a result before they fail the test.
const Patience = time.Minute

// Wire is a broker, an embedded registry with the topics of the catalogue, and the members that process them.
type Wire struct {
	Kafka   topics.Kafka
	Streams *topics.Streams
	Broker  *embedded.Server // for faults; nil: the brokers are real

	t       testing.TB
	dir     string
	client  *kgo.Client // produces to Record.Partition
	log     *slog.Logger
	members map[string]*Member
	reads   map[string][]string // topics by group, for every group that was ever started
}

// New starts a broker with the number of partitions of the embedded profile.
func New(t testing.TB) *Wire { return NewOf(t, topics.EmbeddedPartitions) }

// NewOf starts a broker whose topics have the given number of partitions.
func NewOf(t testing.TB, partitions int32) *Wire {
	t.Helper()
	w := newWire(t)
	cfg := embedded.DefaultConfig()
	cfg.Dir, cfg.Kafka, cfg.Registry = filepath.Join(w.dir, "broker"), "127.0.0.1:0", "127.0.0.1:0"
	var err error
	w.Broker, err = embedded.Start(t.Context(), cfg, w.log)
	w.must(err)
	t.Cleanup(func() {
		if err := w.Broker.Close(); err != nil {
			t.Error(err)
		}
	})
	w.Kafka = w.Broker.Kafka(partitions)
	w.connect(topics.Catalogue(topics.Profile{Partitions: partitions, Embedded: true}), w.Broker.RegistryURL())
	return w
}

func newWire(t testing.TB) *Wire {
	return &Wire{
		t: t, dir: t.TempDir(), members: map[string]*Member{}, reads: map[string][]string{},
		log: slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelWarn})),
	}
}

// connect creates the missing topics and opens the client and streams of the wire.
func (w *Wire) connect(catalogue []topics.Topic, registryURL string) {
	w.t.Helper()
	var err error
	w.client, err = w.Kafka.Client(
		kgo.RecordPartitioner(kgo.ManualPartitioner()),
		kgo.RecordDeliveryTimeout(0)) // the timeout counts from a record's timestamp, and PublishAt sends old ones
	w.must(err)
	w.t.Cleanup(w.client.Close)
	_, err = topics.Apply(w.t.Context(), w.Kafka, catalogue)
	w.must(err)
	registry, err := schemas.NewRegistry(registryURL)
	w.must(err)
	w.Streams, err = topics.Open(w.t.Context(), registry)
	w.must(err)
}

func (w *Wire) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

// CreateTopics creates topics that are not in the catalogue, with the same number of partitions.
func (w *Wire) CreateTopics(names ...string) {
	w.t.Helper()
	made, err := kadm.NewClient(w.client).CreateTopics(w.t.Context(), w.Kafka.Partitions, 1, nil, names...)
	w.must(err)
	w.must(made.Error())
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
		value, err := s.Encode(rec)
		w.must(err)
		records[i] = &kgo.Record{Topic: s.Name, Partition: partition, Key: []byte(key), Value: value, Timestamp: at}
	}
	w.must(w.client.ProduceSync(w.t.Context(), records...).FirstErr())
}

// PublishBytes sends values without encoding them, for records that cannot be decoded.
func (w *Wire) PublishBytes(topic, key string, values ...[]byte) {
	w.t.Helper()
	for _, value := range values {
		r := &kgo.Record{Topic: topic, Partition: topics.Partition(key, w.Kafka.Partitions), Key: []byte(key), Value: value}
		w.must(w.client.ProduceSync(w.t.Context(), r).FirstErr())
	}
}

// Tick fires the timers of an owner's partition that are due at a time, which may be in the future.
func (w *Wire) Tick(group, owner string, at time.Time) {
	w.t.Helper()
	r := &kgo.Record{Topic: topics.TicksOf(group), Partition: topics.Partition(owner, w.Kafka.Partitions), Timestamp: at}
	w.must(w.client.ProduceSync(w.t.Context(), r).FirstErr())
}

// Hold runs a function next to the members, such as a global table, until the test ends. It must return when its context
// ends.
func (w *Wire) Hold(run func(context.Context) error) {
	w.t.Helper()
	ctx, cancel := context.WithCancel(context.WithoutCancel(w.t.Context()))
	ended := make(chan error, 1)
	go func() { ended <- run(ctx) }()
	w.t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			w.t.Error(err)
		}
	})
}

// WaitIdle waits until all groups that were ever started have processed everything that was published, including derived
// records. It does not wait for timers that are not due.
func (w *Wire) WaitIdle() {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.t.Context(), Patience)
	defer cancel()
	var readers []topics.Reader
	for group, reads := range w.reads {
		readers = append(readers, topics.Reader{Group: group, Topics: reads})
	}
	if len(readers) == 0 {
		w.t.Fatal("wait: no group was started")
	}
	w.must(topics.Wait(ctx, w.Kafka, schemas.MicrosOf(time.Now())+1, nil, readers...))
}

// Eventually polls a condition until it is true.
func (w *Wire) Eventually(what string, cond func() bool) {
	w.t.Helper()
	deadline := time.Now().Add(Patience)
	for !cond() {
		if time.Now().After(deadline) {
			w.t.Fatalf("not within %s: %s", Patience, what)
		}
		time.Sleep(2 * time.Millisecond)
	}
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
		rec := Record[T]{Key: string(r.Key), Partition: r.Partition, Offset: r.Offset, Time: r.Timestamp, Since: topics.SinceOf(r)}
		if r.Value != nil {
			value, err := s.Decode(r.Value)
			w.must(err)
			rec.Value = value
		}
		out = append(out, rec)
	}
	return out
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
	list := make([]Row, 0, len(state))
	for _, row := range state {
		list = append(list, row)
	}
	slices.SortFunc(list, func(a, b Row) int {
		if c := bytes.Compare([]byte(a.Owner), []byte(b.Owner)); c != 0 {
			return c
		}
		return bytes.Compare(a.Name, b.Name)
	})
	return list
}

// Records returns all committed records of a topic up to its current end, without decoding them.
func (w *Wire) Records(topic string) []*kgo.Record {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.t.Context(), Patience)
	defer cancel()
	ends, err := kadm.NewClient(w.client).ListEndOffsets(ctx, topic)
	w.must(err)
	left := map[int32]int64{}
	ends.Each(func(o kadm.ListedOffset) {
		if o.Offset > 0 {
			left[o.Partition] = o.Offset
		}
	})
	client, err := w.Kafka.Client(kgo.ConsumeTopics(topic), kgo.KeepControlRecords())
	w.must(err)
	defer client.Close()
	var records []*kgo.Record
	for len(left) > 0 {
		fetches := client.PollFetches(ctx)
		w.must(fetches.Err())
		fetches.EachRecord(func(r *kgo.Record) {
			end, wanted := left[r.Partition]
			if wanted && !r.Attrs.IsControl() {
				records = append(records, r)
			}
			if wanted && r.Offset >= end-1 {
				delete(left, r.Partition)
			}
		})
	}
	return records
}

// String returns a name for logs.
func (w *Wire) String() string { return fmt.Sprintf("broker %v", w.Kafka.Brokers) }
