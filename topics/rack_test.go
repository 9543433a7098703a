package topics_test

import (
	"context"
	"fmt"
	"net"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/smartfeed/smartfeed/internal/testkit/expect"
	"github.com/smartfeed/smartfeed/internal/testkit/must"
	"github.com/smartfeed/smartfeed/internal/testkit/topicstest"
	"github.com/smartfeed/smartfeed/topics"
)

// traffic counts the bytes read from each address.
type traffic struct {
	mu   sync.Mutex
	read map[string]int
}

func (c *traffic) dial(ctx context.Context, network, address string) (net.Conn, error) {
	conn, err := new(net.Dialer).DialContext(ctx, network, address)
	return counted{conn, c, address}, err
}

func (c *traffic) from(address string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.read[address]
}

type counted struct {
	net.Conn
	by *traffic
	at string
}

func (c counted) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.by.mu.Lock()
	defer c.by.mu.Unlock()
	if c.by.read == nil {
		c.by.read = map[string]int{}
	}
	c.by.read[c.at] += n
	return n, err
}

// Of three brokers, each in its own rack, the reader reads from the one in its rack and not from the leader.
func TestRealKafkaRack(t *testing.T) {
	brokers := strings.Split(os.Getenv(topicstest.RealKafka), ",")
	if len(brokers) < 3 {
		t.Skipf("set %s to the addresses of three Kafka brokers in racks rack-1, rack-2, rack-3", topicstest.RealKafka)
	}
	k := topics.Kafka{Brokers: brokers, Partitions: 1}
	topic := fmt.Sprintf("rack-%d", time.Now().UnixNano())
	must.Get(topics.Apply(t.Context(), k, []topics.Topic{{Name: topic, Partitions: 1, Replicas: 3, InSync: 3}}))(t)
	client := must.Get(k.Client(kgo.ProducerBatchCompression(kgo.NoCompression())))(t)
	defer client.Close()
	const size, n = 100_000, 40
	for range n { // on all three brokers when acknowledged
		must.OK(t, client.ProduceSync(t.Context(), &kgo.Record{Topic: topic, Value: make([]byte, size)}).FirstErr())
	}
	leader := must.Get(leaderOf(t, k, topic))(t)
	near := leader%3 + 1 // not the leader
	for name, read := range map[string]func(ctx context.Context, k topics.Kafka) error{
		"franz-go": func(ctx context.Context, k topics.Kafka) error {
			ctx, cancel := context.WithCancel(ctx)
			defer cancel()
			got := 0
			return topics.Consume(ctx, topics.ConsumerConfig{Kafka: k, Group: topic, Topics: []string{topic}}, func(_ context.Context, records []*kgo.Record) error {
				if got += len(records); got == n {
					cancel()
				}
				return nil
			})
		},
		"sarama": func(ctx context.Context, k topics.Kafka) error { return readWithSarama(ctx, k, topic, n) },
	} {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		seen := new(traffic)
		reader := topics.Kafka{Brokers: brokers, Rack: fmt.Sprintf("rack-%d", near), Dial: seen.dial}
		if err := read(ctx, reader); err != nil || ctx.Err() != nil {
			t.Fatalf("%s: %v, %v", name, err, ctx.Err())
		}
		t.Logf("%s: %d bytes from the leader, %d from the broker in the reader's rack", name, seen.from(brokers[leader-1]), seen.from(brokers[near-1]))
		expect.AtLeast(t, seen.from(brokers[near-1]), size*n/2, "%s: bytes from the broker in the reader's rack", name)
	}
}

// leaderOf returns the number of the broker that leads a topic's only partition.
func leaderOf(t *testing.T, k topics.Kafka, topic string) (int, error) {
	t.Helper()
	admin, err := k.Admin()
	if err != nil {
		return 0, err
	}
	defer admin.Close()
	all, err := admin.ListTopics(t.Context(), topic)
	return int(all[topic].Partitions[0].Leader), err
}
