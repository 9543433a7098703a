package topics_test

import (
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/smartfeed/smartfeed/internal/convert"
	"github.com/smartfeed/smartfeed/internal/testkit/topicstest"
)

// wire is a cluster with the consumers and producers of these tests.
type wire struct{ *topicstest.Cluster }

// newWire uses Apache Kafka for the tests of a real broker, whose names start with TestRealKafka.
func newWire(t *testing.T) *wire {
	t.Helper()
	if strings.HasPrefix(t.Name(), "TestRealKafka") {
		return &wire{topicstest.Real(t)}
	}
	return &wire{topicstest.Start(t, 0)}
}

// newBareWire returns an embedded broker without topics.
func newBareWire(t *testing.T) *wire {
	t.Helper()
	return &wire{topicstest.Bare(t, 0)}
}

// produce sends values, each with itself as the key.
func (w *wire) produce(topic string, values ...string) {
	w.Send(keyed(topic, values)...)
}

func keyed(topic string, values []string) []*kgo.Record {
	return convert.All(values, func(v string) *kgo.Record { return &kgo.Record{Topic: topic, Key: []byte(v), Value: []byte(v)} })
}
