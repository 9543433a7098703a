package topics

import (
	"context"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// EndTransaction calls client.EndTransaction for a transaction whose records have been acknowledged. topics are the topics
// of its records. Topics of an earlier transaction that the client has ended may be omitted.
//
// It first waits until the client has stored the metadata of each topic, to work around a race in franz-go (1.22). When
// franz-go learns of a new topic, it releases the records that waited for the topic before it stores the metadata. Until it
// has stored the metadata, its EndTransaction ignores the topic. If the transaction has records only of such topics, it is
// aborted instead of committed, and the error is nil. On a busy machine, this lost one in a hundred first transactions. A
// transaction that also has other topics is committed, but the sequence numbers of the new topic are not reset with the
// next epoch. The brokers then reject all later records of that topic as out of order.
func EndTransaction(ctx context.Context, client *kgo.Client, end kgo.TransactionEndTry, topics ...string) error {
	for _, topic := range topics {
		for !hasMetadata(client, topic) {
			select {
			case <-time.After(100 * time.Microsecond):
			case <-ctx.Done():
				return fmt.Errorf("wait for the client's metadata of %s: %w", topic, context.Cause(ctx))
			}
		}
	}
	return client.EndTransaction(ctx, end)
}

// hasMetadata reports whether a client has stored the metadata of a topic, which it does for all partitions at once. An error
// means that the topic is known but its first partition has no leader.
func hasMetadata(client *kgo.Client, topic string) bool {
	leader, _, err := client.PartitionLeader(topic, 0)
	return leader >= 0 || err != nil
}
