package rows

import (
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

// work is one Run of a group: a Goka processor, which can run only once, and its dependencies.
type work struct {
	r      *Runner
	ctx    context.Context // of Run; stop cancels it
	cancel context.CancelCauseFunc
	plain  *kgo.Client // not transactional: for fences, ticks and metadata
	admin  *kadm.Client
	tables *tableConsumer
	log    *topics.Log // reads inputs, past markers

	generations topics.GenerationWatch // as of the last cut-over mark

	mu      sync.Mutex
	session *session
	cause   error // the first error
}

func newWork(ctx context.Context, r *Runner) (*work, error) {
	plain, err := r.env.Kafka.Client(kgo.RecordPartitioner(kgo.ManualPartitioner()))
	if err != nil {
		return nil, err
	}
	log, err := topics.NewLog(r.env.Kafka)
	if err != nil {
		plain.Close()
		return nil, err
	}
	w := &work{r: r, plain: plain, admin: kadm.NewClient(plain), tables: newTableConsumer(r.env.Kafka), log: log}
	w.generations.Log = log
	w.ctx, w.cancel = context.WithCancelCause(ctx)
	return w, nil
}

// close closes the clients. They must not be in use.
func (w *work) close() {
	w.cancel(nil)
	w.plain.Close()
	w.log.Close()
}

// abandoned reports whether nothing more may be committed or flushed.
func (w *work) abandoned() bool { return errors.Is(context.Cause(w.ctx), ErrAbandoned) }

// stop ends Run, which returns the error of the first call.
func (w *work) stop(err error) {
	w.mu.Lock()
	if w.cause == nil {
		w.cause = err
	}
	w.mu.Unlock()
	w.cancel(err)
}

func (w *work) run() error {
	processor, err := goka.NewProcessor(w.r.env.Kafka.Brokers, w.graph(), w.options()...)
	if err != nil {
		return err
	}
	err = processor.Run(w.ctx)
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case w.cause != nil:
		return w.cause
	case w.ctx.Err() != nil:
		return nil // the caller stopped Run; Goka's error only says so
	case err == nil:
		return errors.New("goka's processor ended by itself")
	}
	return err
}

// graph returns the topology in Goka's form.
func (w *work) graph() *goka.GroupGraph {
	topo := w.r.topo
	edges := []goka.Edge{goka.Persist(rawCodec{})}
	for i, in := range topo.inputs {
		if in.loop {
			edges = append(edges, goka.Loop(rawCodec{}, w.callback(i)))
			continue
		}
		edges = append(edges, goka.Input(goka.Stream(in.topic), rawCodec{}, w.callback(i)))
	}
	if topo.ticks != "" {
		edges = append(edges, goka.Input(goka.Stream(topo.ticks), rawCodec{}, w.callback(len(topo.inputs))))
	}
	return goka.DefineGroup(goka.Group(topo.name), edges...)
}

// callback returns a function that passes records of an input to their partition.
func (w *work) callback(input int) goka.ProcessCallback {
	return func(ctx goka.Context, msg any) {
		value, _ := msg.([]byte) // nil: a tombstone
		if p := w.part(ctx.Partition()); p != nil {
			p.handle(ctx, input, value)
		}
	}
}

// rawCodec does not decode. The callback decodes, where an error makes a dead letter and does not stop the group.
type rawCodec struct{}

func (rawCodec) Encode(value any) ([]byte, error) { return nil, errUnused }
func (rawCodec) Decode(data []byte) (any, error)  { return data, nil }

// options returns all of Goka's settings.
func (w *work) options() []goka.ProcessorOption {
	options := []goka.ProcessorOption{
		goka.WithLogger(gokaLog{w.r.log}),
		goka.WithHasher(func() hash.Hash32 { return topics.NewHasher() }), // Goka's default hashes to other partitions than the producers
		goka.WithNilHandling(goka.NilProcess),                             // a tombstone on an input is a bad record; do not skip it
		goka.WithPartitionChannelSize(256),                                // records waiting for a callback
		goka.WithStorageBuilder(w.openStorage),
		goka.WithConsumerSaramaBuilder(func([]string, string) (sarama.Consumer, error) { return w.tables, nil }),
		goka.WithConsumerGroupBuilder(w.joinGroup),
		goka.WithTopicManagerBuilder(func([]string) (goka.TopicManager, error) { return topicManager{w.admin}, nil }),
		goka.WithProducerBuilder(func([]string, string, func() hash.Hash32) (goka.Producer, error) { return noProducer{}, nil }),
	}
	if w.r.cfg.Standby {
		options = append(options, goka.WithHotStandby())
	}
	return options
}

// openStorage opens a partition's local store for Goka: a part, which writes, for an assigned partition, or a standby. Goka
// calls it before it asks for the end offset of the changelog. Fencing depends on this order.
func (w *work) openStorage(topic string, partition int32) (storage.Storage, error) {
	w.mu.Lock()
	s := w.session
	w.mu.Unlock()
	if s == nil || topic != w.r.topo.table {
		return nil, fmt.Errorf("open storage of %s/%d: no session", topic, partition)
	}
	st, err := w.openFor(s, partition)
	if err != nil && s.Context().Err() != nil {
		return &store{closed: true}, nil // the session has ended: Goka closes this store immediately
	}
	if err != nil {
		err = fmt.Errorf("open %s/%d: %w", topic, partition, err)
		w.stop(err)
	}
	return st, err
}

func (w *work) openFor(s *session, partition int32) (storage.Storage, error) {
	if s.owns(partition) {
		return w.openPart(s, partition)
	}
	end, err := topicManager{w.admin}.GetOffset(w.r.topo.table, partition, sarama.OffsetNewest)
	if err != nil {
		return nil, err
	}
	st, err := w.r.openStore(w.identity(s, partition), end)
	if err != nil {
		return nil, err
	}
	st.head = func() int64 { return w.tables.end(partition) }
	w.r.storeOpened(partition, st, StageStandby)
	return standby{st, w.r}, nil
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
func (w *work) identity(s *session, partition int32) identity {
	table := w.r.topo.table
	return identity{
		Format: storeFormat, Cluster: s.cluster, Topic: table, TopicID: kadm.TopicID(s.ids[table]).String(), Partition: partition,
	}
}

// openPart makes this process the only writer of a partition and opens it.
func (w *work) openPart(s *session, partition int32) (*part, error) {
	client, err := w.r.env.Kafka.Transactional(
		w.r.topo.name+"-"+strconv.Itoa(int(partition)),
		kgo.ManualFlushing(),         // send a whole transaction in one request, not its first record separately
		kgo.MaxBufferedBytes(0),      // a batch is limited before it is produced
		kgo.RecordDeliveryTimeout(0), // the timeout counts from a record's timestamp, which is old for forwarded records; commit has its own timeout
	)
	if err != nil {
		return nil, err
	}
	p := &part{
		w: w, session: s, id: partition, client: client, number: uint64(w.r.topo.generation)<<48 | w.r.owned.Add(1),
		alone: w.r.assigned(partition, s.GenerationID()),
		kick:  make(chan struct{}, 1), ended: make(chan struct{}),
	}
	p.ctx, p.cancel = context.WithCancel(context.WithoutCancel(w.ctx))
	if err := w.take(s, p); err != nil {
		if p.store != nil {
			err = errors.Join(err, p.store.Close())
		}
		p.cancel()
		client.Close()
		return nil, err
	}
	p.prepare()
	w.r.storeOpened(partition, p.store, StageRecovering)
	s.add(p)
	return p, nil
}

// take fences the previous owner of a partition and opens its store. It writes nothing to a changelog that has lost records,
// because each new record would hide the loss.
func (w *work) take(s *session, p *part) error {
	end, err := w.fence(s.Context(), p)
	if err != nil {
		return err
	}
	if p.store, err = w.r.openStore(w.identity(s, p.id), end); err != nil {
		return err
	}
	if err := s.checkChangelog(w.r.topo, p.id, end); err != nil {
		return err
	}
	return w.endWithRecord(s.Context(), p)
}

// fence aborts the previous owner's open transaction, blocks its later writes, and returns the end offset of the changelog.
func (w *work) fence(ctx context.Context, p *part) (int64, error) {
	if _, _, err := p.client.ProducerID(ctx); err != nil {
		return 0, fmt.Errorf("fence former owner: %w", err)
	}
	return topicManager{w.admin}.GetOffset(w.r.topo.table, p.id, sarama.OffsetNewest)
}

// endWithRecord writes a fence record to the end of the changelog. Otherwise, a crashed broker may have left an aborted
// transaction without a marker there, and recovery would wait forever for its last record.
func (w *work) endWithRecord(ctx context.Context, p *part) error {
	r := kgo.Record{Topic: w.r.topo.table, Partition: p.id, Key: reservedKey(fenceKind), Value: []byte{}}
	if err := topics.Produce(ctx, w.plain, &r); err != nil {
		return fmt.Errorf("write fence: %w", err)
	}
	p.store.endsAt(r.Offset)
	return nil
}

// prepare initializes the fields of a partition that do not need a broker.
func (p *part) prepare() {
	p.room, p.known = sync.NewCond(&p.mu), map[string]struct{}{}
	p.applied = slices.Repeat([]int64{-1}, len(p.w.r.topo.reads()))
	p.state = state{
		topo: p.w.r.topo, cfg: &p.w.r.cfg, id: p.id, common: CommonOwner(p.id, p.w.r.topo.partitions),
		pending: p.newBatch(), store: p.store.db, recent: newRecentRows(p.w.r.shared.recentBytes()),
	}
	if remember := p.w.r.topo.memory; remember != nil {
		p.state.memory = remember()
	}
	if p.w.r.topo.ticks != "" {
		p.timers = newScheduler(p)
	}
}

// heartbeat is the longest interval of a member's heartbeats.
const heartbeat = 500 * time.Millisecond

// joinGroup returns the consumer group that Goka consumes with.
func (w *work) joinGroup(brokers []string, name, clientID string) (sarama.ConsumerGroup, error) {
	c, err := w.r.env.Kafka.Sarama()
	if err != nil {
		return nil, fmt.Errorf("join group %s: %w", name, err)
	}
	c.Consumer.Group.Session.Timeout = w.r.cfg.SessionTimeout
	c.Consumer.Group.Heartbeat.Interval = min(w.r.cfg.SessionTimeout/6, heartbeat) // members learn about rebalances from heartbeats
	group, err := sarama.NewConsumerGroup(brokers, name, c)
	if err != nil {
		return nil, fmt.Errorf("join group %s: %w", name, err)
	}
	return quickGroup{group, w}, nil
}

// part returns an assigned partition of the current session.
func (w *work) part(partition int32) *part {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.session == nil {
		return nil
	}
	return w.session.part(partition)
}

// quickGroup hides the end of sarama's sessions from Goka, which sleeps for five seconds after each.
type quickGroup struct {
	sarama.ConsumerGroup
	w *work
}

// leastSession is the least time between the starts of two sessions, so that a session that fails immediately does not spin.
const leastSession = 100 * time.Millisecond

// Consume runs one session after another until ctx ends or joining fails.
func (q quickGroup) Consume(ctx context.Context, topics []string, handler sarama.ConsumerGroupHandler) error {
	for {
		started := time.Now()
		err := q.ConsumerGroup.Consume(ctx, topics, sessions{handler, q.w})
		if err != nil || ctx.Err() != nil {
			return err
		}
		if !sleep(ctx, leastSession-time.Since(started), nil) {
			return nil
		}
	}
}
