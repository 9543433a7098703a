package ops

import (
	"fmt"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/sr/srfake"

	"github.com/smartfeed/smartfeed/internal/testkit/expect"
	"github.com/smartfeed/smartfeed/internal/testkit/must"
	"github.com/smartfeed/smartfeed/internal/testkit/topicstest"
	"github.com/smartfeed/smartfeed/schemas"
	"github.com/smartfeed/smartfeed/serving/api"
	"github.com/smartfeed/smartfeed/topics"
)

// The serve role is sufficient to list dead letters and to retry them. A dead letter
// too large for a retry order is sent back to an input topic directly. For another topic, an operator must send it, and no
// later dead letter is skipped.
func TestRetryDeadLetters_NeedsOnlyGrantsOfServe(t *testing.T) {
	admin, as := topicstest.Admitted(t, topics.RoleServe, map[string]func(topics.Grant) bool{"serve": func(topics.Grant) bool { return false }})
	registry := srfake.New()
	t.Cleanup(registry.Close)
	client := must.Get(schemas.NewRegistry(registry.URL()))(t)
	streams := must.Get(topics.Open(t.Context(), client))(t)
	root, serve := topicstest.On(t, admin, streams), topicstest.On(t, as("serve"), streams)
	retry := func(k topics.Kafka) (int, error) {
		done, err := RetryDeadLetters(t.Context(), k, streams, "ann")
		return done.Published, err
	}
	long := strings.Repeat("x", topics.MaxRetriedBytes)
	root.SendDeadLetter(topics.Deliveries, 0, "user:a", "short", 1)
	root.SendDeadLetter(topics.Pins, 0, "pin:1", long, 2)
	expect.Equal(t, len(must.Get(ListDeadLetters(t.Context(), serve.Kafka, streams, 10))(t)), 2, "dead letters listed")
	expect.Equal(t, must.Get(retry(serve.Kafka))(t), 2, "dead letters retried")
	root.SendDeadLetter(topics.Deliveries, 0, "user:a", long, 3)
	for range 2 {
		n, err := retry(serve.Kafka)
		expect.Equal(t, n, 0, "retried dead letters")
		expect.Equal(t, must.As[*api.TooLongError](t, err).Topic, topics.Deliveries, "topic of the dead letter that is too long")
		expect.Error(t, err, "Write on topic deliveries", "missing permission")
	}
	expect.Equal(t, must.Get(retry(admin))(t), 1, "dead letters retried by the role operate")
	expect.Equal(t, len(root.Records(topics.Deliveries)), 1, "deliveries: the long one")
}

func TestRealKafkaDeadLetters(t *testing.T) {
	w := topicstest.Real(t)
	for i := range 5 {
		w.SendDeadLetter(topics.Pins, 0, fmt.Sprintf("pin:%d", i), "v", int64(5-i))
	}
	for _, want := range []int{5, 0} {
		done := must.Get(RetryDeadLetters(t.Context(), w.Kafka, w.Streams, "ann"))(t)
		expect.Equal(t, [2]int{done.Published, done.Skipped}, [2]int{want, 0}, "dead letters retried and skipped")
	}
	expect.Equal(t, w.End(topics.RetryOrders), 5, "orders")
}
