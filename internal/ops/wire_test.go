package ops_test

import (
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/smartfeed/smartfeed/internal/testkit/topicstest"
	"github.com/smartfeed/smartfeed/topics"
	"github.com/smartfeed/smartfeed/topics/embedded"
)

// wire is an embedded broker and registry with every topic of the catalogue.
type wire struct {
	*embedded.Server
	setup   topics.Setup
	streams *topics.Streams
}

func newWire(t *testing.T) *wire {
	t.Helper()
	server, setup := topicstest.Wire(t)
	streams, err := setup.Streams(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return &wire{server, setup, streams}
}

// newBareWire returns an embedded broker without topics.
func newBareWire(t *testing.T) *wire {
	t.Helper()
	server, setup := topicstest.Bare(t)
	return &wire{Server: server, setup: setup}
}

// client returns a client that is closed when the test ends.
func (w *wire) client(t *testing.T) *kgo.Client {
	t.Helper()
	cl, err := w.setup.Kafka.Client()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cl.Close)
	return cl
}

func (w *wire) admin(t *testing.T) *kadm.Client {
	t.Helper()
	return kadm.NewClient(w.client(t))
}

func (w *wire) topicNames(t *testing.T) []string {
	t.Helper()
	return topicstest.Names(t, w.setup.Kafka)
}

func (w *wire) publisher(t *testing.T) *topics.Publisher {
	t.Helper()
	p, err := topics.NewPublisher(w.setup.Kafka, w.streams)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	return p
}

// send produces records and waits for the acknowledgements.
func (w *wire) send(t *testing.T, records ...*kgo.Record) {
	t.Helper()
	if err := w.client(t).ProduceSync(t.Context(), records...).FirstErr(); err != nil {
		t.Fatal(err)
	}
}

// bury sends a record to the dead-letter topic.
func (w *wire) bury(t *testing.T, topic string, partition int32, key, value string, at int64) {
	t.Helper()
	r := &kgo.Record{Topic: topic, Partition: partition, Offset: at, Key: []byte(key), Value: []byte(value), Timestamp: time.UnixMilli(at)}
	if err := w.publisher(t).Bury(t.Context(), "objects", r, "no good"); err != nil {
		t.Fatal(err)
	}
}

// drain returns all committed records of a topic.
func (w *wire) drain(t *testing.T, topic string) (all []*kgo.Record) {
	t.Helper()
	l, err := topics.NewLog(w.setup.Kafka)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if err := l.ReadAll(t.Context(), topic, func(r *kgo.Record) error { all = append(all, r); return nil }); err != nil {
		t.Fatal(err)
	}
	return all
}

// end returns the sum of the end offsets of a topic's partitions.
func (w *wire) end(t *testing.T, topic string) (sum int64) {
	t.Helper()
	ends, err := w.admin(t).ListEndOffsets(t.Context(), topic)
	if err != nil {
		t.Fatal(err)
	}
	ends.Each(func(o kadm.ListedOffset) { sum += o.Offset })
	return sum
}
