package topics_test

import (
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

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
