// Command cdc publishes the changes of an application's tables as events. It consumes the topics of Debezium's connector for
// PostgreSQL:
//
//	go run ./examples/cdc -kafka 127.0.0.1:9092 -registry 127.0.0.1:8081
//
// schema.sql has the tables, connector.json configures the connector, and rows.go maps rows to events. docs/how-to/cdc.md shows
// it in use.
//
// It commits offsets after the brokers have acknowledged the events, so it loses no change. A change that is read again has
// the same event id and time, and has no second effect. A row that has no valid event becomes a dead letter.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/smartfeed/smartfeed/schemas"
	"github.com/smartfeed/smartfeed/topics"
)

// bridge publishes the events of changes.
type bridge struct {
	kafka     topics.Kafka
	registry  string // addresses, separated by commas
	group     string // consumer group
	prefix    string // of Debezium's topics: topic.prefix and the schema
	publisher *topics.Publisher
}

func main() {
	brokers := flag.String("kafka", "127.0.0.1:9092", "addresses of the brokers")
	registry := flag.String("registry", "127.0.0.1:8081", "addresses of the schema registry")
	group := flag.String("group", "smartfeed-cdc", "consumer group")
	prefix := flag.String("prefix", "shop.public", "prefix of the topics with changes")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	kafka := topics.Kafka{Brokers: strings.Split(*brokers, ","), ClientID: *group}
	err := (&bridge{kafka: kafka, registry: *registry, group: *group, prefix: *prefix}).run(ctx)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "cdc:", err)
		os.Exit(1)
	}
}

// run publishes changes until ctx is canceled, or until a broker or the registry is unavailable.
func (b *bridge) run(ctx context.Context) error {
	streams, err := topics.Setup{Kafka: b.kafka, Registry: b.registry}.Streams(ctx)
	if err != nil {
		return err
	}
	if b.publisher, err = topics.NewPublisher(b.kafka, streams); err != nil {
		return err
	}
	defer b.publisher.Close()
	b.publisher.Operator = b.group
	consumer := topics.ConsumerConfig{Kafka: b.kafka, Group: b.group}
	for table := range tables {
		consumer.Topics = append(consumer.Topics, b.prefix+"."+table)
	}
	if err := create(ctx, b.kafka, consumer.Topics); err != nil {
		return err
	}
	return topics.Consume(ctx, consumer, b.publish)
}

// create creates missing topics with the defaults of the brokers, so that the bridge can start before Connect.
func create(ctx context.Context, kafka topics.Kafka, names []string) error {
	admin, err := kafka.Admin()
	if err != nil {
		return err
	}
	defer admin.Close()
	created, err := admin.CreateTopics(ctx, -1, -1, nil, names...)
	for _, topic := range created {
		if !errors.Is(topic.Err, kerr.TopicAlreadyExists) {
			err = errors.Join(err, topic.Err)
		}
	}
	return err
}

// publish returns when all events of the records, and dead letters for the other records, are acknowledged.
func (b *bridge) publish(ctx context.Context, records []*kgo.Record) error {
	var lines []schemas.Line
	for _, r := range records {
		events, err := eventsOf(r, schemas.MicrosOf(time.Now()))
		if err != nil {
			fmt.Fprintf(os.Stderr, "cdc: dead letter of %s/%d/%d: %v\n", r.Topic, r.Partition, r.Offset, err)
			if err := b.publisher.SendDeadLetter(ctx, b.group, r, err.Error()); err != nil {
				return err
			}
			continue
		}
		lines = append(lines, events...)
	}
	return b.publisher.Publish(ctx, lines)
}
