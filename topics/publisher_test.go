package topics_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/smartfeed/smartfeed/internal/testkit/eventually"
	"github.com/smartfeed/smartfeed/internal/testkit/expect"
	"github.com/smartfeed/smartfeed/internal/testkit/must"
	"github.com/smartfeed/smartfeed/internal/testkit/topicstest"
	"github.com/smartfeed/smartfeed/schemas"
	"github.com/smartfeed/smartfeed/topics"
)

func follow(i int) schemas.Line {
	e := &schemas.FollowEvent{Event: schemas.Event{
		ID: fmt.Sprintf("e%d", i), Time: 1, Actor: "user:a", Verb: schemas.Follow, Object: schemas.ID(fmt.Sprintf("user:%d", i)),
	}}
	return schemas.NewLine(e)
}

// oneOfEach returns an event of every stream.
func oneOfEach() []schemas.Line {
	event := func(verb schemas.Verb, object schemas.ID) schemas.Event {
		return schemas.Event{ID: "e-" + string(object), Time: 1, Actor: "user:a", Verb: verb, Object: object}
	}
	lines := []schemas.Line{
		{Stream: "pins", Event: &schemas.PinEvent{Event: event(schemas.Create, "pin:1")}},
		{Stream: "follows", Event: &schemas.FollowEvent{Event: event(schemas.Follow, "board:1")}},
		{Stream: "actions", Event: &schemas.ActionEvent{Event: event(schemas.Save, "pin:1"), Board: "board:1"}},
		{Stream: "users", Event: &schemas.UserEvent{Event: event(schemas.Update, "user:a")}},
		{Stream: "candidates", Event: &schemas.Offer{ID: "o", Time: 1, User: "user:a", Source: "ads", Candidates: []schemas.Candidate{}}},
	}
	for i := range lines {
		lines[i].Key = lines[i].Event.(interface{ Key() string }).Key()
	}
	return lines
}

func TestPublish_ReturnsAfterAcknowledgement(t *testing.T) {
	w := newWire(t)
	before := time.Now().Truncate(time.Millisecond)
	for _, line := range oneOfEach() {
		must.OK(t, w.Publisher().Publish(t.Context(), []schemas.Line{line}))
		got := w.Records(line.Stream)
		must.Equal(t, len(got), 1, "records on %s", line.Stream)
		r := got[0]
		expect.Equal(t, string(r.Key), line.Key, "%s: key", line.Stream)
		expect.Equal(t, r.Partition, topics.Partition(line.Key, w.Kafka.Partitions), "%s: partition", line.Stream)
		if r.Timestamp.Before(before) || time.Since(r.Timestamp) > time.Minute {
			t.Errorf("%s: timestamp %s, want now", line.Stream, r.Timestamp)
		}
	}
	r := w.Records(topics.Pins)[0]
	got, err := w.Streams.Pins.Decode(r.Value)
	if want := oneOfEach()[0].Event.(*schemas.PinEvent); err != nil || cmp.Diff(want.Event, got.Event) != "" {
		t.Errorf("decoded %+v, %v, want %+v", got, err, want)
	}
}

func TestPublishAs_RecordsOperatorOfDeletes(t *testing.T) {
	w := newWire(t)
	deletion := schemas.Event{ID: "d", Time: 1, Actor: "user:7", Verb: schemas.Delete, Object: "user:7"}
	update := deletion
	update.ID, update.Verb = "u", schemas.Update
	lines := []schemas.Line{
		{Stream: topics.Users, Key: "user:7", Event: &schemas.UserEvent{Event: update}},
		{Stream: topics.Users, Key: "user:7", Event: &schemas.UserEvent{Event: deletion}},
	}
	p := w.Publisher()
	must.OK(t, errors.Join(p.PublishAs(t.Context(), "service:gdpr", lines), p.Publish(t.Context(), lines)))
	var got []string
	for _, r := range w.Records(topics.Users) {
		operator := ""
		for _, h := range r.Headers {
			if h.Key == topics.OperatorHeader {
				operator = string(h.Value)
			}
		}
		got = append(got, operator)
	}
	expect.NoDiff(t, got, []string{"", "service:gdpr", "", ""}, "operators")
}

func TestPublish_PublishesNothingIfEncodingFails(t *testing.T) {
	w := newWire(t)
	bad := follow(2)
	bad.Event.(*schemas.FollowEvent).ID = "\xff"
	expect.Fails(t, w.Publisher().Publish(t.Context(), []schemas.Line{follow(1), bad}), "Publish")
	expect.Equal(t, len(w.Records(topics.Follows)), 0, "records published")
}

func TestPublish_CountsAcknowledgedEvents(t *testing.T) {
	w := newWire(t)
	line := follow(1)
	hits := topicstest.FailProduce(w.Broker(), topics.Partition(line.Key, w.Kafka.Partitions), kerr.TopicAuthorizationFailed.Code)
	err := w.Publisher().Publish(t.Context(), []schemas.Line{line})
	partial := must.As[*topics.PublishError](t, err)
	expect.Equal(t, [2]int{partial.Acknowledged, partial.Events}, [2]int{0, 1}, "acknowledged events, of all")
	expect.Is(t, err, kerr.TopicAuthorizationFailed, "Publish")
	expect.True(t, hits.Load() > 0, "the fault is hit")
}

func TestPublish_ReturnsWhenContextEnds(t *testing.T) {
	w := newWire(t)
	line := follow(1)
	hits := topicstest.FailProduce(w.Broker(), topics.Partition(line.Key, w.Kafka.Partitions), kerr.NotLeaderForPartition.Code)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	p, published := w.Publisher(), make(chan error, 1)
	go func() { published <- p.Publish(ctx, []schemas.Line{line}) }()
	eventually.True(t, "a second attempt", func() bool { return hits.Load() >= 2 })
	cancel()
	err := <-published
	must.As[*topics.PublishError](t, err)
	expect.Is(t, err, context.Canceled, "Publish: the cause of the context")
}

func TestSend_ManyEvents(t *testing.T) {
	w := newWire(t)
	p := w.Publisher()
	var acked, failed atomic.Int64
	const n = 20_000
	for i := range n {
		p.Send(t.Context(), follow(i), func(err error) {
			if err != nil {
				failed.Add(1)
				return
			}
			acked.Add(1)
		})
	}
	must.OK(t, p.Flush(t.Context()))
	expect.Equal(t, [2]int64{acked.Load(), failed.Load()}, [2]int64{n, 0}, "events acknowledged and failed")
	expect.Equal(t, w.End(topics.Follows), n, "records")
}

func TestSendDeadLetter(t *testing.T) {
	w := newWire(t)
	r := &kgo.Record{Topic: "edges", Partition: 3, Offset: 17, Key: []byte("user:a"), Value: []byte("?"), Timestamp: time.UnixMilli(1000)}
	must.OK(t, w.Publisher().SendDeadLetter(t.Context(), "materialize", r, "not framed"))
	deadLetters := w.Records(topics.DeadLetters)
	if len(deadLetters) != 1 || string(deadLetters[0].Key) != "edges" {
		t.Fatalf("dead letters %v, want one under its source topic", deadLetters)
	}
	expect.Equal(t, topics.OriginTime(deadLetters[0]), 1_000_000, "origin time: the arrival of the record")
	got, err := w.Streams.DeadLetters.Decode(deadLetters[0].Value)
	want := &schemas.DeadLetter{
		Topic: "edges", Partition: 3, Offset: 17, Group: "materialize", Reason: "not framed", Time: 1_000_000,
		Key: []byte("user:a"), Value: []byte("?"),
	}
	must.OK(t, err)
	expect.NoDiff(t, got, want, "dead letter")
}
