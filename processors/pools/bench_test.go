package pools_test

import (
	"fmt"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/smartfeed/smartfeed/internal/testkit/deletedtest"
	"github.com/smartfeed/smartfeed/internal/testkit/expect"
	"github.com/smartfeed/smartfeed/internal/testkit/must"
	"github.com/smartfeed/smartfeed/internal/testkit/proctest"
	"github.com/smartfeed/smartfeed/processors/pools"
	"github.com/smartfeed/smartfeed/processors/pools/generator"
	"github.com/smartfeed/smartfeed/processors/rows"
	"github.com/smartfeed/smartfeed/schemas"
	"github.com/smartfeed/smartfeed/topics"
)

// BenchmarkDeliveries delivers pins to a few users at a time, after each user was offered a given number of pins that all
// entered the pool. The cost of a delivery must not grow with that number. The CPU time is that of the entire process,
// including the embedded broker.
func BenchmarkDeliveries(b *testing.B) {
	for _, before := range []int{1_000, 100_000, 1_000_000} {
		b.Run(fmt.Sprintf("after=%d", before), func(b *testing.B) {
			w := proctest.NewOf(b, 1)
			w.Start("a", pools.Group(pools.DefaultConfig(), w.Streams, deletedtest.Of()))
			users := make([]schemas.UserID, 4)
			for i := range users {
				users[i] = schemas.UserID(fmt.Sprintf("user:%d", i))
				proctest.Publish(w, w.Streams.Edges, string(users[i]),
					&schemas.Edge{User: users[i], Other: "user:a", Kind: schemas.FollowEdge, Live: true, Time: 1})
			}
			offer(w, users, 0, before)
			w.WaitIdle()
			const records = 50_000
			b.ResetTimer()
			for range b.N {
				start := cpu(b)
				offer(w, users, before, records)
				w.WaitIdle()
				b.ReportMetric((cpu(b)-start).Seconds()*1e6/records/float64(len(users)), "cpu-µs/delivery")
				before += records
			}
			b.ReportMetric(b.Elapsed().Seconds()*1e6/float64(b.N)/records/float64(len(users)), "µs/delivery")
		})
	}
}

// offer delivers n pins, each newer than the ones before.
func offer(w *proctest.Wire, users []schemas.UserID, from, n int) {
	const batch = 500
	for n > 0 {
		var list []*schemas.Delivery
		for range min(n, batch) {
			p := pin(from, schemas.Micros(from), "user:a")
			p.Board = "board:about-the-usual-length"
			p.Interests = []schemas.InterestID{"interest:1", "interest:22", "interest:333", "interest:4444"}
			list = append(list, &schemas.Delivery{Source: schemas.Following, Pins: []schemas.DeliveredPin{p}, Users: users})
			from++
		}
		proctest.PublishTo(w, w.Streams.Deliveries, 0, "user:a", time.Time{}, list...)
		n -= len(list)
	}
}

// cpu returns the CPU time that the process has used.
func cpu(b *testing.B) time.Duration {
	var u syscall.Rusage
	must.OK(b, syscall.Getrusage(syscall.RUSAGE_SELF, &u))
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// BenchmarkChunk requests chunks of 25 items with all rules of the feed home. Each user has three pools of 500, affinities
// for fifty facets, hot pins and a history. One variant makes requests one after the other. The other starts a thousand
// requests a second on schedule, regardless of the latency of earlier ones. Both report the latency of a chunk.
func BenchmarkChunk(b *testing.B) {
	r := newChunkBench(b, 100)
	b.Run("sequential", func(b *testing.B) {
		b.ReportAllocs()
		start := cpu(b)
		took := make([]time.Duration, b.N)
		for i := range b.N {
			took[i] = r.chunk(b, i)
		}
		b.ReportMetric((cpu(b)-start).Seconds()*1e6/float64(b.N), "cpu-µs/op")
		reportQuantiles(b, took)
	})
	b.Run("1000 per second", func(b *testing.B) {
		const rate = 1000
		took := make([]time.Duration, b.N)
		var chunks sync.WaitGroup
		start := time.Now()
		for i := range b.N {
			due := start.Add(time.Duration(i) * time.Second / rate)
			time.Sleep(time.Until(due))
			chunks.Go(func() {
				r.chunk(b, i)
				took[i] = time.Since(due)
			})
		}
		chunks.Wait()
		b.ReportMetric(float64(b.N)/time.Since(start).Seconds(), "chunks/s")
		reportQuantiles(b, took)
	})
}

// BenchmarkWaiting counts the pins that a visit could show to the same users, as a stream of new items does every few
// seconds.
func BenchmarkWaiting(b *testing.B) {
	r := newChunkBench(b, 100)
	b.ReportAllocs()
	start := cpu(b)
	for i := 0; b.Loop(); i++ {
		if n, err := r.generator.Waiting(b.Context(), r.users[i%len(r.users)]); err != nil || n != generator.MaxWaiting {
			b.Fatalf("%d waiting, %v", n, err)
		}
	}
	b.ReportMetric((cpu(b)-start).Seconds()*1e6/float64(b.N), "cpu-µs/op")
}

func reportQuantiles(b *testing.B, took []time.Duration) {
	slices.Sort(took)
	at := func(q float64) float64 { return took[int(q*float64(len(took)-1))].Seconds() * 1e3 }
	b.ReportMetric(at(0.5), "p50-ms")
	b.ReportMetric(at(0.99), "p99-ms")
	b.ReportMetric(0, "ns/op")
}

// chunkBench is a generator over the rows of some users.
type chunkBench struct {
	generator *generator.Generator
	users     []schemas.UserID
}

func newChunkBench(b *testing.B, users int) *chunkBench {
	w := proctest.NewOf(b, 4)
	own := func(c *rows.Config) {
		c.BlockCacheBytes, c.MemTableBytes = rows.DefaultConfig().BlockCacheBytes, 64<<20
		c.SessionTimeout = time.Minute // a busy machine does not lose its membership
	}
	member := w.StartWith("a", own, pools.Group(pools.DefaultConfig(), w.Streams, deletedtest.Of()))
	log := must.Get(topics.NewLog(w.Kafka))(b)
	b.Cleanup(log.Close)
	r := &chunkBench{}
	byPartition := make([][]schemas.UserID, w.Kafka.Partitions)
	for i := range users {
		user := schemas.UserID(fmt.Sprintf("user:reader-%d", i))
		r.users = append(r.users, user)
		partition := topics.Partition(string(user), w.Kafka.Partitions)
		byPartition[partition] = append(byPartition[partition], user)
		publishUser(w, user)
	}
	for partition, users := range byPartition {
		for _, source := range []schemas.Source{schemas.Following, schemas.FromInterest, schemas.Related} {
			proctest.PublishTo(w, w.Streams.Deliveries, int32(partition), "user:a", time.Time{}, benchDeliveries(source, users)...)
		}
	}
	w.WaitIdle()
	r.generator = must.Get(generator.New(pools.DefaultConfig(), generator.DefaultConfig(), generator.Deps{
		Rows: member.View(topics.Pools), End: generator.DataEnd{Log: log}, Streams: w.Streams, Deleted: deletedtest.Of(), Hot: benchHot(),
	}))(b)
	for i := range r.users {
		r.chunk(b, i) // warm up: each partition has answered once
	}
	return r
}

// The pins of the benchmark have 100 authors, 50 boards and 40 interests. A user follows some of them and has
// affinities for some.
func benchPin(source schemas.Source, i int) schemas.DeliveredPin {
	p := pin(i, schemas.Micros(1e15+i), schemas.UserID(fmt.Sprintf("user:author-%d", i%100)))
	p.Pin = schemas.PinID(fmt.Sprintf("pin:%s-%d", source, i))
	p.BaseScore = schemas.BaseScore(float64(i) / 100)
	p.Board = schemas.BoardID(fmt.Sprintf("board:%d", i%50))
	for n := range 3 {
		p.Interests = append(p.Interests, schemas.InterestID(fmt.Sprintf("interest:%d", (i+n)%40)))
	}
	return p
}

func benchDeliveries(source schemas.Source, users []schemas.UserID) []*schemas.Delivery {
	var list []*schemas.Delivery
	for i := range 525 { // 25 of them have been shown
		list = append(list, &schemas.Delivery{Source: source, Pins: []schemas.DeliveredPin{benchPin(source, i)}, Users: users})
	}
	return list
}

// publishUser gives a user edges, affinities, and a history of 200 pins, some of which are still in the pools.
func publishUser(w *proctest.Wire, user schemas.UserID) {
	affinities := &schemas.Affinities{User: user, Time: 1}
	for i := range 100 {
		author := schemas.ID(fmt.Sprintf("user:author-%d", i))
		proctest.Publish(w, w.Streams.Edges, string(user), &schemas.Edge{User: user, Other: author, Kind: schemas.FollowEdge, Live: true, Time: 1})
		if i < 50 {
			affinities.Top = append(affinities.Top, schemas.Affinity{Facet: author, Value: float64(50 - i)})
		}
	}
	for i := range 40 {
		interest := schemas.ID(fmt.Sprintf("interest:%d", i))
		proctest.Publish(w, w.Streams.Edges, string(user), &schemas.Edge{User: user, Other: interest, Kind: schemas.FollowEdge, Live: true, Time: 1})
	}
	proctest.Publish(w, w.Streams.Affinities, string(user), affinities)
	served := &schemas.Served{ID: "history", User: user}
	for i := range 200 {
		p := benchPin(schemas.Following, i*3)
		served.Items = append(served.Items, schemas.ServedItem{Pin: p.Pin, Source: schemas.Following, Facets: p.Facets, Created: p.Created})
	}
	proctest.Publish(w, w.Streams.Served, string(user), served)
}

// benchHot returns counts for every second pin.
func benchHot() *generator.Hot {
	known := make(chan struct{})
	close(known)
	hot := generator.NewHot(known)
	for _, source := range []schemas.Source{schemas.Following, schemas.FromInterest, schemas.Related} {
		for i := 0; i < 525; i += 2 {
			p := benchPin(source, i)
			hot.Change("", nil, &schemas.HotPin{Pin: p.Pin, Author: p.Author, Impressions: int64(i), Saves: int64(i / 20)})
		}
	}
	return hot
}

// chunk requests a chunk and reports that it was not shown.
func (r *chunkBench) chunk(b *testing.B, i int) time.Duration {
	user, id := r.users[i%len(r.users)], fmt.Sprintf("visit-%d", i)
	start := time.Now()
	c, err := r.generator.Chunk(b.Context(), schemas.ChunkRequest{
		Served: id, User: user, Feed: "home", Limit: 25, Time: schemas.MicrosOf(start),
	})
	took := time.Since(start)
	if err != nil {
		b.Error(err)
		return took
	}
	expect.Equal(b, len(c.Served.Items), 25, "items")
	expect.Empty(b, c.Degraded, "reasons of the degradation")
	r.generator.Settle(user, id, schemas.Failed)
	return took
}
