package topics_test

import (
	"testing"

	"github.com/IBM/sarama"
	"github.com/lovoo/goka"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/smartfeed/smartfeed/internal/testkit/expect"
	"github.com/smartfeed/smartfeed/internal/testkit/must"
	"github.com/smartfeed/smartfeed/topics"
)

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
