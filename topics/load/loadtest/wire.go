// Package loadtest gives tests of commands that publish events somewhere to publish them.
package loadtest

import (
	"log/slog"
	"testing"

	"github.com/smartfeed/smartfeed/topics"
	"github.com/smartfeed/smartfeed/topics/embedded"
)

// Wire starts an embedded broker and registry with every topic of the catalogue, closed with the test.
func Wire(t *testing.T) topics.Setup {
	t.Helper()
	cfg := embedded.DefaultConfig()
	cfg.Dir, cfg.Kafka, cfg.Registry = t.TempDir(), "127.0.0.1:0", "127.0.0.1:0"
	log := slog.New(slog.NewTextHandler(t.Output(), nil))
	server, err := embedded.Start(t.Context(), cfg, log)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := server.Close(); err != nil {
			t.Error(err)
		}
	})
	s := topics.Setup{Kafka: server.Kafka(0), Registry: server.RegistryURL(), Log: log}
	if _, err := topics.Apply(t.Context(), s.Kafka, topics.Catalogue(topics.Profile{Embedded: true})); err != nil {
		t.Fatal(err)
	}
	return s
}
