package topics_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/smartfeed/smartfeed/internal/ops"
	"github.com/smartfeed/smartfeed/internal/testkit/topicstest"
	"github.com/smartfeed/smartfeed/schemas"
	"github.com/smartfeed/smartfeed/topics"
)

func TestRealKafkaTopics(t *testing.T) {
	w := newWire(t)
	want := topics.Catalogue(topics.Profile{Partitions: 4, Replicas: 1})
	if err := topics.Verify(t.Context(), w.Kafka, want); err != nil {
		t.Errorf("Verify after Apply: %v", err)
	}
	longer := topics.Catalogue(topics.Profile{Partitions: 4, Replicas: 1, Actions: 90 * 24 * time.Hour})
	if done, err := topics.Apply(t.Context(), w.Kafka, longer); err != nil || len(done.Alter) != 1 {
		t.Errorf("Apply = %+v, %v, want one setting altered", done, err)
	}
}

// The brokers' clock stamps the records, and a dead letter of maximum size fits.
func TestRealKafkaPublishes(t *testing.T) {
	w := newWire(t)
	if err := w.Publisher().Publish(t.Context(), oneOfEach()); err != nil {
		t.Fatal(err)
	}
	r := &kgo.Record{Topic: topics.Pins, Key: []byte("pin:1"), Value: []byte("early"), Timestamp: time.Now().Add(time.Hour)}
	w.Send(r)
	for _, r := range w.Records(topics.Pins) {
		if age := time.Since(r.Timestamp); age > time.Minute || age < -time.Minute {
			t.Errorf("timestamp %s, want the broker's now", r.Timestamp)
		}
	}
	long := &kgo.Record{Topic: topics.Pins, Key: []byte("pin:1"), Value: make([]byte, schemas.MaxRecordBytes), Timestamp: time.Now()}
	w.Send(long)
	if err := w.Publisher().SendDeadLetter(t.Context(), "objects", long, "too long"); err != nil {
		t.Error(err)
	}
}

func TestRealKafkaWaits(t *testing.T) {
	w := newWire(t)
	p := &pipeline{w: w, slow: 8 * time.Millisecond}
	p.run(t)
	stopTraffic := topicstest.Run(t, func(ctx context.Context) error {
		out := w.Client()
		for i := 0; ctx.Err() == nil; i++ {
			v := fmt.Sprintf("noise%d", i)
			_ = out.ProduceSync(ctx, &kgo.Record{Topic: topics.Pins, Key: []byte(v), Value: []byte(v)})
			time.Sleep(10 * time.Millisecond)
		}
		return nil
	})
	for round := range 4 {
		prefix := fmt.Sprintf("r%d-", round)
		w.produce(topics.Pins, numbered(prefix, 20)...)
		if err := w.wait(t, 2*time.Minute); err != nil {
			t.Fatal(err)
		}
		if got := p.effects(prefix); got != 60 {
			t.Fatalf("round %d: Wait returned after %d effects of 60", round, got)
		}
	}
	_ = stopTraffic()
}

func TestRealKafkaGlobalTable(t *testing.T) {
	w := newWire(t)
	w.Send(w.deleted(t, "user:a", 1))
	table := topics.NewDeletedUsers(w.Kafka, w.Streams, "a", logTo(t))
	topicstest.Run(t, table.Run)
	waitReady(t, table.Ready())
	for i := range 5 {
		user := schemas.UserID(fmt.Sprintf("user:%d", i))
		w.Send(w.deleted(t, user, 1))
		if err := w.wait(t, 2*time.Minute); err != nil {
			t.Fatal(err)
		}
		if !table.Has(user) || !table.Has("user:a") {
			t.Fatalf("Wait returned before %s was there", user)
		}
	}
}

func TestRealKafkaDeadLetters(t *testing.T) {
	w := newWire(t)
	for i := range 5 {
		w.SendDeadLetter(topics.Pins, 0, fmt.Sprintf("pin:%d", i), "v", int64(5-i))
	}
	for _, want := range []int{5, 0} {
		done, err := ops.RetryDeadLetters(t.Context(), w.Kafka, w.Streams, "ann")
		if err != nil || done.Published != want || done.Skipped != 0 {
			t.Errorf("%d dead letters are retried, skipped %d, %v, want %d and 0", done.Published, done.Skipped, err, want)
		}
	}
	if n := w.End(topics.RetryOrders); n != 5 {
		t.Errorf("%d orders, want 5", n)
	}
}
