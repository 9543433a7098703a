package bench

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/smartfeed/smartfeed/internal/testkit/child"
	"github.com/smartfeed/smartfeed/internal/testkit/deletedtest"
	"github.com/smartfeed/smartfeed/internal/testkit/expect"
	"github.com/smartfeed/smartfeed/internal/testkit/memory"
	"github.com/smartfeed/smartfeed/internal/testkit/must"
	"github.com/smartfeed/smartfeed/processors/fanout"
	"github.com/smartfeed/smartfeed/processors/objects"
	"github.com/smartfeed/smartfeed/processors/pools"
	"github.com/smartfeed/smartfeed/processors/pools/generator"
	"github.com/smartfeed/smartfeed/processors/ranked"
	"github.com/smartfeed/smartfeed/processors/rows"
	"github.com/smartfeed/smartfeed/schemas"
	"github.com/smartfeed/smartfeed/topics"
)

// scale is the size factor of every benchmark: BENCH_FEED_SCALE, 1 by default.
func scale(b *testing.B) float64 {
	return must.Get(strconv.ParseFloat(cmp.Or(os.Getenv("BENCH_FEED_SCALE"), "1"), 64))(b)
}

// pipeline runs the groups from pins to pools in this process.
type pipeline struct {
	*wire
	publisher *topics.Publisher
	readers   []topics.Reader
	groups    map[string]*rows.Runner
	generator *generator.Generator
	rng       *rand.Rand
	edges     [][]int32 // followees by follower
	each      int
	pins      int
	newest    schemas.Micros
}

func newPipeline(b *testing.B, fan fanout.Config, pool pools.Config) *pipeline {
	b.Helper()
	p := &pipeline{wire: newWire(b), groups: map[string]*rows.Runner{}, rng: rand.New(rand.NewPCG(1, 2))}
	p.newest = schemas.MicrosOf(time.Now().Add(-24 * time.Hour))
	p.publisher = p.Publisher()
	cfg := rows.DefaultConfig()
	cfg.Dir = b.TempDir()
	shared := must.Get(rows.NewShared(cfg))(b)
	ctx, stop := context.WithCancel(context.Background())
	var running sync.WaitGroup
	b.Cleanup(func() {
		stop()
		running.Wait()
		shared.Close()
	})
	env := rows.Env{Kafka: p.Kafka, Streams: p.Streams, Log: slog.New(slog.DiscardHandler), Shared: shared}
	for _, g := range []rows.Group{
		objects.Group(objects.DefaultConfig(), p.Streams, deletedtest.Of()),
		fanout.Group(fan, partitions, p.Streams, deletedtest.Of()),
		pools.Group(pool, p.Streams, deletedtest.Of()),
	} {
		r := must.Get(rows.New(cfg, env, g))(b)
		p.groups[g.Name] = r
		p.readers = append(p.readers, topics.Reader{Group: g.Name, Topics: g.Reads()})
		running.Go(func() {
			if err := r.Run(ctx); err != nil && ctx.Err() == nil {
				b.Error(err)
			}
		})
	}
	p.generator = must.Get(generator.New(pool, generator.DefaultConfig(), generator.Deps{
		Rows: p.groups[topics.Pools].View(), Streams: p.Streams, Deleted: deletedtest.Of(),
	}))(b)
	p.wait()
	return p
}

// wait returns when all published events have reached the pools.
func (p *pipeline) wait() {
	p.b.Helper()
	must.OK(p.b, topics.Wait(p.b.Context(), p.Kafka, schemas.MicrosOf(time.Now())+1, nil, p.readers...))
}

func (p *pipeline) send(line schemas.Line) {
	p.publisher.Send(p.b.Context(), line, func(err error) {
		expect.Error(p.b, err, "", "send")
	})
}

func user(n int) schemas.UserID { return schemas.UserID(fmt.Sprintf("user:%d", n)) }

func (p *pipeline) follow(follower, followee schemas.UserID) {
	p.edge(follower, followee, schemas.Follow, 1)
}

// publish publishes a new pin of an author.
func (p *pipeline) publish(author schemas.UserID) schemas.PinID {
	p.pins++
	p.newest += 1000
	pin := schemas.PinID(fmt.Sprintf("pin:%d", p.pins))
	e := &schemas.PinEvent{Board: schemas.BoardID(fmt.Sprintf("board:%s-1", author[5:])), Event: schemas.Event{
		ID: string(pin), Time: p.newest, Actor: author, Verb: schemas.Create, Object: schemas.ID(pin),
	}}
	p.send(schemas.NewLine(e))
	return pin
}

// graph makes each of a number of users follow others.
func (p *pipeline) graph(people, each int) {
	p.edges, p.each = make([][]int32, people), each
	step := people/each | 1
	for follower := range people {
		for i := range each { // each has as many followers as followees
			followee := (follower + 1 + i*step) % people
			p.edges[follower] = append(p.edges[follower], int32(followee))
			p.follow(user(follower), user(followee))
		}
	}
	must.OK(p.b, p.publisher.Flush(p.b.Context()))
	p.wait()
}

// measured is the cost of a measured function.
type measured struct {
	took, cpu, broker time.Duration
	deliveries        int64
}

func (m *measured) add(o measured) {
	m.took += o.took
	m.cpu += o.cpu
	m.broker += o.broker
	m.deliveries += o.deliveries
}

func (m measured) rate() float64 { return float64(m.deliveries) / m.took.Seconds() }

func (m measured) cpuPerMillion() float64 { return m.cpu.Seconds() * 1e6 / float64(m.deliveries) }

func (m measured) report(b *testing.B, prefix string) {
	b.ReportMetric(m.rate(), prefix+"deliveries/s")
	b.ReportMetric(m.cpuPerMillion(), prefix+"cpu-s/M")
	b.ReportMetric((m.cpu+m.broker).Seconds()*1e6/float64(m.deliveries), prefix+"with-broker-cpu-s/M")
}

// measure measures a function that results in a number of deliveries.
func (w *wire) measure(deliveries int, work func()) measured {
	cpu, broker, began := child.CPU(w.b, os.Getpid()), child.CPU(w.b, w.broker), time.Now()
	work()
	return measured{
		took: time.Since(began), cpu: child.CPU(w.b, os.Getpid()) - cpu, broker: child.CPU(w.b, w.broker) - broker, deliveries: int64(deliveries),
	}
}

// deliver publishes pins of random users and waits until all their followers have them.
func (p *pipeline) deliver(pins, people, each int) measured {
	return p.measure(pins*each, func() {
		for range pins {
			p.publish(user(p.rng.IntN(people)))
		}
		must.OK(p.b, p.publisher.Flush(p.b.Context()))
		p.wait()
	})
}

// pushed returns a fan-out without pulled followees.
func pushed() fanout.Config {
	cfg := fanout.DefaultConfig()
	cfg.PullThreshold = 1_000_000_000
	return cfg
}

// BenchmarkFeed has fifty thousand users with thirty followers each, and 25,100 pins: 753,000 deliveries, scored,
// durable, exactly once. It also measures the bare loop over the same publications. It fails if a delivery costs more
// than most times the CPU time of the bare loop. On an idle machine, the factor is 1.3.
func BenchmarkFeed(b *testing.B) {
	const most = 4
	people, each := int(50_000*scale(b)), 30
	pins := people / 2
	for range b.N {
		p := newPipeline(b, pushed(), pools.DefaultConfig())
		p.graph(people, each)
		before := p.delivered()
		m := p.deliver(pins, people, each)
		expect.AtLeast(b, p.delivered()-before, m.deliveries, "rows of pools")
		m.report(b, "")
		bare := p.bare()
		bare.report(b, "bare-")
		expect.AtMost(b, m.cpuPerMillion(), most*bare.cpuPerMillion(), "CPU seconds of a million deliveries, %d times the bare loop's", most)
	}
	b.ReportMetric(0, "ns/op")
}

// delivered returns the number of rows that pools has written.
func (p *pipeline) delivered() int64 { return p.groups[topics.Pools].Status().Counters.Rows }

// BenchmarkFeedFull has fifteen hundred users with five hundred followers each. It fills their pools of 500 candidates
// twice. The cost of a delivery must not depend on previous deliveries, and memory must not grow with them.
//
// The two halves have the same publications but different costs. A delivery to an empty pool writes one row. A delivery to
// a full pool also deletes a row, and takes its part of the trim that finds this row. The bare loop does the same two
// writes and no trim: it remembers the oldest row. A publication to five hundred followers costs less per follower than one
// to thirty, so the result of BenchmarkFeed is between the two.
func BenchmarkFeedFull(b *testing.B) {
	people, each := int(1500*scale(b)), 500
	for range b.N {
		p := newPipeline(b, pushed(), pools.DefaultConfig())
		p.graph(people, min(each, people/2))
		each := min(each, people/2)
		pins := people * 500 / each
		p.deliver(pins, people, each).report(b, "empty-")
		p.deliver(pins, people, each) // now the pools are full on average
		before := must.Get(memory.Held())(b)
		p.deliver(pins, people, each).report(b, "full-")
		b.ReportMetric(must.Get(memory.Held())(b).Resident-before.Resident, "MB-more")
		bare := p.openBare(500)
		bare.step(pins*each).report(b, "bare-empty-")
		bare.step(pins * each)
		bare.step(pins*each).report(b, "bare-full-")
	}
	b.ReportMetric(0, "ns/op")
}

// BenchmarkFeedGiant has one author with a million followers. It measures how long a pin takes to reach all, and the
// latency of other authors' pins during and before that time. During the few seconds of one pin, a 99th percentile covers
// only a handful of others. Therefore the benchmark repeats this for five pins, and reports the median and the worst.
func BenchmarkFeedGiant(b *testing.B) {
	followers := int(1_000_000 * scale(b))
	const rounds, others, each, giant = 5, 200, 20, "user:giant"
	for range b.N {
		p := newPipeline(b, pushed(), pools.DefaultConfig())
		for n := range followers {
			p.follow(user(n), giant)
		}
		for n := range others {
			for i := range each {
				p.follow(user(n*each+i), schemas.UserID(fmt.Sprintf("user:other-%d", n)))
			}
		}
		must.OK(b, p.publisher.Flush(b.Context()))
		p.wait()
		var all measured
		var quiet, loud []time.Duration // 99th percentiles
		for range rounds {
			quiet = append(quiet, percentile(p.probe(3*time.Second), 99))
			var one measured
			during := p.probeDuring(func() {
				one = p.measure(followers, func() {
					p.publish(giant)
					must.OK(b, p.publisher.Flush(b.Context()))
					p.wait() // for pins of others that were published in the meantime
				})
			})
			all.add(one)
			loud = append(loud, percentile(during, 99))
			b.Logf("%.0f deliveries/s; p99 of %d others' %s, %s before", one.rate(), len(during), loud[len(loud)-1], quiet[len(quiet)-1])
		}
		all.report(b, "")
		b.ReportMetric(millis(percentile(quiet, 50)), "quiet-p99-ms")
		b.ReportMetric(millis(percentile(loud, 50)), "others-p99-ms")
		b.ReportMetric(millis(slices.Max(loud)), "worst-others-p99-ms")
		b.ReportMetric(must.Get(memory.Held())(b).Resident, "MB")
	}
	b.ReportMetric(0, "ns/op")
}

// probe publishes pins of small authors for some time and returns how long each took to reach a follower's pool.
func (p *pipeline) probe(d time.Duration) []time.Duration {
	return p.probeDuring(func() { time.Sleep(d) })
}

// probeDuring is probe while work runs.
func (p *pipeline) probeDuring(work func()) []time.Duration {
	done := make(chan struct{})
	var mu sync.Mutex
	var all []time.Duration
	var probes sync.WaitGroup
	probes.Go(func() {
		tick := time.NewTicker(5 * time.Millisecond) // 200 pins per second
		defer tick.Stop()
		for n := 0; ; n++ {
			select {
			case <-done:
				return
			case <-tick.C:
			}
			n := n % 200
			began := time.Now()
			pin := p.publish(schemas.UserID(fmt.Sprintf("user:other-%d", n)))
			probes.Go(func() {
				p.awaitTop(user(n*20), pin)
				mu.Lock()
				defer mu.Unlock()
				all = append(all, time.Since(began))
			})
		}
	})
	work()
	close(done)
	probes.Wait()
	return all
}

// percentile returns the n-th percentile.
func percentile(all []time.Duration, n int) time.Duration {
	if len(all) == 0 {
		return 0
	}
	slices.Sort(all)
	return all[min(len(all)-1, len(all)*n/100)]
}

// bareTable is the changelog topic of the bare loop.
const bareTable = "bare-table"

// bare is the lower bound of the cost: a loop that reads the same publications, finds the followers in a Pebble store, and
// writes a row for each to a topic, in transactions, and to another store. It has no owners, no checks and no trims.
func (p *pipeline) bare() measured { return p.openBare(math.MaxInt).step(p.pins * p.each) }

// openBare prepares the bare loop. It deletes the oldest row of a follower with more than most rows.
func (p *pipeline) openBare(most int) *bareLoop {
	b := p.b
	created := must.Get(p.Admin().CreateTopics(b.Context(), partitions, 1, nil, bareTable))(b)
	must.OK(b, created.Error())
	db := must.Get(pebble.Open(b.TempDir(), &pebble.Options{MemTableSize: 64 << 20, DisableWAL: true, Logger: silent{}}))(b)
	b.Cleanup(func() { must.OK(b, db.Close()) })
	p.loadEdges(db)
	consumer := p.Client(kgo.ConsumeTopics(topics.Publications))
	producer, err := p.Kafka.Transactional("bare", kgo.ManualFlushing(), kgo.MaxBufferedBytes(0), kgo.RecordPartitioner(kgo.ManualPartitioner()))
	must.OK(b, err)
	b.Cleanup(producer.Close)
	return &bareLoop{pipeline: p, consumer: consumer, producer: producer, db: db, most: most, rows: map[string][][]byte{}}
}

// silent is a logger for Pebble that discards messages.
type silent struct{}

func (silent) Infof(string, ...any)  {}
func (silent) Errorf(string, ...any) {}
func (silent) Fatalf(string, ...any) {}

func (p *pipeline) loadEdges(db *pebble.DB) {
	batch := db.NewBatch()
	for follower, followees := range p.edges {
		for _, followee := range followees {
			must.OK(p.b, batch.Set([]byte(string(user(int(followee)))+"\x00"+string(user(follower))), nil, nil))
		}
	}
	must.OK(p.b, batch.Commit(pebble.NoSync))
}

type bareLoop struct {
	*pipeline
	consumer, producer *kgo.Client
	db                 *pebble.DB
	delivered          int
	most               int
	rows               map[string][][]byte // rows of a follower, oldest first, if most is set
}

// step measures a number of further deliveries.
func (l *bareLoop) step(deliveries int) measured {
	until := l.delivered + deliveries
	return l.measure(deliveries, func() {
		for l.delivered < until {
			must.OK(l.b, l.transaction(l.b.Context(), l.consumer.PollRecords(l.b.Context(), 300)))
		}
	})
}

func (l *bareLoop) transaction(ctx context.Context, fetches kgo.Fetches) error {
	if err := l.producer.BeginTransaction(); err != nil {
		return err
	}
	batch, before := l.db.NewBatch(), l.delivered
	defer batch.Close()
	for _, r := range fetches.Records() {
		pub, err := l.Streams.Publications.Decode(r.Value)
		if err != nil {
			return err
		}
		if err := l.fanOut(ctx, batch, pub); err != nil {
			return err
		}
	}
	if err := l.producer.Flush(ctx); err != nil {
		return err
	}
	var of []string
	if l.delivered > before {
		of = append(of, bareTable)
	}
	return errors.Join(topics.EndTransaction(ctx, l.producer, kgo.TryCommit, of...), batch.Commit(pebble.NoSync))
}

func (l *bareLoop) fanOut(ctx context.Context, batch *pebble.Batch, pub *schemas.Publication) error {
	value := ranked.AppendBody(nil, &schemas.PinContent{Facets: pub.Facets, Created: pub.Created})
	row := ranked.AppendScore([]byte("\x00cfollowing\x00"), float64(pub.Created)/8.64e10)
	row = ranked.AppendVersion(append(append(row, pub.Pin...), 0), pub.Version)
	head := []byte(string(pub.Followee) + "\x00")
	it, err := l.db.NewIter(&pebble.IterOptions{LowerBound: head, UpperBound: []byte(string(pub.Followee) + "\x01")})
	if err != nil {
		return err
	}
	for it.First(); it.Valid(); it.Next() {
		follower := it.Key()[len(head):]
		key := append(append(make([]byte, 0, len(follower)+len(row)), follower...), row...)
		l.produce(ctx, follower, key, value)
		if err := errors.Join(batch.Set(key, value, nil), l.trim(ctx, batch, follower, key)); err != nil {
			return err
		}
		l.delivered++
	}
	return it.Close()
}

func (l *bareLoop) produce(ctx context.Context, follower, key, value []byte) {
	l.producer.Produce(ctx, &kgo.Record{Topic: bareTable, Partition: topics.PartitionBytes(follower, partitions), Key: key, Value: value}, nil)
}

// trim adds key to the rows of a follower, and deletes the oldest row if there are too many. It reads nothing from the store,
// because the loop has the keys in memory.
func (l *bareLoop) trim(ctx context.Context, batch *pebble.Batch, follower, key []byte) error {
	if l.most == math.MaxInt {
		return nil
	}
	all := append(l.rows[string(follower)], key)
	if len(all) <= l.most {
		l.rows[string(follower)] = all
		return nil
	}
	l.rows[string(follower)] = all[1:]
	l.produce(ctx, follower, all[0], nil)
	return batch.Delete(all[0], nil)
}
