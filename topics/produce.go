package topics

import (
	"cmp"
	"context"

	"github.com/twmb/franz-go/pkg/kgo"
)

// Produce produces records and waits until each is acknowledged or has failed. It returns nil or the first error. If ctx is
// canceled before, it returns its cause.
//
// Use it instead of kgo's ProduceSync, which ignores its context for a record that was sent and not acknowledged. An
// idempotent client (franz-go 1.22) does not abort such a record when its context is canceled or DeliveryTimeout has
// passed: the brokers may have it. The attempts end only when the brokers answer or the client is closed. After an error,
// the client may therefore still try to deliver the records, so the caller must not use them again.
func Produce(ctx context.Context, client *kgo.Client, records ...*kgo.Record) error {
	return produce(ctx, client, records, func(kgo.ProduceResult) {})
}

// produce is Produce with a function that it calls for every result before it returns.
func produce(ctx context.Context, client *kgo.Client, records []*kgo.Record, each func(kgo.ProduceResult)) (first error) {
	results := make(chan kgo.ProduceResult, len(records)) // capacity for all results: the client never blocks after the caller has returned
	for _, r := range records {
		client.Produce(ctx, r, func(r *kgo.Record, err error) { results <- kgo.ProduceResult{Record: r, Err: err} })
	}
	for range records {
		select {
		case result := <-results:
			each(result)
			first = cmp.Or(first, result.Err)
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return first
}
