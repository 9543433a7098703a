package topics

import (
	"cmp"
	"context"

	"github.com/twmb/franz-go/pkg/kgo"
)

// Produce produces records and returns once each is acknowledged or has failed: nil, or the first error; or once ctx has
// ended, with its cause.
//
// It stands for kgo's ProduceSync, which does not heed its context for a record that was sent and not answered: an idempotent
// client (1.22) gives that up neither when its context ends nor after DeliveryTimeout, because the brokers may have it, but
// only when they answer or the client is closed. So after an error records may still be the client's, which goes on trying to
// deliver them: they must not be used again.
func Produce(ctx context.Context, client *kgo.Client, records ...*kgo.Record) error {
	return produce(ctx, client, records, func(kgo.ProduceResult) {})
}

// produce is Produce, and shows every result that comes before it returns.
func produce(ctx context.Context, client *kgo.Client, records []*kgo.Record, show func(kgo.ProduceResult)) (first error) {
	results := make(chan kgo.ProduceResult, len(records)) // room for all: the client never waits for who has given up
	for _, r := range records {
		client.Produce(ctx, r, func(r *kgo.Record, err error) { results <- kgo.ProduceResult{Record: r, Err: err} })
	}
	for range records {
		select {
		case result := <-results:
			show(result)
			first = cmp.Or(first, result.Err)
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return first
}
