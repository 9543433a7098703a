package app

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/smartfeed/smartfeed/internal/testkit/eventually"
	"github.com/smartfeed/smartfeed/internal/testkit/expect"
	"github.com/smartfeed/smartfeed/internal/testkit/faultnet"
	"github.com/smartfeed/smartfeed/internal/testkit/must"
	"github.com/smartfeed/smartfeed/internal/testkit/topicstest"
	"github.com/smartfeed/smartfeed/serving/auth"
	"github.com/smartfeed/smartfeed/topics"
)

var errBroken = errors.New("broken by the test")

// breakable is a component that a test can make fail and repair.
type breakable struct {
	run func(context.Context) error

	mu     sync.Mutex
	broken bool
	end    context.CancelFunc // of the running Run
}

func (b *breakable) Run(ctx context.Context) error {
	ctx, end := context.WithCancel(ctx)
	defer end()
	if b.begin(end) {
		return errBroken
	}
	err := b.run(ctx)
	if b.begin(nil) {
		return errBroken
	}
	return err
}

// begin stores the cancel function of a Run, and reports whether the component is broken.
func (b *breakable) begin(end context.CancelFunc) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.end = end
	return b.broken
}

func (b *breakable) set(broken bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.broken = broken
	if broken && b.end != nil {
		b.end()
	}
}

// faulty is a process whose components, brokers and registry a test can make unavailable.
type faulty struct {
	*started
	components map[string]*breakable
	net        *faultnet.Net
	registry   *httptest.Server
}

// dialTimeout is the clients' default timeout for a host that does not respond.
const dialTimeout = 5 * time.Second

// dialled makes later Kafka clients use a fault-injecting network.
func dialled(n *faultnet.Net) opener {
	return func(p *App, _ context.Context) error {
		p.kafka.Dial = func(ctx context.Context, network, address string) (net.Conn, error) {
			ctx, cancel := context.WithTimeout(ctx, dialTimeout)
			defer cancel()
			return n.Dial(ctx, network, address)
		}
		return nil
	}
}

// startFaulty starts pieces. The first two open the brokers; if they are embedded, the first one does.
func startFaulty(t *testing.T, pieces []opener, change func(*Config)) *faulty {
	t.Helper()
	broker := startBroker(t)
	at := must.Get(url.Parse(broker.RegistryURL()))(t)
	f := &faulty{components: map[string]*breakable{}, net: faultnet.New(), registry: httptest.NewServer(httputil.NewSingleHostReverseProxy(at))}
	t.Cleanup(f.registry.Close)
	cfg := roleConfig(t, broker)
	cfg.Registry = f.registry.URL
	change(&cfg)
	pieces = slices.Insert(pieces, 2, dialled(f.net))
	f.started = launch(t, cfg, slog.New(slog.DiscardHandler), append(pieces, f.wrap))
	return f
}

// wrap makes every component breakable.
func (f *faulty) wrap(p *App, _ context.Context) error {
	for i := range p.components {
		b := &breakable{run: p.components[i].Run}
		f.components[p.components[i].Name] = b
		p.components[i].Run = b.Run
	}
	return nil
}

// readyz returns the status code and the reasons of /readyz.
func (f *faulty) readyz() (int, []string) {
	f.t.Helper()
	code, text := f.api().send("/readyz", "")
	var answer struct {
		Ready   bool
		Missing []string
	}
	must.OK(f.t, json.Unmarshal([]byte(text), &answer))
	if answer.Ready != (code == 200) || answer.Ready != (len(answer.Missing) == 0) || answer.Missing == nil {
		f.t.Errorf("/readyz: ready %t and %q contradict status %d", answer.Ready, answer.Missing, code)
	}
	return code, answer.Missing
}

// awaitReadiness waits until /readyz responds with a status and a reason ("": any).
func (f *faulty) awaitReadiness(status int, reason string) {
	f.t.Helper()
	var got []string
	var code int
	defer func() {
		if f.t.Failed() {
			f.t.Logf("/readyz: %d with %q", code, got)
		}
	}()
	eventually.True(f.t, fmt.Sprintf("/readyz responds %d with %q", status, reason), func() bool {
		code, got = f.readyz()
		return code == status && (reason == "" || slices.Contains(got, reason))
	})
}

// /readyz reports a required component while it is unavailable, but not after it has recovered.
func TestReadyz_NamesUnavailableParts(t *testing.T) {
	unreachable := []string{"127.0.0.1:1"}
	for role, c := range map[string]struct {
		pieces     []opener
		change     func(*Config)
		components []string
		missing    string // a reason that remains; "": none
	}{
		"process": {
			pieces: processing(topics.RowGroups()), change: func(*Config) {},
			components: append(topics.RowGroups(), topics.UsersDeleted, topics.InterestDecisions, topics.RecentsPulled, topics.HotPins, topics.PopularPins, topics.Generations),
		},
		"serve with Pinot": {
			pieces: serving(), change: func(c *Config) { c.Pinot.Brokers, c.Pinot.Controller = unreachable, unreachable[0] }, // features are missing, but the process is ready
			components: []string{topics.UsersDeleted, topics.InterestDecisions, topics.Generations, topics.FeatureFiles, "feature-definitions", "feature-lateness", "materialize"},
		},
		"serve without a feed store": {
			pieces: serving(), change: func(c *Config) { c.FeedStore.Cassandra.Primary.Hosts = unreachable },
			components: []string{"feed-store-primary", topics.Features}, missing: "no feed store is reachable",
		},
		"serve without the key set": {
			pieces: serving(), change: func(c *Config) { c.Auth.JWKS, c.Auth.Audience = "http://"+unreachable[0]+"/keys", "smartfeed" },
			components: []string{"auth"}, missing: auth.ErrNoKeys.Error(),
		},
		"materialize": {
			pieces: materializing(), change: func(c *Config) { c.FeedStore.Cassandra.Primary.Hosts = unreachable },
			components: []string{topics.UsersDeleted, topics.InterestDecisions, "feed-store-primary", "materialize"}, missing: "no feed store is reachable",
		},
	} {
		t.Run(role, func(t *testing.T) {
			t.Parallel()
			f := startFaulty(t, c.pieces, c.change)
			calm := func() {
				t.Helper()
				if c.missing != "" {
					f.awaitReadiness(503, c.missing)
					return
				}
				f.awaitReadiness(200, "")
			}
			calm()
			f.registry.Close() // the process has read the schemas at its start
			for _, component := range c.components {
				f.components[component].set(true)
				f.awaitReadiness(503, component+" is waiting")
				f.components[component].set(false)
			}
			calm()

			f.net.Hold()
			defer f.net.Release()
			f.awaitReadiness(503, "no Kafka broker responds")
			f.awaitNotReadyMetric()
			f.net.Release()
			calm()
		})
	}
}

// /readyz and the metrics report each component of dev, including its broker, while it fails. The alerts ComponentNotReady and
// PartitionsUnowned depend on this: a group without partitions must have the metric.
func TestReadyz_NamesUnavailablePartsOfDev(t *testing.T) {
	t.Parallel()
	f := &faulty{components: map[string]*breakable{}}
	f.started = startPieces(t, testConfig(t.TempDir()), append(everything(), f.wrap))
	for component, b := range f.components {
		if component == "http" { // without it, /readyz does not respond
			continue
		}
		b.set(true)
		f.awaitReadiness(503, component+" is waiting")
		f.awaitNotReadyMetric()
		if slices.Contains(topics.RowGroups(), component) {
			eventually.True(t, component+" owns fewer partitions than others", func() bool {
				owned := f.gauges("smartfeed_group_partitions_owned", "group")
				own, exists := owned[component]
				return exists && own < slices.Max(slices.Collect(maps.Values(owned)))
			})
		}
		b.set(false)
		if component == "broker" || slices.Contains(topics.RowGroups(), component) {
			f.awaitReadiness(200, "")
		}
	}
	f.awaitReadiness(200, "")
}

func TestBrokerHealth_ReportsRefusedConnections(t *testing.T) {
	r := &brokerHealth{kafka: topics.Kafka{Brokers: []string{"127.0.0.1:1"}}}
	expect.False(t, r.unavailable(), "unavailable before the first check")
	stop := topicstest.Run(t, r.Run)
	eventually.True(t, "the brokers are unavailable", r.unavailable)
	expect.Error(t, stop(), "", "Run")
}
