package topicstest

import (
	"context"
	"errors"
	"testing"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/smartfeed/smartfeed/internal/testkit/eventually"
	"github.com/smartfeed/smartfeed/schemas"
	"github.com/smartfeed/smartfeed/topics"
	"github.com/smartfeed/smartfeed/topics/embedded"
)

// Embedded is an embedded broker and registry with every topic of the catalogue. Its methods fail the test on an error.
type Embedded struct {
	*embedded.Server
	Kafka   topics.Kafka
	Streams *topics.Streams

	t testing.TB
}

// Start starts an embedded broker whose topics have the given number of partitions. It stops when the test ends.
func Start(t testing.TB, partitions int32) *Embedded {
	t.Helper()
	server, setup := Bare(t)
	e := &Embedded{Server: server, Kafka: server.Kafka(partitions), t: t}
	e.Apply()
	var err error
	e.Streams, err = setup.Streams(t.Context())
	e.must(err)
	return e
}

func (e *Embedded) must(err error) {
	e.t.Helper()
	if err != nil {
		e.t.Fatal(err)
	}
}

// Apply creates the topics of the catalogue that do not exist.
func (e *Embedded) Apply() {
	e.t.Helper()
	_, err := topics.Apply(e.t.Context(), e.Kafka, topics.Catalogue(topics.Profile{Partitions: e.Kafka.Partitions, Embedded: true}))
	e.must(err)
}

// Client returns a client, which is closed when the test ends.
func (e *Embedded) Client(opts ...kgo.Opt) *kgo.Client {
	e.t.Helper()
	client, err := e.Kafka.Client(opts...)
	e.must(err)
	e.t.Cleanup(client.Close)
	return client
}

// Admin returns an administration client, which is closed when the test ends.
func (e *Embedded) Admin() *kadm.Client {
	e.t.Helper()
	return kadm.NewClient(e.Client())
}

// Produce sends values to a topic under key.
func (e *Embedded) Produce(topic, key string, values ...[]byte) {
	e.t.Helper()
	records := make([]*kgo.Record, len(values))
	for i, value := range values {
		records[i] = &kgo.Record{Topic: topic, Key: []byte(key), Value: value}
	}
	client, err := e.Kafka.Client()
	e.must(err)
	defer client.Close()
	e.must(client.ProduceSync(e.t.Context(), records...).FirstErr())
}

// Lag returns the number of records of the named topics after the committed offsets of a group. A group that does not exist has
// committed nothing.
func (e *Embedded) Lag(group string, names ...string) (lag int64) {
	e.t.Helper()
	admin, err := e.Kafka.Admin()
	e.must(err)
	defer admin.Close()
	ends, err := admin.ListEndOffsets(e.t.Context(), names...)
	e.must(err)
	committed, err := admin.FetchOffsets(e.t.Context(), group)
	if !errors.Is(err, kerr.GroupIDNotFound) {
		e.must(err)
	}
	ends.Each(func(end kadm.ListedOffset) {
		offset, _ := committed.Lookup(end.Topic, end.Partition)
		lag += end.Offset - max(0, offset.At)
	})
	return lag
}

// DeadLetters waits for n dead letters, and returns them. More are an error.
func (e *Embedded) DeadLetters(n int) (letters []schemas.DeadLetter) {
	e.t.Helper()
	client, err := e.Kafka.Client(kgo.ConsumeTopics(topics.DeadLetters))
	e.must(err)
	defer client.Close()
	ctx, cancel := context.WithTimeout(e.t.Context(), eventually.Patience)
	defer cancel()
	for len(letters) < n {
		fetches := client.PollFetches(ctx)
		if err := fetches.Err(); err != nil {
			e.t.Fatalf("read %d of %d dead letters: %v", len(letters), n, err)
		}
		fetches.EachRecord(func(r *kgo.Record) {
			letter, err := e.Streams.DeadLetters.Decode(r.Value)
			e.must(err)
			letters = append(letters, *letter)
		})
	}
	if len(letters) != n {
		e.t.Errorf("got %d dead letters, want %d", len(letters), n)
	}
	return letters
}
