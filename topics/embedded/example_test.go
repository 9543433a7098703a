package embedded_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"

	"github.com/smartfeed/smartfeed/topics"
	"github.com/smartfeed/smartfeed/topics/embedded"
)

// Run a broker and a registry with the catalogue's topics in this process, for a test or a trial.
func ExampleStart() {
	if err := withBroker(context.Background()); err != nil {
		fmt.Println(err)
	}
	// Output: true
}

func withBroker(ctx context.Context) (err error) {
	dir, err := os.MkdirTemp("", "example-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	cfg := embedded.DefaultConfig()
	cfg.Dir, cfg.Kafka, cfg.Registry = dir, "127.0.0.1:0", "127.0.0.1:0"
	server, err := embedded.Start(ctx, cfg, slog.New(slog.DiscardHandler))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, server.Close()) }()

	kafka := server.Kafka(topics.EmbeddedPartitions)
	made, err := topics.Apply(ctx, kafka, topics.Catalogue(topics.Profile{Embedded: true}))
	if err != nil {
		return err
	}
	fmt.Println(len(made.Create) == len(topics.Catalogue(topics.Profile{})))
	return nil
}
