package rows

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/IBM/sarama"
	"github.com/lovoo/goka"
	"github.com/lovoo/goka/storage"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/smartfeed/smartfeed/topics"
)

// groupRun is one Run of a group: a Goka processor, which can run only once, and its dependencies.
type groupRun struct {
	r      *Runner
	ctx    context.Context // derived from that of Run; stop cancels it
	cancel context.CancelCauseFunc
	plain  *kgo.Client // not transactional: for fences, ticks and metadata
	admin  *kadm.Client
	tables *tableConsumer
	log    *topics.Log // reads inputs beyond markers

	generations topics.GenerationWatch // as of the last cut-over mark

	mu      sync.Mutex
	session *session
	cause   error // the first error
}

func newGroupRun(ctx context.Context, r *Runner) (*groupRun, error) {
	plain, err := r.env.Kafka.Client(kgo.RecordPartitioner(kgo.ManualPartitioner()))
	if err != nil {
		return nil, err
	}
	log, err := topics.NewLog(r.env.Kafka)
	if err != nil {
		plain.Close()
		return nil, err
	}
	g := &groupRun{r: r, plain: plain, admin: kadm.NewClient(plain), tables: newTableConsumer(r.env.Kafka), log: log}
	g.generations.Log = log
	g.ctx, g.cancel = context.WithCancelCause(ctx)
	return g, nil
}

// close closes the clients. They must not be in use.
func (g *groupRun) close() {
	g.cancel(nil)
	g.plain.Close()
	g.log.Close()
}

// abandoned reports whether nothing more may be committed or flushed.
func (g *groupRun) abandoned() bool { return errors.Is(context.Cause(g.ctx), ErrAbandoned) }

// stop ends Run, which returns the error of the first call.
func (g *groupRun) stop(err error) {
	g.mu.Lock()
	g.cause = cmp.Or(g.cause, err)
	g.mu.Unlock()
	g.cancel(err)
}

func (g *groupRun) run() error {
	processor, err := goka.NewProcessor(g.r.env.Kafka.Brokers, g.graph(), g.options()...)
	if err != nil {
		return err
	}
	err = processor.Run(g.ctx)
	g.mu.Lock()
	defer g.mu.Unlock()
	switch {
	case g.cause != nil:
		return g.cause
	case g.ctx.Err() != nil:
		return nil // the caller stopped Run; Goka's error only says so
	case err == nil:
		return errors.New("goka's processor stopped without an error")
	}
	return err
}

// graph returns the topology in Goka's form.
func (g *groupRun) graph() *goka.GroupGraph {
	topo := g.r.topo
	edges := []goka.Edge{goka.Persist(rawCodec{})}
	for i, in := range topo.inputs {
		if in.loop {
			edges = append(edges, goka.Loop(rawCodec{}, g.callback(i)))
			continue
		}
		edges = append(edges, goka.Input(goka.Stream(in.topic), rawCodec{}, g.callback(i)))
	}
	if topo.ticks != "" {
		edges = append(edges, goka.Input(goka.Stream(topo.ticks), rawCodec{}, g.callback(len(topo.inputs))))
	}
	return goka.DefineGroup(goka.Group(topo.name), edges...)
}

// callback returns a function that passes records of an input to their partition.
func (g *groupRun) callback(input int) goka.ProcessCallback {
	return func(ctx goka.Context, msg any) {
		value, _ := msg.([]byte) // nil: a tombstone
		if p := g.partition(ctx.Partition()); p != nil {
			p.handle(ctx, input, value)
		}
	}
}

// rawCodec does not decode. The callback decodes: its errors send the record to the dead-letter topic and do not stop the group.
type rawCodec struct{}

func (rawCodec) Encode(value any) ([]byte, error) { return nil, errUnused }
func (rawCodec) Decode(data []byte) (any, error)  { return data, nil }

// options returns all of Goka's settings.
func (g *groupRun) options() []goka.ProcessorOption {
	options := []goka.ProcessorOption{
		goka.WithLogger(gokaLog{g.r.log}),
		goka.WithHasher(func() hash.Hash32 { return topics.NewHasher() }), // Goka's default hashes to other partitions than the producers
		goka.WithNilHandling(goka.NilProcess),                             // a tombstone on an input is a bad record; do not skip it
		goka.WithPartitionChannelSize(256),                                // records waiting for a callback
		goka.WithStorageBuilder(g.openStorage),
		goka.WithConsumerSaramaBuilder(func([]string, string) (sarama.Consumer, error) { return g.tables, nil }),
		goka.WithConsumerGroupBuilder(g.joinGroup),
		goka.WithTopicManagerBuilder(func([]string) (goka.TopicManager, error) { return topicManager{g.admin}, nil }),
		goka.WithProducerBuilder(func([]string, string, func() hash.Hash32) (goka.Producer, error) { return noProducer{}, nil }),
	}
	if g.r.cfg.Standby {
		options = append(options, goka.WithHotStandby())
	}
	return options
}

// openStorage opens a partition's local store for Goka: a partition, which writes, if it is assigned, and a standby otherwise. Goka
// calls it before it requests the end offset of the changelog. Fencing depends on this order.
func (g *groupRun) openStorage(topic string, partition int32) (storage.Storage, error) {
	g.mu.Lock()
	s := g.session
	g.mu.Unlock()
	if s == nil || topic != g.r.topo.table {
		return nil, fmt.Errorf("open storage of %s/%d: no session", topic, partition)
	}
	st, err := g.openStoreFor(s, partition)
	if err != nil && s.Context().Err() != nil {
		return &store{closed: true}, nil // the session has ended: Goka closes this store immediately
	}
	if err != nil {
		err = fmt.Errorf("open %s/%d: %w", topic, partition, err)
		g.stop(err)
	}
	return st, err
}

func (g *groupRun) openStoreFor(s *session, partition int32) (storage.Storage, error) {
	if s.owns(partition) {
		return g.openPartition(s, partition)
	}
	end, err := topicManager{g.admin}.GetOffset(g.r.topo.table, partition, sarama.OffsetNewest)
	if err != nil {
		return nil, err
	}
	st, err := g.r.openStore(g.identity(s, partition), end)
	if err != nil {
		return nil, err
	}
	st.latestEnd = func() int64 { return g.tables.end(partition) }
	g.r.storeOpened(partition, st, StageStandby)
	return standby{st, g.r}, nil
}

// standby is a store that follows its changelog.
type standby struct {
	*store
	r *Runner
}

// Close is called by Goka at the end of a session.
func (s standby) Close() error {
	s.r.storeClosed(s.store)
	return s.store.Close()
}

// identity returns the identity of a partition's local store.
func (g *groupRun) identity(s *session, partition int32) identity {
	table := g.r.topo.table
	return identity{
		Format: storeFormat, Cluster: s.cluster, Topic: table, TopicID: kadm.TopicID(s.ids[table]).String(), Partition: partition,
	}
}

// openPartition makes this process the only writer of a partition and opens it.
func (g *groupRun) openPartition(s *session, id int32) (*partition, error) {
	client, err := g.r.env.Kafka.Transactional(
		g.r.topo.name+"-"+strconv.Itoa(int(id)),
		kgo.ManualFlushing(),         // send a whole transaction in one request, not its first record separately
		kgo.MaxBufferedBytes(0),      // a batch is limited before it is produced
		kgo.RecordDeliveryTimeout(0), // the timeout counts from a record's timestamp, which is old for forwarded records; commit has its own timeout
	)
	if err != nil {
		return nil, err
	}
	p := &partition{
		run: g, session: s, id: id, client: client, sessionNumber: uint64(g.r.topo.generation)<<48 | g.r.owned.Add(1),
		ownerSince: g.r.assigned(id, s.GenerationID()),
		wakeup:     make(chan struct{}, 1), committerDone: make(chan struct{}),
	}
	p.ctx, p.cancel = context.WithCancel(context.WithoutCancel(g.ctx))
	if err := g.acquire(s, p); err != nil {
		if p.store != nil {
			err = errors.Join(err, p.store.Close())
		}
		p.cancel()
		client.Close()
		return nil, err
	}
	p.prepare()
	g.r.storeOpened(id, p.store, StageRecovering)
	s.add(p)
	return p, nil
}

// acquire fences the previous owner of a partition and opens its store. It writes nothing to a changelog that has lost records,
// because each new record would hide the loss.
func (g *groupRun) acquire(s *session, p *partition) error {
	end, err := g.fence(s.Context(), p)
	if err != nil {
		return err
	}
	if p.store, err = g.r.openStore(g.identity(s, p.id), end); err != nil {
		return err
	}
	if err := s.checkChangelog(g.r.topo, p.id, end); err != nil {
		return err
	}
	return g.writeFence(s.Context(), p)
}

// fence aborts the previous owner's open transaction, blocks its later writes, and returns the end offset of the changelog.
func (g *groupRun) fence(ctx context.Context, p *partition) (int64, error) {
	if _, _, err := p.client.ProducerID(ctx); err != nil {
		return 0, fmt.Errorf("fence previous owner: %w", err)
	}
	return topicManager{g.admin}.GetOffset(g.r.topo.table, p.id, sarama.OffsetNewest)
}

// writeFence writes a fence record to the end of the changelog. Otherwise, a crashed broker may have left an aborted
// transaction without a marker there, and recovery would wait forever for its last record.
func (g *groupRun) writeFence(ctx context.Context, p *partition) error {
	r := kgo.Record{Topic: g.r.topo.table, Partition: p.id, Key: reservedKey(fenceKind), Value: []byte{}}
	if err := topics.Produce(ctx, g.plain, &r); err != nil {
		return fmt.Errorf("write fence: %w", err)
	}
	p.store.endsAt(r.Offset)
	return nil
}

// prepare initializes the fields of a partition that do not need a broker.
func (p *partition) prepare() {
	p.capacity, p.knownTopics = sync.NewCond(&p.mu), map[string]struct{}{}
	p.applied = slices.Repeat([]int64{-1}, len(p.run.r.topo.reads()))
	p.state = state{
		topo: p.run.r.topo, cfg: &p.run.r.cfg, id: p.id, common: CommonOwner(p.id, p.run.r.topo.partitions),
		pending: p.newBatch(), store: p.store.db, recent: newRecentRows(p.run.r.shared.recentBytes()),
		existing: newExisting(p.run.r.shared.filterBytes()),
	}
	if p.run.r.topo.ticks != "" {
		p.timers = newScheduler(p)
	}
}

// heartbeat is the longest interval of a member's heartbeats.
const heartbeat = 500 * time.Millisecond

// deferredFetchBytes is the size up to which brokers collect the records of a group whose effects may wait, for at most
// Config.FetchMaxWait. Otherwise each record of a quiet product would cost a fetch.
const deferredFetchBytes = 64 << 10

// joinGroup returns the consumer group that Goka consumes with.
func (g *groupRun) joinGroup(brokers []string, name, clientID string) (sarama.ConsumerGroup, error) {
	c, err := g.consumer()
	if err != nil {
		return nil, fmt.Errorf("join group %s: %w", name, err)
	}
	group, err := sarama.NewConsumerGroup(brokers, name, c)
	if err != nil {
		return nil, fmt.Errorf("join group %s: %w", name, err)
	}
	return rejoiningGroup{group, g}, nil
}

// consumer returns the configuration of the consumer group.
func (g *groupRun) consumer() (*sarama.Config, error) {
	c, err := g.r.env.Kafka.Sarama()
	if err != nil {
		return nil, err
	}
	c.Consumer.MaxWaitTime = g.r.cfg.FetchMaxWait
	if g.r.topo.defersAll() {
		c.Consumer.Fetch.Min = deferredFetchBytes
	}
	c.Consumer.Group.Session.Timeout = g.r.cfg.SessionTimeout
	c.Consumer.Group.Heartbeat.Interval = min(g.r.cfg.SessionTimeout/6, heartbeat) // members learn about rebalances from heartbeats
	return c, nil
}

// partition returns an assigned partition of the current session.
func (g *groupRun) partition(partition int32) *partition {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.session == nil {
		return nil
	}
	return g.session.partition(partition)
}

// rejoiningGroup hides the end of sarama's sessions from Goka, which sleeps for five seconds after each.
type rejoiningGroup struct {
	sarama.ConsumerGroup
	run *groupRun
}

// minSessionTime is the minimum time between the starts of two sessions. It prevents a busy loop if sessions fail immediately.
const minSessionTime = 100 * time.Millisecond

// Consume runs one session after another until ctx ends or joining fails.
func (q rejoiningGroup) Consume(ctx context.Context, topics []string, handler sarama.ConsumerGroupHandler) error {
	for {
		started := time.Now()
		err := q.ConsumerGroup.Consume(ctx, topics, sessions{handler, q.run})
		if err != nil || ctx.Err() != nil {
			return err
		}
		if !sleep(ctx, minSessionTime-time.Since(started), nil) {
			return nil
		}
	}
}
