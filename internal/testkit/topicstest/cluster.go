// Package topicstest runs brokers with the topics of the catalogue for tests, and injects faults.
package topicstest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sr/srfake"

	"github.com/smartfeed/smartfeed/internal/testkit/child"
	"github.com/smartfeed/smartfeed/internal/testkit/eventually"
	"github.com/smartfeed/smartfeed/internal/testkit/expect"
	"github.com/smartfeed/smartfeed/internal/testkit/must"
	"github.com/smartfeed/smartfeed/schemas"
	"github.com/smartfeed/smartfeed/topics"
	"github.com/smartfeed/smartfeed/topics/embedded"
	"github.com/smartfeed/smartfeed/topics/generation"
)

// Cluster is a broker and a schema registry. Its methods fail the test on an error, and close opened clients when the
// test ends.
type Cluster struct {
	*embedded.Server // nil: the brokers are not embedded
	Kafka            topics.Kafka
	Registry         string          // URL
	Streams          *topics.Streams // nil before Apply

	t     testing.TB
	log   *slog.Logger
	admin func() *kadm.Client // opened by the first call
}

// Bare starts an embedded broker and registry without topics. Apply creates topics with the given number of partitions; 0:
// topics.EmbeddedPartitions.
func Bare(t testing.TB, partitions int32) *Cluster {
	t.Helper()
	c := On(t, topics.Kafka{}, nil)
	cfg := embedded.DefaultConfig()
	cfg.Dir, cfg.Kafka, cfg.Registry = t.TempDir(), "127.0.0.1:0", "127.0.0.1:0"
	c.Server = must.Get(embedded.Start(t.Context(), cfg, c.log))(c.t)
	t.Cleanup(func() { must.OK(t, c.Close()) })
	c.Kafka, c.Registry = c.Server.Kafka(partitions), c.RegistryURL()
	return c
}

// Start is Bare with every topic of the catalogue.
func Start(t testing.TB, partitions int32) *Cluster {
	t.Helper()
	c := Bare(t, partitions)
	c.Apply()
	return c
}

// RealKafka names the environment variable with the addresses of Kafka brokers for tests. The tests do not delete all
// of their topics.
const RealKafka = "SMARTFEED_TEST_KAFKA"

// Real returns the brokers that RealKafka names, with an embedded registry. It skips the test if the variable is not set.
// The named topics of the catalogue exist and have no records; without names, this applies to all topics. Consumer groups
// without members are deleted.
func Real(t testing.TB, names ...string) *Cluster {
	t.Helper()
	c := RealBare(t, topics.EmbeddedPartitions)
	profile := must.Get(topics.ProfileOf(t.Context(), c.Kafka))(c.t)
	catalogue := slices.DeleteFunc(topics.Catalogue(profile), func(topic topics.Topic) bool {
		return len(names) > 0 && !slices.Contains(names, topic.Name)
	})
	c.Forget(c.used(catalogue)...)
	c.apply(catalogue)
	return c
}

// RealBare is Real without any change to the brokers.
func RealBare(t testing.TB, partitions int32) *Cluster {
	t.Helper()
	addrs := os.Getenv(RealKafka)
	if addrs == "" {
		t.Skipf("set %s to the addresses of Kafka brokers", RealKafka)
	}
	c := On(t, topics.Kafka{Brokers: strings.Split(addrs, ","), Partitions: partitions}, nil)
	profile := must.Get(topics.ProfileOf(t.Context(), c.Kafka))(c.t)
	if profile.Embedded {
		t.Fatalf("%s is an embedded broker", addrs)
	}
	registry := srfake.New()
	t.Cleanup(registry.Close)
	c.Registry = registry.URL()
	return c
}

// ServeBroker is a child.Role that runs an embedded broker and registry on the directory args[0]. Their addresses are args[1] and
// args[2], or free ones. It prints both on a line, see Child.
func ServeBroker(ctx context.Context, args []string) error {
	cfg := embedded.DefaultConfig()
	args = append(args, "127.0.0.1:0", "127.0.0.1:0")
	cfg.Dir, cfg.Kafka, cfg.Registry = args[0], args[1], args[2]
	server, err := embedded.Start(ctx, cfg, slog.New(slog.DiscardHandler))
	if err != nil {
		return err
	}
	fmt.Println(strings.Join(server.Kafka(0).Brokers, ","), server.RegistryURL())
	return errors.Join(server.Run(ctx), server.Close())
}

// Child starts a child process in the role "broker", which must be ServeBroker, on a directory. The cluster has no
// topics. partitions is as for Bare.
func Child(t testing.TB, dir string, partitions int32) (*Cluster, *child.Process) {
	t.Helper()
	p := child.Start(t, "broker", dir)
	brokers, registry, _ := strings.Cut(p.Line(), " ")
	c := On(t, topics.Kafka{
		Brokers: strings.Split(brokers, ","), Partitions: cmp.Or(partitions, topics.EmbeddedPartitions), Embedded: true,
	}, nil)
	c.Registry = registry
	return c, p
}

// On returns a cluster of running brokers. streams may be nil.
func On(t testing.TB, k topics.Kafka, streams *topics.Streams) *Cluster {
	c := &Cluster{
		Kafka: k, Streams: streams,
		t: t, log: slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelWarn})),
	}
	c.admin = sync.OnceValue(c.Admin)
	return c
}

// Apply creates the topics of the embedded catalogue that do not exist, and opens the streams.
func (c *Cluster) Apply() {
	c.t.Helper()
	c.apply(topics.Catalogue(topics.Profile{Partitions: c.Kafka.Partitions, Embedded: true}))
}

func (c *Cluster) apply(catalogue []topics.Topic) {
	c.t.Helper()
	must.Get(topics.Apply(c.t.Context(), c.Kafka, catalogue))(c.t)
	if c.Streams == nil {
		c.Open()
	}
}

// Open opens the streams.
func (c *Cluster) Open() {
	c.t.Helper()
	var err error
	eventually.True(c.t, "the registry responds", func() bool { // on a busy machine, a request may time out after five seconds
		c.Streams, err = c.Setup().Streams(c.t.Context())
		return !errors.Is(err, schemas.ErrRegistryUnavailable)
	})
	must.OK(c.t, err)
}

// Forget deletes the named topics, if they exist, and all consumer groups without members.
func (c *Cluster) Forget(names ...string) {
	c.t.Helper()
	groups := must.Get(c.admin().ListGroups(c.t.Context()))(c.t)
	must.Get(c.admin().DeleteGroups(c.t.Context(), groups.Groups()...))(c.t)
	c.DeleteTopics(names...)
}

// DeleteTopics deletes the named topics, if they exist.
func (c *Cluster) DeleteTopics(names ...string) {
	c.t.Helper()
	must.Get(c.admin().DeleteTopics(c.t.Context(), names...))(c.t)
	eventually.True(c.t, "the topics are deleted", func() bool {
		left, err := c.admin().ListTopics(c.t.Context())
		return err == nil && !slices.ContainsFunc(names, left.Has)
	})
}

// used returns the topics of a catalogue that have or had records, or a different number of partitions.
func (c *Cluster) used(catalogue []topics.Topic) (names []string) {
	c.t.Helper()
	all := must.Get(c.admin().ListEndOffsets(c.t.Context()))(c.t)
	for _, topic := range catalogue {
		ends, exists := all[topic.Name]
		fresh := len(ends) == int(topic.Partitions)
		for _, end := range ends {
			fresh = fresh && end.Err == nil && end.Offset == 0
		}
		if exists && !fresh {
			names = append(names, topic.Name)
		}
	}
	return names
}

// Setup returns the configuration of commands that use the cluster.
func (c *Cluster) Setup() topics.Setup {
	return topics.Setup{Kafka: c.Kafka, Registry: c.Registry, Log: c.log}
}

// Client returns a client.
func (c *Cluster) Client(opts ...kgo.Opt) *kgo.Client {
	c.t.Helper()
	client := must.Get(c.Kafka.Client(opts...))(c.t)
	c.t.Cleanup(client.Close)
	return client
}

// Admin returns an administration client.
func (c *Cluster) Admin() *kadm.Client {
	c.t.Helper()
	return kadm.NewClient(c.Client())
}

// Log returns a log.
func (c *Cluster) Log() *topics.Log {
	c.t.Helper()
	l := must.Get(topics.NewLog(c.Kafka))(c.t)
	c.t.Cleanup(l.Close)
	return l
}

// Publisher returns a publisher.
func (c *Cluster) Publisher() *topics.Publisher {
	c.t.Helper()
	p := must.Get(topics.NewPublisher(c.Kafka, c.Streams))(c.t)
	c.t.Cleanup(p.Close)
	return p
}

// Send sends records and waits for the acknowledgements.
func (c *Cluster) Send(records ...*kgo.Record) {
	c.t.Helper()
	client, err := c.Kafka.Client() // a new one, because the topic may have been recreated
	must.OK(c.t, err)
	defer client.Close()
	must.OK(c.t, client.ProduceSync(c.t.Context(), records...).FirstErr())
}

// Produce sends values to a topic under key.
func (c *Cluster) Produce(topic, key string, values ...[]byte) {
	c.t.Helper()
	records := make([]*kgo.Record, len(values))
	for i, value := range values {
		records[i] = &kgo.Record{Topic: topic, Key: []byte(key), Value: value}
	}
	c.Send(records...)
}

// SendDeadLetter sends the dead letter of a record that the group objects could not process. at is the record's offset and
// its timestamp in milliseconds.
func (c *Cluster) SendDeadLetter(topic string, partition int32, key, value string, at int64) {
	c.t.Helper()
	r := &kgo.Record{Topic: topic, Partition: partition, Offset: at, Key: []byte(key), Value: []byte(value), Timestamp: time.UnixMilli(at)}
	must.OK(c.t, c.Publisher().SendDeadLetter(c.t.Context(), topics.Objects, r, "broken"))
}

// DeadLetters waits for n dead letters, and returns them. More are an error.
func (c *Cluster) DeadLetters(n int) (deadLetters []schemas.DeadLetter) {
	c.t.Helper()
	client := c.Client(kgo.ConsumeTopics(topics.DeadLetters))
	ctx, cancel := context.WithTimeout(c.t.Context(), eventually.Limit())
	defer cancel()
	for len(deadLetters) < n {
		fetches := client.PollFetches(ctx)
		if err := fetches.Err(); err != nil {
			c.t.Fatalf("read %d of %d dead letters: %v", len(deadLetters), n, err)
		}
		fetches.EachRecord(func(r *kgo.Record) {
			deadLetter := must.Get(c.Streams.DeadLetters.Decode(r.Value))(c.t)
			deadLetters = append(deadLetters, *deadLetter)
		})
	}
	expect.Equal(c.t, len(deadLetters), n, "dead letters")
	return deadLetters
}

// Records returns the committed records of a topic up to its current end. The records of each partition are in order.
func (c *Cluster) Records(topic string) (all []*kgo.Record) {
	c.t.Helper()
	l := must.Get(topics.NewLog(c.Kafka))(c.t)
	defer l.Close()
	ctx, cancel := context.WithTimeout(c.t.Context(), eventually.Limit())
	defer cancel()
	must.OK(c.t, l.ReadAll(ctx, topic, func(r *kgo.Record) error { all = append(all, r); return nil }))
	return all
}

// End returns the sum of the end offsets of a topic's partitions.
func (c *Cluster) End(topic string) (sum int64) {
	c.t.Helper()
	ends := must.Get(c.admin().ListEndOffsets(c.t.Context(), topic))(c.t)
	must.OK(c.t, ends.Error())
	ends.Each(func(end kadm.ListedOffset) { sum += end.Offset })
	return sum
}

// Committed returns the sum of the offsets that a group has committed on a topic. A group that does not exist has committed
// nothing.
func (c *Cluster) Committed(group, topic string) (sum int64) {
	c.t.Helper()
	offsets, err := c.admin().FetchOffsets(c.t.Context(), group)
	if !errors.Is(err, kerr.GroupIDNotFound) {
		must.OK(c.t, err)
	}
	for _, o := range offsets[topic] {
		sum += max(0, o.At)
	}
	return sum
}

// Lag returns the number of records of the named topics after the committed offsets of a group, including markers.
func (c *Cluster) Lag(group string, names ...string) (lag int64) {
	c.t.Helper()
	for _, topic := range names {
		lag += c.End(topic) - c.Committed(group, topic)
	}
	return lag
}

// DeleteBefore deletes the records of a partition before an offset, as retention does.
func (c *Cluster) DeleteBefore(topic string, partition int32, offset int64) {
	c.t.Helper()
	offsets := kadm.Offsets{}
	offsets.AddOffset(topic, partition, offset, -1)
	must.OK(c.t, must.Get(c.admin().DeleteRecords(c.t.Context(), offsets))(c.t).Error())
}

// Names returns the names of all topics.
func (c *Cluster) Names() []string {
	c.t.Helper()
	have := must.Get(c.admin().ListTopics(c.t.Context()))(c.t)
	return have.Names()
}

// CreateGeneration creates the topics of a generation of the pools.
func (c *Cluster) CreateGeneration(p topics.Profile, number int) {
	c.t.Helper()
	must.Get(topics.Apply(c.t.Context(), c.Kafka, topics.GenerationTopics(p, topics.Pools, number)))(c.t)
}

// SetGeneration publishes the active generation of the pools, and the one being built; building 0: none.
func (c *Cluster) SetGeneration(active, building int) {
	c.t.Helper()
	g := generation.Record{Group: topics.Pools, Active: active, Building: building}
	must.OK(c.t, topics.SetGeneration(c.t.Context(), c.Client(), g))
}

// SetConfig changes a setting of a topic directly on the brokers.
func (c *Cluster) SetConfig(topic, key, value string) {
	c.t.Helper()
	must.Get(c.admin().AlterTopicConfigs(c.t.Context(), []kadm.AlterConfig{{Op: kadm.SetConfig, Name: key, Value: &value}}, topic))(c.t)
}

// KeysIn returns the first n keys of a partition among prefix0, prefix1 and so on.
func KeysIn[K ~string](prefix K, partition, partitions int32, n int) (keys []K) {
	for i := 0; len(keys) < n; i++ {
		if key := fmt.Sprint(prefix, i); topics.Partition(key, partitions) == partition {
			keys = append(keys, K(key))
		}
	}
	return keys
}

// Run calls run in a goroutine. stop cancels its context, waits until it returns, and returns its error. The end of the
// test calls stop, too.
func Run(t testing.TB, run func(context.Context) error) (stop func() error) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	done := make(chan error, 1)
	go func() { done <- run(ctx) }()
	stop = sync.OnceValue(func() error {
		cancel()
		select {
		case err := <-done:
			return err
		case <-time.After(eventually.Limit()):
			t.Errorf("Run did not return within %s", eventually.Limit())
			return nil
		}
	})
	t.Cleanup(func() { _ = stop() })
	return stop
}
