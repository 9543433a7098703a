package topics

import (
	"context"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/smartfeed/smartfeed/internal/pause"
)

// EndTransaction is client.EndTransaction of a transaction whose records have been acknowledged. topics are those that it has
// records of; those that the client has ended a transaction with before may be left out.
//
// It waits until the client knows of every one of them. When franz-go (1.22) learns of a topic for the first time, it lets go of
// the records that have waited for that before it stores what it has learned. What it has not stored, EndTransaction passes
// over. A transaction that has records of such topics alone is aborted where it was to be committed, and the error is nil: on a
// busy machine that came of one in a hundred first transactions, acknowledged, committed, and gone. Beside a topic that is known
// the transaction is committed, but its sequence numbers of the other are not begun anew with the next epoch, and the brokers
// refuse what comes next of it as out of order, for good.
func EndTransaction(ctx context.Context, client *kgo.Client, end kgo.TransactionEndTry, topics ...string) error {
	for _, topic := range topics {
		for !knows(client, topic) {
			if !pause.For(ctx, 100*time.Microsecond) {
				return fmt.Errorf("wait until the client knows of %s: %w", topic, context.Cause(ctx))
			}
		}
	}
	return client.EndTransaction(ctx, end)
}

// knows says whether a client has stored what it has learned of a topic, which it does of all partitions at once. One whose
// first has no leader is known: an error.
func knows(client *kgo.Client, topic string) bool {
	leader, _, err := client.PartitionLeader(topic, 0)
	return leader >= 0 || err != nil
}
