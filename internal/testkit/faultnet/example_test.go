package faultnet_test

import (
	"context"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/smartfeed/smartfeed/internal/testkit/faultnet"
	"github.com/smartfeed/smartfeed/topics"
)

// The response to the first record is lost. The producer sends the record again, and the log contains it once.
func ExampleNet_Cut() {
	if err := lost(context.Background()); err != nil {
		fmt.Println(err)
	}
	// Output:
	// answers lost: true
	// records in the log: 1
}

func lost(ctx context.Context) error {
	cluster, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(1, "t"))
	if err != nil {
		return err
	}
	defer cluster.Close()
	n := faultnet.New()
	kafka := topics.Kafka{Brokers: cluster.ListenAddrs(), Dial: n.Dial}
	client, err := kafka.Client()
	if err != nil {
		return err
	}
	defer client.Close()
	admin, err := kafka.Admin()
	if err != nil {
		return err
	}
	defer admin.Close()

	n.Cut(kmsg.Produce, 1)
	sent := make(chan error, 1)
	client.Produce(ctx, &kgo.Record{Topic: "t", Value: []byte("hello")}, func(_ *kgo.Record, err error) { sent <- err })
	for n.Hits(kmsg.Produce) == 0 {
		time.Sleep(time.Millisecond)
	}
	n.Cut(kmsg.Produce, 0)
	if err := <-sent; err != nil {
		return err
	}
	ends, err := admin.ListEndOffsets(ctx, "t")
	if err != nil {
		return err
	}
	end, _ := ends.Lookup("t", 0)
	fmt.Println("answers lost:", n.Hits(kmsg.Produce) > 0)
	fmt.Println("records in the log:", end.Offset)
	return nil
}
