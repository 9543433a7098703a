package topics_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/smartfeed/smartfeed/internal/testkit/topicstest"
	"github.com/smartfeed/smartfeed/topics"
	"github.com/smartfeed/smartfeed/topics/embedded"
)

// wire is an embedded broker and registry with every topic of the catalogue.
type wire struct {
	*embedded.Server
	kafka   topics.Kafka
	streams *topics.Streams
}

// newWire uses Apache Kafka for the tests of a real broker, whose names start with TestRealKafka.
func newWire(t *testing.T) *wire {
	t.Helper()
	if strings.HasPrefix(t.Name(), "TestRealKafka") {
		return newRealWire(t)
	}
	server, setup := topicstest.Wire(t)
	streams, err := setup.Streams(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return &wire{Server: server, kafka: setup.Kafka, streams: streams}
}

// newBareWire returns an embedded broker without topics.
func newBareWire(t *testing.T) *wire {
	t.Helper()
	server, setup := topicstest.Bare(t)
	return &wire{Server: server, kafka: setup.Kafka}
}

// client returns a client that is closed when the test ends.
func (w *wire) client(t *testing.T, opts ...kgo.Opt) *kgo.Client {
	t.Helper()
	cl, err := w.kafka.Client(opts...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cl.Close)
	return cl
}

// produce sends values, each with itself as the key, and waits for the acknowledgements.
func (w *wire) produce(t *testing.T, topic string, values ...string) {
	t.Helper()
	var records []*kgo.Record
	for _, v := range values {
		records = append(records, &kgo.Record{Topic: topic, Key: []byte(v), Value: []byte(v)})
	}
	if err := w.client(t).ProduceSync(t.Context(), records...).FirstErr(); err != nil {
		t.Fatal(err)
	}
}

// running starts a Run method. stop cancels it, waits, and returns its error.
func running(t *testing.T, run func(context.Context) error) (stop func() error) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- run(ctx) }()
	stop = func() error {
		cancel()
		select {
		case err := <-done:
			done <- err
			return err
		case <-time.After(time.Minute):
			t.Error("Run did not end within a minute")
			return nil
		}
	}
	t.Cleanup(func() { _ = stop() })
	return stop
}
