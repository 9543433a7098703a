package conformance

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/smartfeed/smartfeed/internal/testkit/eventually"
	"github.com/smartfeed/smartfeed/internal/testkit/expect"
	"github.com/smartfeed/smartfeed/internal/testkit/must"
	"github.com/smartfeed/smartfeed/internal/testkit/topicstest"
	"github.com/smartfeed/smartfeed/schemas"
	"github.com/smartfeed/smartfeed/serving/feature"
	"github.com/smartfeed/smartfeed/serving/feature/pinot"
	"github.com/smartfeed/smartfeed/topics"
)

// realPinot is the host:port of a Pinot controller whose broker listens on the next port, as .ci/services starts it.
const realPinot = "SMARTFEED_TEST_PINOT"

// partitions is the number of partitions of the topic.
const partitions = 4

// cluster is a real Pinot that ingests from an embedded broker.
type cluster struct {
	store              *pinot.Store
	client             *pinot.Client
	consumers          []topics.ExternalConsumer
	broker, controller string // URLs
	setup              pinot.Setup
	streams            *topics.Streams
	kafka              *kgo.Client
}

func startCluster(t testing.TB) *cluster {
	t.Helper()
	controller := os.Getenv(realPinot)
	if controller == "" {
		t.Skip(realPinot + " is not set")
	}
	k := topicstest.Start(t, partitions)
	c := &cluster{streams: k.Streams, kafka: k.Client()}
	c.setup = pinot.Setup{Kafka: k.Kafka.Brokers, Registry: k.Registry, Partitions: partitions}
	c.setup.Sequences = feature.DefaultConfig().SequenceRetention
	c.controller, c.broker = "http://"+controller, "http://"+nextPort(t, controller)
	at := pinot.DefaultConfig()
	at.Controller, at.Brokers = c.controller, []string{c.broker}
	c.setup.Config = at
	c.consumers = must.Get(pinot.NewExternalConsumers(at))(t)
	c.client = must.Get(pinot.NewClient(at))(t)
	t.Cleanup(c.client.Close)
	c.store = pinot.NewStore(feature.DefaultConfig(), c.client)
	c.remove(t)
	t.Cleanup(func() { c.remove(t) })
	return c
}

func define(t testing.TB, text string) []feature.Definition {
	t.Helper()
	return must.Get(feature.Parse("test", []byte("features:\n"+text)))(t)
}

func nextPort(t testing.TB, address string) string {
	t.Helper()
	host, port, err := net.SplitHostPort(address)
	must.OK(t, err)
	n := must.Get(strconv.Atoi(port))(t)
	return net.JoinHostPort(host, strconv.Itoa(n+1))
}

// remove deletes tables and schemas, if they exist.
func (c *cluster) remove(t testing.TB) {
	t.Helper()
	for _, name := range pinot.Tables() {
		for _, path := range []string{"/tables/" + name, "/schemas/" + name} {
			_, _ = call(context.Background(), http.MethodDelete, c.controller+path, "")
		}
	}
}

// call sends a request to Pinot and returns the body of the response.
func call(ctx context.Context, method, url, body string) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, method, url, strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	return io.ReadAll(res.Body)
}

func (c *cluster) produce(t testing.TB, actions ...*schemas.EnrichedAction) {
	t.Helper()
	c.produceBatch(t, feature.Batch{Actions: actions})
}

// produceBatch produces the records of a batch, those of a topic in order.
func (c *cluster) produceBatch(t testing.TB, b feature.Batch) {
	t.Helper()
	records := encoded(t, nil, c.streams.ActionsEnriched, b.Actions, func(a *schemas.EnrichedAction) string { return string(a.Actor) })
	records = encoded(t, records, c.streams.ItemFeatures, b.Counts, func(c *schemas.ItemCounts) string { return string(c.Pin) })
	records = encoded(t, records, c.streams.PinAttributes, b.Pins, func(p *schemas.PinAttributes) string { return string(p.Pin) })
	must.OK(t, c.kafka.ProduceSync(t.Context(), records...).FirstErr())
}

func encoded[T any](t testing.TB, to []*kgo.Record, s topics.Stream[T], all []*T, key func(*T) string) []*kgo.Record {
	t.Helper()
	for _, r := range all {
		value := must.Get(s.Encode(r))(t)
		to = append(to, &kgo.Record{Topic: s.Name, Key: []byte(key(r)), Value: value})
	}
	return to
}

// await returns when Pinot's servers have ingested the complete topics and its brokers query all of them. It then checks
// that there are n actions. From 1.0 on, Pinot keeps repeats of an action that no window contains.
func (c *cluster) await(t testing.TB, n int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	must.OK(t, topics.AwaitExternalConsumers(ctx, topics.Kafka{Brokers: c.setup.Kafka, Partitions: partitions, Embedded: true}, nil, c.consumers...))
	counts := map[string]string{pinot.TableName: "DISTINCTCOUNT(id)", pinot.PinsTable: "COUNT(*)", pinot.CountsTable: "COUNT(*)", pinot.MeansTable: "COUNT(*)"}
	counted := map[string]int{}
	for table, count := range counts {
		eventually.True(t, "brokers query all partitions of "+table, func() bool { // of a new table
			var found struct {
				NumConsumingSegmentsQueried int
				ResultTable                 struct{ Rows [][]int }
			}
			body, err := call(ctx, http.MethodPost, c.broker+"/query/sql", `{"sql": "SELECT `+count+` FROM `+table+`"}`)
			if err != nil || json.Unmarshal(body, &found) != nil || found.NumConsumingSegmentsQueried != partitions {
				return false
			}
			counted[table] = found.ResultTable.Rows[0][0]
			return true
		})
	}
	expect.Equal(t, counted[pinot.TableName], n, "rows of actions in %v", counted)
}

func TestRealPinot(t *testing.T) {
	c := startCluster(t)
	must.OK(t, c.setup.Apply(t.Context()))
	must.OK(t, c.setup.Apply(t.Context())) // an update that changes nothing
	expect.Empty(t, must.Get(c.setup.Verify(t.Context()))(t), "differences")
	other := c.setup
	other.Partitions = 8
	if differ, err := other.Verify(t.Context()); err != nil || len(differ) != len(pinot.Tables()) || !strings.Contains(differ[0], "numPartitions: 4, want 8") {
		t.Errorf("with other partitions: %v, %v", differ, err)
	}
	now := time.Now()
	store := &filled{c.store, c, t, c.documentedQueries(t, now)}
	t.Run("conformance", func(t *testing.T) { run(t, store, schemas.MicrosOf(now)) })
	few := feature.DefaultConfig()
	few.MaxGroups = fewGroups
	t.Run("few groups", func(t *testing.T) { runFewGroups(t, pinot.NewStore(few, c.client), schemas.MicrosOf(now)) })
	t.Run("freshness", func(t *testing.T) { c.freshness(t) })
	t.Run("aborted transaction", func(t *testing.T) { c.aborted(t) })
}

// filled is a store whose writes go through the pipeline.
type filled struct {
	*pinot.Store
	cluster *cluster
	t       *testing.T
	ids     map[string]bool // of all actions so far: one row per id, also for repeats
}

func (f *filled) Write(b feature.Batch) error {
	for _, a := range b.Actions {
		f.ids[a.ID] = true
	}
	f.cluster.produceBatch(f.t, b)
	f.cluster.await(f.t, len(f.ids))
	return nil
}

// aborted produces in a transaction that is aborted, and in one that is committed.
func (c *cluster) aborted(t *testing.T) {
	tx := must.Get(topics.Kafka{Brokers: c.setup.Kafka, Partitions: partitions, Embedded: true}.Client(kgo.TransactionalID("test")))(t)
	defer tx.Close()
	now := schemas.MicrosOf(time.Now())
	for i, end := range []kgo.TransactionEndTry{kgo.TryAbort, kgo.TryCommit} {
		must.OK(t, tx.BeginTransaction())
		a := schemas.EnrichedAction{ID: fmt.Sprint("tx-", i), Actor: "user:tx", Verb: "save", Object: schemas.ID(fmt.Sprint("pin:", i)), Timestamp: now}
		value := must.Get(c.streams.ActionsEnriched.Encode(&a))(t)
		r := &kgo.Record{Topic: topics.ActionsEnriched, Key: []byte(a.Actor), Value: value}
		must.OK(t, tx.ProduceSync(t.Context(), r).FirstErr())
		must.OK(t, topics.EndTransaction(t.Context(), tx, end, r.Topic))
	}
	def := define(t, "- {name: f, entity: user, aggregate: last}\n")
	var last feature.Last
	eventually.True(t, "the committed action is visible", func() bool {
		got, _, err := c.store.Actions(t.Context(), "user:tx", feature.Span{Now: now, AsOf: now}, def)
		must.OK(t, err)
		last = got[0].Value.(feature.Last)
		return len(last) > 0
	})
	if len(last) != 1 || last[0].Object != "pin:1" {
		t.Errorf("got %v, want only the committed one", last)
	}
}

// freshness checks how fast each of some actions is visible in a feature.
func (c *cluster) freshness(t *testing.T) {
	took := c.freshAfter(t, 40)
	slices.Sort(took)
	t.Logf("action to feature: median %v of %d, maximum %v", took[len(took)/2], len(took), took[len(took)-1])
	now := schemas.MicrosOf(time.Now())
	_, fresh, err := c.store.Actions(t.Context(), "user:fresh-0", feature.Span{Now: now, AsOf: now}, define(t, "- {name: f, entity: user, aggregate: count}\n"))
	if ago := time.Since(fresh); err != nil || ago < 0 || ago > 5*time.Minute {
		t.Errorf("fresh to %v, %v, want a moment ago", fresh, err)
	}
}

// freshAfter measures n times how long after its acknowledgement an action is visible in a feature.
func (c *cluster) freshAfter(t testing.TB, n int) []time.Duration {
	def := define(t, "- {name: f, entity: user, aggregate: count}\n")
	took := make([]time.Duration, n)
	for i := range took {
		user := schemas.UserID(fmt.Sprint("user:fresh-", i))
		c.produce(t, &schemas.EnrichedAction{ID: fmt.Sprint("fresh-", i), Actor: user, Verb: "save", Object: "pin:1", Timestamp: schemas.MicrosOf(time.Now())})
		start := time.Now()
		for {
			now := schemas.MicrosOf(time.Now())
			got, _, err := c.store.Actions(t.Context(), user, feature.Span{Now: now, AsOf: now}, def)
			must.OK(t, err)
			if got[0].Value == feature.Number(1) {
				break
			}
			if time.Since(start) > time.Minute {
				t.Fatal("not visible after a minute")
			}
		}
		took[i] = time.Since(start)
	}
	return took
}
