package topics_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/smartfeed/smartfeed/internal/ops"
	"github.com/smartfeed/smartfeed/internal/testkit/expect"
	"github.com/smartfeed/smartfeed/internal/testkit/must"
	"github.com/smartfeed/smartfeed/schemas"
	"github.com/smartfeed/smartfeed/topics"
)

func TestRealKafkaTopics(t *testing.T) {
	w := newWire(t)
	want := topics.Catalogue(topics.Profile{Partitions: 4, Replicas: 1})
	must.OK(t, topics.Verify(t.Context(), w.Kafka, want))
	longer := topics.Catalogue(topics.Profile{Partitions: 4, Replicas: 1, Actions: 90 * 24 * time.Hour})
	expect.Equal(t, len(must.Get(topics.Apply(t.Context(), w.Kafka, longer))(t).Alter), 1, "altered settings")
}

// The brokers' clock stamps the records, and a dead letter of maximum size fits.
func TestRealKafkaPublishes(t *testing.T) {
	w := newWire(t)
	must.OK(t, w.Publisher().Publish(t.Context(), oneOfEach()))
	r := &kgo.Record{Topic: topics.Pins, Key: []byte("pin:1"), Value: []byte("early"), Timestamp: time.Now().Add(time.Hour)}
	w.Send(r)
	for _, r := range w.Records(topics.Pins) {
		expect.Between(t, time.Since(r.Timestamp), -time.Minute, time.Minute, "age of the timestamp by the broker's clock")
	}
	long := &kgo.Record{Topic: topics.Pins, Key: []byte("pin:1"), Value: make([]byte, schemas.MaxRecordBytes), Timestamp: time.Now()}
	w.Send(long)
	must.OK(t, w.Publisher().SendDeadLetter(t.Context(), "objects", long, "too long"))
}

func TestRealKafkaDeadLetters(t *testing.T) {
	w := newWire(t)
	for i := range 5 {
		w.SendDeadLetter(topics.Pins, 0, fmt.Sprintf("pin:%d", i), "v", int64(5-i))
	}
	for _, want := range []int{5, 0} {
		done := must.Get(ops.RetryDeadLetters(t.Context(), w.Kafka, w.Streams, "ann"))(t)
		expect.Equal(t, [2]int{done.Published, done.Skipped}, [2]int{want, 0}, "dead letters retried and skipped")
	}
	expect.Equal(t, w.End(topics.RetryOrders), 5, "orders")
}
