package topics_test

import (
	"testing"
	"time"

	"github.com/IBM/sarama"
	"github.com/lovoo/goka"
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

// These settings differ from the defaults or from a likely mistake. With any other value, records are lost, or aborted
// records are read. Such faults rarely show in a running program, so the test compares the values themselves.
func TestClient_SettingsThatKeepRecords(t *testing.T) {
	client := must.Get(topics.Kafka{Brokers: []string{"127.0.0.1:1"}}.Client())(t)
	t.Cleanup(client.Close)
	for _, c := range []struct {
		name string
		got  any
		want any
	}{
		{"isolation level", client.OptValue(kgo.FetchIsolationLevel), int8(1)}, // read committed
		{"start of a new reader", client.OptValue(kgo.ConsumeStartOffset), kgo.NewOffset().AtStart()},
		{"acknowledgements", client.OptValue(kgo.RequiredAcks), kgo.AllISRAcks()},
		{"idempotent writes disabled", client.OptValue(kgo.DisableIdempotentWrite), false},
	} {
		expect.Equal(t, c.got, c.want, "%s", c.name)
	}
}

// Goka's defaults differ for each of these.
func TestSarama_SettingsThatKeepRecords(t *testing.T) {
	c := must.Get(topics.Kafka{Brokers: []string{"127.0.0.1:1"}}.Sarama())(t)
	expect.Equal(t, c.Consumer.IsolationLevel, sarama.ReadCommitted, "isolation level")
	expect.Equal(t, c.Consumer.Offsets.Initial, sarama.OffsetOldest, "start of a new group")
	expect.Equal(t, c.Producer.RequiredAcks, sarama.WaitForAll, "acknowledgements")
	expect.False(t, c.Metadata.AllowAutoTopicCreation, "clients create topics automatically")
	if got := c.Consumer.Group.Rebalance.GroupStrategies; len(got) != 1 || got[0] != goka.CopartitioningStrategy {
		t.Errorf("assignment: got %v, want %v", got, goka.CopartitioningStrategy)
	}
}
