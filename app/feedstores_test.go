package app

import (
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/smartfeed/smartfeed/internal/status"
	"github.com/smartfeed/smartfeed/internal/testkit/expect"
	"github.com/smartfeed/smartfeed/internal/testkit/must"
	"github.com/smartfeed/smartfeed/topics"
)

func TestFeedStoreConfig_ValidatesClusters(t *testing.T) {
	at := func(primary, standby []string) FeedStoreConfig {
		c := DefaultConfig().FeedStore
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
		{"only a standby", at(nil, hosts), false, []string{"standby"}, "cassandra.standby.hosts: a standby without a primary"},
		{"a bad host", at([]string{"a b"}, nil), true, nil, `cassandra.primary.hosts: "a b"`},
	} {
		err := c.cfg.Validate()
		if (err == nil) != (c.fail == "") || err != nil && !strings.HasPrefix(err.Error(), c.fail) {
			t.Errorf("%s: Validate: got %v, want %q", c.name, err, c.fail)
		}
		expect.Equal(t, c.cfg.remote(), c.remote, "%s: remote", c.name)
		expect.NoDiff(t, c.cfg.others(), c.others, "%s: others", c.name)
	}
}

// A sink with its own consumer group fills each store, and commands wait for these groups. A process that serves from two
// clusters compares them, and its readiness does not depend on the comparison.
func TestOpenFeedStore_FillsEachStoreWithItsOwnGroup(t *testing.T) {
	hosts := []string{deaf}
	unconnected := false
	cluster := func(name string) status.Store {
		return status.Store{Name: name, Kind: "cassandra", Connected: &unconnected}
	}
	for name, c := range map[string]struct {
		primary, standby []string
		groups           []string
		stores           []status.Store
		components       []string // that connect to stores or compare them
	}{
		"embedded": {nil, nil, []string{"materialize"}, []status.Store{{Name: "primary", Kind: "embedded"}}, nil},
		"one cluster": {
			hosts, nil, []string{"materialize"}, []status.Store{cluster("primary")}, []string{"feed-store-primary"},
		},
		"two clusters": {
			hosts, hosts, []string{"materialize", "materialize-standby"}, []status.Store{cluster("primary"), cluster("standby")},
			[]string{"feed-store-primary", "feed-store-standby", storeLagComponent},
		},
	} {
		cfg := testConfig(t.TempDir())
		cfg.FeedStore.Cassandra.Primary.Hosts, cfg.FeedStore.Cassandra.Standby.Hosts = c.primary, c.standby
		p, err := openApp(t.Context(), cfg, slog.New(slog.DiscardHandler),
			[]opener{(*App).openBroker, (*App).openStreams, (*App).openFeedStore, (*App).openSinks, (*App).openFeed})
		must.OK(t, err)
		var groups, components, waited []string
		for _, component := range p.components {
			switch {
			case strings.HasPrefix(component.Name, topics.Materialize):
				groups = append(groups, component.Name)
			case strings.HasPrefix(component.Name, "feed-store-"):
				components = append(components, component.Name)
			}
		}
		for _, r := range (topics.Setup{Kafka: p.kafka, FeedStores: cfg.FeedStore.others()}).Readers() {
			if slices.Contains(r.Topics, topics.FeedEntries) {
				waited = append(waited, r.Group)
			}
		}
		if !slices.Equal(groups, c.groups) || !slices.Equal(waited, c.groups) || !slices.Equal(components, c.components) {
			t.Errorf("%s: %q fill stores, commands wait for %q, components are %q; want %q twice and %q", name, groups, waited, components, c.groups, c.components)
		}
		expect.Equal(t, slices.Contains(p.optional, storeLagComponent), len(c.components) == 3, "%s: the lag is among %v", name, p.optional)
		var stores []status.Store
		for _, store := range p.stores {
			stores = append(stores, store())
		}
		expect.NoDiff(t, stores, c.stores, "%s: stores", name)
		must.OK(t, p.Close())
	}
}

// The role serve fills no cluster. No setting can change the group of a sink, because commands would not wait for it.
func TestOpenOwnSinks_FillsNoCluster(t *testing.T) {
	cfg := DefaultConfig()
	cfg.Dir = t.TempDir()
	cfg.FeedStore.Cassandra.Primary.Hosts = []string{deaf}
	p := must.Get(openApp(t.Context(), cfg, slog.New(slog.DiscardHandler), []opener{(*App).openFeedStore, (*App).openOwnSinks}))(t)
	if len(p.components) != 2 || p.components[0].Name != "feed-store-primary" || p.components[1].Name != "configuration" {
		t.Errorf("components %+v, want only the connection to the cluster, and the reload that every process has", p.components)
	}
	must.OK(t, p.Close())
	file := filepath.Join(t.TempDir(), "smartfeed.yaml")
	must.OK(t, os.WriteFile(file, []byte("materialize: {store: green}\n"), 0o600))
	expect.Error(t, expect.ErrorOf(runCommand(t.Context(), "config", "check", "--config", file)), "store", "another group for a sink")
}
