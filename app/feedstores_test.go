package app

import (
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/smartfeed/smartfeed/internal/status"
	"github.com/smartfeed/smartfeed/processors"
	"github.com/smartfeed/smartfeed/topics"
)

func TestFeedStoreConfig(t *testing.T) {
	at := func(primary, standby []string) FeedStoreConfig {
		c := defaultFeedStoreConfig()
		c.Cassandra.Primary.Hosts, c.Cassandra.Standby.Hosts = primary, standby
		return c
	}
	hosts := []string{"127.0.0.1:9042"}
	for _, c := range []struct {
		name   string
		cfg    FeedStoreConfig
		remote bool
		others []string
		fail   string
	}{
		{"embedded", at(nil, nil), false, nil, ""},
		{"one cluster", at(hosts, nil), true, nil, ""},
		{"two clusters", at(hosts, hosts), true, []string{"standby"}, ""},
		{"a standby alone", at(nil, hosts), false, []string{"standby"}, "cassandra.standby.hosts: a standby without a primary"},
		{"a bad host", at([]string{"a b"}, nil), true, nil, `cassandra.primary.hosts: "a b"`},
	} {
		err := c.cfg.Validate()
		if (err == nil) != (c.fail == "") || err != nil && !strings.HasPrefix(err.Error(), c.fail) {
			t.Errorf("%s: Validate: got %v, want %q", c.name, err, c.fail)
		}
		if c.cfg.remote() != c.remote || !slices.Equal(c.cfg.others(), c.others) {
			t.Errorf("%s: remote %v and others %v, want %v and %v", c.name, c.cfg.remote(), c.cfg.others(), c.remote, c.others)
		}
	}
}

// A sink fills each of two clusters. A process that only answers has no sink.
func TestPartsOfFeedStores(t *testing.T) {
	hosts := []string{"127.0.0.1:1"} // no server listens there
	for _, c := range []struct {
		name    string
		standby []string
		want    []string
	}{
		{"one", nil, []string{"feed-store-primary"}},
		{"two", hosts, []string{"feed-store-primary", "feed-store-standby"}},
	} {
		cfg := DefaultConfig()
		cfg.Dir = t.TempDir()
		cfg.FeedStore.Cassandra.Primary.Hosts, cfg.FeedStore.Cassandra.Standby.Hosts = hosts, c.standby
		p, err := openProduct(t.Context(), cfg, slog.New(slog.DiscardHandler), []opener{(*App).openFeedStore, (*App).openOwnSinks})
		if err != nil {
			t.Fatal(err)
		}
		var parts []string
		for _, part := range p.parts {
			parts = append(parts, part.Name)
		}
		if diff := cmp.Diff(c.want, parts); diff != "" || len(p.sinks) != len(c.want) {
			t.Errorf("%s: %d sinks and parts (-want +got):\n%s", c.name, len(p.sinks), diff)
		}
		away, stores := false, []status.Store{}
		for i, store := range p.stores {
			stores = append(stores, status.Store{Name: []string{"primary", "standby"}[i], Kind: "cassandra", Connected: &away})
			if diff := cmp.Diff(stores[i], store()); diff != "" {
				t.Errorf("%s: store %d (-want +got):\n%s", c.name, i, diff)
			}
		}
		if len(stores) != len(c.want) {
			t.Errorf("%s: %d stores in the status, want %d", c.name, len(stores), len(c.want))
		}
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	}
}

// Each feed store has its own consumer group. These are the groups that wait and all others check. No setting gives a
// sink another group.
func TestSinksAreTheReadersThatAreWaitedFor(t *testing.T) {
	hosts := []string{"127.0.0.1:1"} // no server listens there
	for _, c := range []struct {
		name             string
		primary, standby []string
		want             []string
	}{
		{"embedded", nil, nil, []string{"materialize"}},
		{"one cluster", hosts, nil, []string{"materialize"}},
		{"two clusters", hosts, hosts, []string{"materialize", "materialize-standby"}},
	} {
		cfg := testConfig(t.TempDir())
		cfg.FeedStore.Cassandra.Primary.Hosts, cfg.FeedStore.Cassandra.Standby.Hosts = c.primary, c.standby
		p, err := openProduct(t.Context(), cfg, slog.New(slog.DiscardHandler),
			[]opener{(*App).openBroker, (*App).openStreams, (*App).openFeedStore, (*App).openSinks})
		if err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		var parts, waited []string
		for _, part := range p.parts {
			if strings.HasPrefix(part.Name, topics.Materialize) {
				parts = append(parts, part.Name)
			}
		}
		for _, r := range (topics.Setup{Kafka: p.kafka, FeedStores: cfg.FeedStore.others()}).Readers() {
			if slices.Contains(r.Topics, topics.FeedEntries) {
				waited = append(waited, r.Group)
			}
		}
		if !slices.Equal(parts, c.want) || !slices.Equal(waited, c.want) {
			t.Errorf("%s: %q fill stores and %q are waited for, want %q", c.name, parts, waited, c.want)
		}
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	}
	file := filepath.Join(t.TempDir(), "smartfeed.yaml")
	if err := os.WriteFile(file, []byte("materialize: {store: green}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := runCommand(t.Context(), "config", "check", "--config", file); err == nil || !strings.Contains(err.Error(), "store") {
		t.Errorf("a setting gives a sink another group, which nobody waits for: %q %v", out, err)
	}
}

// A process that serves from two clusters compares them. Its readiness does not depend on that.
func TestOpenFeed_ComparesTwoStores(t *testing.T) {
	hosts := []string{"127.0.0.1:1"} // no server listens there
	for name, standby := range map[string][]string{"one": nil, "two": hosts} {
		cfg := testConfig(t.TempDir())
		cfg.FeedStore.Cassandra.Primary.Hosts, cfg.FeedStore.Cassandra.Standby.Hosts = hosts, standby
		p, err := openProduct(t.Context(), cfg, slog.New(slog.DiscardHandler),
			[]opener{(*App).openBroker, (*App).openStreams, (*App).openFeedStore, (*App).openFeed})
		if err != nil {
			t.Fatal(err)
		}
		isPart := slices.ContainsFunc(p.parts, func(part processors.Part) bool { return part.Name == storeLagPart })
		if want := standby != nil; isPart != want || slices.Contains(p.spare, storeLagPart) != want {
			t.Errorf("%s: compares %v, spare parts %v, want %v", name, isPart, p.spare, want)
		}
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	}
}
