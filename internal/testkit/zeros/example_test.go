package zeros_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/smartfeed/smartfeed/internal/testkit/zeros"
	"github.com/smartfeed/smartfeed/topics"
)

// Callers can distinguish a batch that is too large from other errors.
func ExampleProduce() {
	if err := produce(context.Background()); err != nil {
		fmt.Println(err)
	}
	// Output:
	// too large: true, up to offset 1
}

func produce(ctx context.Context) error {
	cluster, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(1, "t"))
	if err != nil {
		return err
	}
	defer cluster.Close()
	kafka := topics.Kafka{Brokers: cluster.ListenAddrs()}
	client, err := kafka.Client()
	if err != nil {
		return err
	}
	defer client.Close()
	offset, err := zeros.Produce(ctx, client, "t", 0, topics.MaxDecompressedBytes+1)
	if err != nil {
		return err
	}
	log, err := topics.NewLog(kafka)
	if err != nil {
		return err
	}
	defer log.Close()
	_, _, err = log.Read(ctx, "t", 0, offset)
	large := new(kgo.ErrDecompressTooLarge)
	fmt.Printf("too large: %v, up to offset %d\n", errors.As(err, &large), large.NextOffset)
	return nil
}
