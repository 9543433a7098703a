package feed

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/smartfeed/smartfeed/internal/testkit/eventually"
	"github.com/smartfeed/smartfeed/internal/testkit/expect"
	"github.com/smartfeed/smartfeed/internal/testkit/must"
	"github.com/smartfeed/smartfeed/schemas"
	"github.com/smartfeed/smartfeed/topics"
	"github.com/smartfeed/smartfeed/topics/embedded"
)

// TestLog uses a real broker and stops it at the end.
func TestLog(t *testing.T) {
	cfg := embedded.DefaultConfig()
	cfg.Dir, cfg.Kafka, cfg.Registry = t.TempDir(), "127.0.0.1:0", "127.0.0.1:0"
	server := must.Get(embedded.Start(t.Context(), cfg, slog.New(slog.DiscardHandler)))(t)
	closed := false
	defer func() {
		if !closed {
			_ = server.Close()
		}
	}()
	kafka, streams := provision(t, server)
	client := must.Get(kafka.Client())(t)
	defer client.Close()
	log := NewLog(client, streams)

	want := schemas.Served{ID: "s-1", User: viewer, Time: 5, Feed: "home", Items: []schemas.ServedItem{item("a")}}
	outcome, err := log.Publish(t.Context(), &want)
	if outcome != schemas.Acknowledged || err != nil {
		t.Fatalf("got %q, %v, want %q", outcome, err, schemas.Acknowledged)
	}
	record := first(t, kafka, topics.Served)
	got := must.Get(streams.Served.Decode(record.Value))(t)
	same(t, "published", got.Items[0].Pin, want.Items[0].Pin)
	same(t, "key", string(record.Key), string(viewer))
	same(t, "partition", record.Partition, topics.Partition(string(viewer), kafka.Partitions))

	huge := want
	huge.Items = []schemas.ServedItem{item(strings.Repeat("x", 4<<20))}
	outcome, err = log.Publish(t.Context(), &huge)
	if outcome != schemas.Failed || err == nil {
		t.Errorf("too large: got %q, %v, want %q", outcome, err, schemas.Failed)
	}

	announced := schemas.UserActivity{User: viewer, Time: 5}
	must.OK(t, log.Announce(t.Context(), &announced))
	record = first(t, kafka, topics.UserActivity)
	visit := must.Get(streams.UserActivity.Decode(record.Value))(t)
	same(t, "announced", *visit, announced)
	same(t, "key", string(record.Key), string(viewer))

	closed = true
	must.OK(t, server.Close())
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	start := time.Now()
	outcome, err = log.Publish(ctx, &want)
	if outcome != schemas.Unknown || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("broker unavailable: got %q, %v, want %q", outcome, err, schemas.Unknown)
	}
	if took := time.Since(start); took > 20*time.Second { // generous, for a busy machine
		t.Errorf("broker unavailable: took %s, want 100ms", took)
	}
	if err := log.Announce(ctx, &announced); err == nil {
		t.Error("announced to a stopped broker")
	}
}

func provision(t *testing.T, server *embedded.Server) (topics.Kafka, *topics.Streams) {
	t.Helper()
	kafka := server.Kafka(0)
	profile := topics.Profile{Partitions: kafka.Partitions, Embedded: true}
	must.Get(topics.Apply(t.Context(), kafka, topics.Catalogue(profile)))(t)
	registry := must.Get(schemas.NewRegistry(server.RegistryURL()))(t)
	streams := must.Get(topics.Open(t.Context(), registry))(t)
	return kafka, streams
}

// first returns the first record of a topic.
func first(t *testing.T, kafka topics.Kafka, topic string) *kgo.Record {
	t.Helper()
	client := must.Get(kafka.Client(kgo.ConsumeTopics(topic)))(t)
	defer client.Close()
	ctx, cancel := context.WithTimeout(t.Context(), eventually.Patience)
	defer cancel()
	for {
		fetches := client.PollFetches(ctx)
		must.OK(t, fetches.Err())
		for r := range fetches.RecordsAll() {
			return r
		}
	}
}

func TestOutcomeOf(t *testing.T) {
	for err, want := range map[error]schemas.Outcome{
		kgo.ErrMaxBuffered:            schemas.Failed,
		kgo.ErrRecordTimeout:          schemas.Failed,
		kerr.MessageTooLarge:          schemas.Failed,
		kerr.TopicAuthorizationFailed: schemas.Failed,
		kgo.ErrClientClosed:           schemas.Unknown,
		kerr.RequestTimedOut:          schemas.Unknown,
		kerr.OutOfOrderSequenceNumber: schemas.Unknown,
		errors.New("anything else"):   schemas.Unknown,
	} {
		expect.Equal(t, outcomeOf(err), want, "%v", err)
	}
}
