package topics

import (
	"context"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/smartfeed/smartfeed/internal/pause"
)

// EndTransaction is client.EndTransaction of a transaction in which a record of this partition has been acknowledged.
//
// It waits until the client knows of the partition. When franz-go (1.22) learns of a topic for the first time, it lets go of
// the records that have waited for that before it stores what it has learned. A transaction that ends between the two, and
// has records of such topics alone, has no partition as far as EndTransaction can see: asked to commit, it aborts, and
// returns nil. On a busy machine that came of one in a hundred first transactions: acknowledged, committed, and gone.
func EndTransaction(ctx context.Context, client *kgo.Client, end kgo.TransactionEndTry, topic string, partition int32) error {
	for !knows(client, topic, partition) {
		if !pause.For(ctx, 100*time.Microsecond) {
			return fmt.Errorf("wait until the client knows of %s/%d: %w", topic, partition, context.Cause(ctx))
		}
	}
	return client.EndTransaction(ctx, end)
}

// knows says whether a client has stored what it has learned of a partition. One that is known may have no leader: an error.
func knows(client *kgo.Client, topic string, partition int32) bool {
	leader, _, err := client.PartitionLeader(topic, partition)
	return leader >= 0 || err != nil
}
