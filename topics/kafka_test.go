package topics_test

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/smartfeed/smartfeed/internal/ops"
	"github.com/smartfeed/smartfeed/internal/testkit/eventually"
	"github.com/smartfeed/smartfeed/schemas"
	"github.com/smartfeed/smartfeed/topics"
)

// realKafka names the variable with the address of a Kafka broker for tests. Tests leave topics behind.
const realKafka = "SMARTFEED_TEST_KAFKA"

// newRealWire returns Apache Kafka with all topics, emptied, and an embedded registry.
func newRealWire(t *testing.T) *wire {
	t.Helper()
	addr := os.Getenv(realKafka)
	if addr == "" {
		t.Skipf("set %s to the address of a Kafka broker", realKafka)
	}
	w := newBareWire(t)
	w.kafka = topics.Kafka{Brokers: strings.Split(addr, ","), Partitions: 4}
	profile, err := topics.ProfileOf(t.Context(), w.kafka)
	if err != nil {
		t.Fatal(err)
	}
	if profile.Embedded {
		t.Fatalf("%s is an embedded broker", addr)
	}
	w.empty(t, topics.Catalogue(profile))
	if _, err := topics.Apply(t.Context(), w.kafka, topics.Catalogue(profile)); err != nil {
		t.Fatal(err)
	}
	registry, err := schemas.NewRegistry(w.RegistryURL())
	if err != nil {
		t.Fatal(err)
	}
	if w.streams, err = topics.Open(t.Context(), registry); err != nil {
		t.Fatal(err)
	}
	return w
}

// empty deletes what earlier tests have left: consumer groups, and topics that are not in the state of a new topic.
func (w *wire) empty(t *testing.T, catalogue []topics.Topic) {
	t.Helper()
	adm := w.admin(t)
	groups, err := adm.ListGroups(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := adm.DeleteGroups(t.Context(), groups.Groups()...); err != nil {
		t.Fatal(err)
	}
	used := w.used(t, catalogue)
	if _, err := adm.DeleteTopics(t.Context(), used...); err != nil {
		t.Fatal(err)
	}
	eventually.True(t, "the topics are gone", func() bool {
		there := w.topicNames(t)
		return !slices.ContainsFunc(used, func(name string) bool { return slices.Contains(there, name) })
	})
}

// used returns the topics of a catalogue that have or had records, or a different number of partitions.
func (w *wire) used(t *testing.T, catalogue []topics.Topic) (names []string) {
	t.Helper()
	all, err := w.admin(t).ListEndOffsets(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, topic := range catalogue {
		ends, there := all[topic.Name]
		fresh := len(ends) == int(topic.Partitions)
		for _, end := range ends {
			fresh = fresh && end.Err == nil && end.Offset == 0
		}
		if there && !fresh {
			names = append(names, topic.Name)
		}
	}
	return names
}

func TestRealKafkaTopics(t *testing.T) {
	w := newRealWire(t)
	want := topics.Catalogue(topics.Profile{Partitions: 4, Replicas: 1})
	if err := topics.Verify(t.Context(), w.kafka, want); err != nil {
		t.Errorf("Verify after Apply: %v", err)
	}
	longer := topics.Catalogue(topics.Profile{Partitions: 4, Replicas: 1, Actions: 90 * 24 * time.Hour})
	if done, err := topics.Apply(t.Context(), w.kafka, longer); err != nil || len(done.Alter) != 1 {
		t.Errorf("Apply = %+v, %v, want one setting altered", done, err)
	}
}

// The brokers' clock stamps the records, and a dead letter of maximum size fits.
func TestRealKafkaPublishes(t *testing.T) {
	w := newRealWire(t)
	if err := w.publisher(t).Publish(t.Context(), oneOfEach()); err != nil {
		t.Fatal(err)
	}
	r := &kgo.Record{Topic: topics.Pins, Key: []byte("pin:1"), Value: []byte("early"), Timestamp: time.Now().Add(time.Hour)}
	w.send(t, r)
	for _, r := range w.drain(t, topics.Pins) {
		if age := time.Since(r.Timestamp); age > time.Minute || age < -time.Minute {
			t.Errorf("timestamp %s, want the broker's now", r.Timestamp)
		}
	}
	long := &kgo.Record{Topic: topics.Pins, Key: []byte("pin:1"), Value: make([]byte, schemas.MaxRecordBytes), Timestamp: time.Now()}
	w.send(t, long)
	if err := w.publisher(t).Bury(t.Context(), "objects", long, "too long"); err != nil {
		t.Error(err)
	}
}

func TestRealKafkaWaits(t *testing.T) {
	w := newRealWire(t)
	p := &pipeline{w: w, slow: 8 * time.Millisecond}
	p.run(t)
	stopTraffic := running(t, func(ctx context.Context) error {
		out := w.client(t)
		for i := 0; ctx.Err() == nil; i++ {
			v := fmt.Sprintf("noise%d", i)
			_ = out.ProduceSync(ctx, &kgo.Record{Topic: topics.Pins, Key: []byte(v), Value: []byte(v)})
			time.Sleep(10 * time.Millisecond)
		}
		return nil
	})
	for round := range 4 {
		prefix := fmt.Sprintf("r%d-", round)
		w.produce(t, topics.Pins, numbered(prefix, 20)...)
		if err := w.wait(t, 2*time.Minute); err != nil {
			t.Fatal(err)
		}
		if got := p.effects(prefix); got != 60 {
			t.Fatalf("round %d: Wait returned after %d effects of 60", round, got)
		}
	}
	_ = stopTraffic()
}

func TestRealKafkaWhole(t *testing.T) {
	w := newRealWire(t)
	w.send(t, w.deleted(t, "user:a", 1))
	whole := topics.NewDeletedUsers(w.kafka, w.streams, "a", logTo(t))
	running(t, whole.Run)
	waitReady(t, whole.Ready())
	for i := range 5 {
		user := schemas.UserID(fmt.Sprintf("user:%d", i))
		w.send(t, w.deleted(t, user, 1))
		if err := w.wait(t, 2*time.Minute); err != nil {
			t.Fatal(err)
		}
		if !whole.Has(user) || !whole.Has("user:a") {
			t.Fatalf("Wait returned before %s was there", user)
		}
	}
}

func TestRealKafkaDeadLetters(t *testing.T) {
	w := newRealWire(t)
	for i := range 5 {
		w.bury(t, topics.Pins, 0, fmt.Sprintf("pin:%d", i), "v", int64(5-i))
	}
	for _, want := range []int{5, 0} {
		done, err := ops.RetryDeadLetters(t.Context(), w.kafka, w.streams, "ann")
		if err != nil || done.Published != want || done.Skipped != 0 {
			t.Errorf("%d dead letters are retried, skipped %d, %v, want %d and 0", done.Published, done.Skipped, err, want)
		}
	}
	if n := w.end(t, topics.RetryOrders); n != 5 {
		t.Errorf("%d orders, want 5", n)
	}
}
