package app

import (
	"context"
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/smartfeed/smartfeed/internal/testkit/expect"
	"github.com/smartfeed/smartfeed/internal/testkit/faultnet"
	"github.com/smartfeed/smartfeed/internal/testkit/must"
	"github.com/smartfeed/smartfeed/topics"
	"github.com/smartfeed/smartfeed/topics/embedded"
)

// serveReads are the topics that a serve reads with Pinot and Cassandra. The first three grow only with deleted users, decisions
// of people, and generations. The processes share the partitions of the last one.
var serveReads = []string{topics.UsersDeleted, topics.InterestDecisions, topics.Generations, topics.FeatureLog}

// With Pinot and Cassandra, a serve reads none of the other topics, at its start and later. So the start takes as long for a product
// of any size, and two of them do not consume anything twice. (Here the feed store is an embedded one that is not filled.)
func TestServe_ReadsNoTopicsOfProduct(t *testing.T) {
	t.Parallel()
	broker := startBroker(t)
	records := fillTopics(t, broker)
	var fetched [2]atomic.Int64
	for i := range fetched {
		cfg := roleConfig(t, broker)
		cfg.Pinot.Brokers, cfg.Pinot.Controller = []string{deaf}, deaf
		startPieces(t, cfg, fetching(withoutSinks(), &fetched[i]))
	}
	readEverything(t, broker, records)
	for i := range fetched {
		expect.AtMost(t, fetched[i].Load(), filledRecord-1, "bytes that serve %d fetched from Kafka: less than one of the records", i)
	}
}

// filledRecord is the length of the records of fillTopics in bytes.
const filledRecord = 100 << 10

// fillTopics produces four long records to each topic that is not one of serveReads. It returns their number by topic.
func fillTopics(t *testing.T, broker *embedded.Server) map[string]int {
	t.Helper()
	client := must.Get(broker.Kafka(topics.EmbeddedPartitions).Client())(t)
	defer client.Close()
	value := make([]byte, filledRecord)
	for i := range value {
		value[i] = byte(rand.Uint32())
	}
	all := map[string]int{}
	for _, topic := range topics.Catalogue(topics.Profile{Embedded: true}) {
		if slices.Contains(serveReads, topic.Name) {
			continue
		}
		for _, key := range []string{"a", "b", "c", "d"} {
			must.OK(t, client.ProduceSync(t.Context(), &kgo.Record{Topic: topic.Name, Key: []byte(key), Value: value}).FirstErr())
			all[topic.Name]++
		}
	}
	return all
}

// readEverything returns when another reader has read all records.
func readEverything(t *testing.T, broker *embedded.Server, records map[string]int) {
	t.Helper()
	var names []string
	left := 0
	for name, n := range records {
		names, left = append(names, name), left+n
	}
	client := must.Get(broker.Kafka(topics.EmbeddedPartitions).Client(kgo.ConsumeTopics(names...)))(t)
	defer client.Close()
	for left > 0 {
		polled := client.PollFetches(t.Context())
		must.OK(t, polled.Err())
		left -= polled.NumRecords()
	}
}

// fetching adds a part that counts the bytes of the records that the process fetches.
func fetching(parts []opener, bytes *atomic.Int64) []opener {
	net := faultnet.New()
	net.Alter(kmsg.Fetch, 1, func(r kmsg.Response) {
		for _, topic := range r.(*kmsg.FetchResponse).Topics {
			for _, p := range topic.Partitions {
				bytes.Add(int64(len(p.RecordBatches)))
			}
		}
	})
	const afterKafka = 2
	return slices.Insert(parts, afterKafka, func(p *App, _ context.Context) error { p.kafka.Dial = net.Dial; return nil })
}
