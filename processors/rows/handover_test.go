package rows

import (
	"context"
	"errors"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/IBM/sarama"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/smartfeed/smartfeed/internal/testkit/eventually"
	"github.com/smartfeed/smartfeed/internal/testkit/expect"
	"github.com/smartfeed/smartfeed/internal/testkit/must"
	"github.com/smartfeed/smartfeed/topics"
)

// standbyRunner returns a runner that keeps copies of partitions that others own.
func standbyRunner(t *testing.T, w *wire, dir string) *Runner {
	t.Helper()
	cfg := w.config(dir)
	cfg.Standby = true
	return must.Get(New(cfg, w.env(t), w.counter("t-in")))(t)
}

// An owner and a standby recover quickly from every possible end of the table.
func TestRecovery_EndsAfterAnyLastRecord(t *testing.T) {
	t.Parallel()
	for _, c := range tableEnds {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			w := newWire(t)
			w.recoversFrom(t, func() { c.end(t, w) })
		})
	}
	t.Run("aborted records without a marker", func(t *testing.T) {
		t.Parallel()
		c := newCluster(t, 1)
		c.recoversFrom(t, func() {
			c.leaveAllOpen(t, "gone-")
			c.crash(t) // the broker aborts open transactions without writing a marker, and no client writes one
			c.wantLastRecord(t, strayValue)
		})
	})
}

// tableEnds lists the possible ends of a table on any broker.
var tableEnds = []struct {
	name string
	end  func(t *testing.T, w *wire)
	real bool // also tested on Kafka; the others occur at every restart, or with a compacted table
}{
	{"commit marker", func(*testing.T, *wire) {}, false},
	{"abort marker", func(t *testing.T, w *wire) { w.tableTransaction(t, "another", kgo.TryAbort) }, true},
	{"open transaction of the previous owner", func(t *testing.T, w *wire) { w.leaveAllOpen(t, "t-") }, true},
	{"plain record", func(t *testing.T, w *wire) { w.fenceAll(t) }, false},
}

// recoversFrom calls end, which writes the end of a group's table, and then recovers the table.
func (w *wire) recoversFrom(t *testing.T, end func()) {
	t.Helper()
	const n = 100
	w.countFirst(t, t.TempDir(), n)
	end()

	began, dirs := time.Now(), []string{t.TempDir(), t.TempDir()}
	a, b := standbyRunner(t, w, dirs[0]), standbyRunner(t, w, dirs[1])
	stopA := start(t, a)
	eventually.True(t, "the owner is ready", func() bool { return a.Status().Ready })
	expect.AtMost(t, time.Since(began), patience/4, "time until the owner recovered")
	for i := range n {
		must.Equal(t, count(t, a, user(i)), 1, "count of %s after recovery", user(i))
	}
	w.send(t, "t-in", n, testPartitions, func(i int) string { return ownerIn(int32(i - n)) })
	eventually.True(t, "the table ends with markers again", func() bool { return a.Status().Counters.Records == testPartitions })
	stopB := start(t, b)
	eventually.True(t, "both are ready, with standbys", func() bool {
		return stages(a, StageRunning) == 2 && stages(a, StageStandby) == 2 && stages(b, StageRunning) == 2 && stages(b, StageStandby) == 2
	})
	must.OK(t, stopA())
	must.OK(t, stopB())
	expect.Equal(t, w.storesEqualLog(t, dirs...), 2*testPartitions, "stores: an owner's and a standby's of each partition")
}

// fenceAll writes the fence record of a new owner to each partition of the table.
func (w *wire) fenceAll(t *testing.T) {
	t.Helper()
	for p := range int32(testPartitions) {
		r := &kgo.Record{Topic: "t-table", Partition: p, Key: reservedKey(fenceKind), Value: []byte{}}
		must.OK(t, w.client.ProduceSync(t.Context(), r).FirstErr())
	}
}

// leaveAllOpen leaves a transaction open in every partition of the table, like an owner that crashes.
func (w *wire) leaveAllOpen(t *testing.T, prefix string) {
	for p := range testPartitions {
		w.leaveOpen(t, prefix+string(rune('0'+p)), int32(p))
	}
}

// crash restarts the brokers on their ports, with the files that a kill would leave at this moment.
func (c *cluster) crash(t *testing.T) {
	t.Helper()
	left := t.TempDir()
	must.OK(t, os.CopyFS(left, os.DirFS(c.dir)))
	var ports []int
	for _, addr := range c.brokers.ListenAddrs() {
		_, port, _ := strings.Cut(addr, ":")
		ports = append(ports, must.Get(strconv.Atoi(port))(t))
	}
	c.brokers.Close()
	c.dir = left
	c.open(t, kfake.Ports(ports...))
}

// wantLastRecord fails the test unless each partition of the table ends with a record of the value.
func (c *cluster) wantLastRecord(t *testing.T, value string) {
	t.Helper()
	ends := must.Get(c.admin.ListEndOffsets(t.Context(), "t-table"))(t)
	from := map[int32]kgo.Offset{}
	ends.Each(func(o kadm.ListedOffset) { from[o.Partition] = kgo.NewOffset().At(o.Offset - 1) })
	client := must.Get(c.Kafka.Client(kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{"t-table": from}),
		kgo.FetchIsolationLevel(kgo.ReadUncommitted()), kgo.KeepControlRecords()))(t)
	defer client.Close()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for len(from) > 0 {
		fetches := client.PollFetches(ctx)
		must.OK(t, fetches.Err())
		fetches.EachRecord(func(r *kgo.Record) {
			delete(from, r.Partition)
			if r.Attrs.IsControl() || string(r.Value) != value {
				t.Errorf("partition %d ends with %q, control record %v", r.Partition, r.Value, r.Attrs.IsControl())
			}
		})
	}
}

// Goka's recovery ends with the record just before the end of the table, which is a marker after a transaction.
func TestTableConsumer_DeliversMarkers(t *testing.T) {
	t.Parallel()
	for _, end := range []kgo.TransactionEndTry{kgo.TryCommit, kgo.TryAbort} {
		w := newWire(t)
		w.tableTransaction(t, "another", end)
		consumer := newTableConsumer(w.Kafka)
		reading := must.Get(consumer.ConsumePartition("t-table", 1, sarama.OffsetOldest))(t)
		rows, last := 0, int64(-1)
		for last < 1 { // a row at 0, a marker at 1
			select {
			case m := <-reading.Messages():
				last = m.Offset
				if !isLocal(string(m.Key)) {
					rows++
				} else if m.Value != nil {
					t.Errorf("the marker is delivered as a row: %q", m.Value)
				}
			case <-time.After(patience):
				t.Fatalf("end %v: nothing after offset %d", end, last)
			}
		}
		expect.Equal(t, rows, map[kgo.TransactionEndTry]int{kgo.TryCommit: 1, kgo.TryAbort: 0}[end], "end %v: rows", end)
		expect.Equal(t, consumer.end(1), 2, "end %v: high watermark", end)
		reading.AsyncClose()
		for range reading.Messages() {
			t.Error("a message after the last one")
		}
		must.OK(t, consumer.Close())
	}
}

func stages(r *Runner, s Stage) int {
	n := 0
	for _, p := range r.Status().Partitions {
		if p.Stage == s {
			n++
		}
	}
	return n
}

// tableTransaction writes a row to each partition of the table in a transaction of another producer.
func (w *wire) tableTransaction(t *testing.T, id string, end kgo.TransactionEndTry) {
	t.Helper()
	client := must.Get(w.Kafka.Transactional(id))(t)
	defer client.Close()
	must.OK(t, client.BeginTransaction())
	for p := range int32(testPartitions) {
		must.OK(t, client.ProduceSync(t.Context(), strayRow(p)).FirstErr())
	}
	must.OK(t, topics.EndTransaction(t.Context(), client, end, strayRow(0).Topic))
}

// leaveOpen leaves a transaction open, like an owner that crashes.
func (w *wire) leaveOpen(t *testing.T, id string, partition int32) {
	t.Helper()
	client := must.Get(w.Kafka.Transactional(id))(t)
	must.OK(t, client.BeginTransaction())
	must.OK(t, client.ProduceSync(t.Context(), strayRow(partition)).FirstErr())
	client.Close()
}

func strayRow(partition int32) *kgo.Record {
	return &kgo.Record{Topic: "t-table", Partition: partition, Key: []byte("user:1\x00n"), Value: []byte(strayValue)}
}

const strayValue = "stray, and not committed"

// A standby must never fence the owner.
func TestStandby_InitializesNoProducerID(t *testing.T) {
	w := parallelWire(t)
	var mu sync.Mutex
	inits := 0
	w.Broker().ControlKey(int16(kmsg.InitProducerID), func(req kmsg.Request) (kmsg.Response, error, bool) {
		w.Broker().KeepControl()
		if id := req.(*kmsg.InitProducerIDRequest).TransactionalID; id != nil && strings.HasPrefix(*id, "t-") {
			mu.Lock()
			inits++
			mu.Unlock()
		}
		return nil, nil, false
	})
	a, b := standbyRunner(t, w, t.TempDir()), standbyRunner(t, w, t.TempDir())
	stopA, stopB := start(t, a), start(t, b)
	eventually.True(t, "both own two partitions and follow two", func() bool {
		return stages(a, StageRunning) == 2 && stages(a, StageStandby) == 2 && stages(b, StageRunning) == 2 && stages(b, StageStandby) == 2
	})
	const n = 400
	w.send(t, "t-in", 0, n, user)
	eventually.True(t, "all are applied", func() bool {
		return a.Status().Counters.Records+b.Status().Counters.Records == n
	})
	w.emittedOnce(t, n)
	mu.Lock()
	expect.AtMost(t, inits, int(a.owned.Load()+b.owned.Load()), "producer ids: one for each acquired partition")
	mu.Unlock()
	must.OK(t, stopA()) // Run returns an error if another process has fenced it
	must.OK(t, stopB())
}

// Without rejoiningGroup, Goka sleeps for five seconds after each session and processes nothing. A slow machine may take as long
// for other reasons, but not in each attempt.
func TestGroup_JoinAndLeaveTakeLessThanFiveSeconds(t *testing.T) {
	t.Parallel()
	joiningAndLeaving(t, newWire(t))
}

func joiningAndLeaving(t *testing.T, w *wire) {
	member := func() *Runner {
		return newRunner(t, w, t.TempDir(), w.counter("t-in"))
	}
	a := member()
	start(t, a)
	eventually.True(t, "the first owns all partitions", func() bool { return stages(a, StageRunning) == testPartitions })
	joined, left := time.Hour, time.Hour
	for try := 0; try < 5 && max(joined, left) > 4*time.Second; try++ {
		b, began := member(), time.Now()
		stopB := start(t, b)
		eventually.True(t, "each owns two partitions", func() bool { return stages(a, StageRunning) == 2 && stages(b, StageRunning) == 2 })
		joined = min(joined, time.Since(began))
		began = time.Now()
		must.OK(t, stopB())
		eventually.True(t, "the first owns all partitions again", func() bool { return stages(a, StageRunning) == testPartitions })
		left = min(left, time.Since(began))
	}
	expect.AtMost(t, max(joined, left), 4*time.Second, "durations of joining and leaving")
	t.Logf("joining took %v, leaving %v", joined, left)
}

// An error of the consumer group ends Run: a member must not retry forever without reporting it.
func TestRun_ReturnsGroupError(t *testing.T) {
	w := parallelWire(t)
	r := newRunner(t, w, t.TempDir(), w.counter("t-in"))
	w.Broker().ControlKey(int16(kmsg.JoinGroup), func(req kmsg.Request) (kmsg.Response, error, bool) {
		w.Broker().KeepControl()
		resp := req.ResponseKind().(*kmsg.JoinGroupResponse)
		resp.ErrorCode = 30 // GROUP_AUTHORIZATION_FAILED
		return resp, nil, true
	})
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if err := r.Run(ctx); err == nil || ctx.Err() != nil {
		t.Errorf("Run: %v, %v; want the error of the consumer group", err, ctx.Err())
	}
}

// An abandoned Run leaves the same state as a crash, and the next Run resumes from it.
func TestRun_AbandonedProcessesRecordsOnce(t *testing.T) {
	t.Parallel()
	w, dir := newWire(t), t.TempDir()
	const n = 4000
	for i := range n {
		w.client.Produce(t.Context(), w.record(t, "t-in", user(i), i), nil)
	}
	for round := int64(1); round <= 4; round++ {
		r := newRunner(t, w, dir, w.counter("t-in"))
		ctx, cancel := context.WithCancelCause(t.Context())
		done := make(chan error, 1)
		go func() { done <- r.Run(ctx) }()
		eventually.True(t, "some records are applied", func() bool { return r.Status().Counters.Commits >= 3 || w.Committed("t", "t-in") == n })
		cancel(ErrAbandoned)
		<-done
	}
	r := newRunner(t, w, dir, w.counter("t-in"))
	runUntilDone(t, w, r, n)
	w.emittedOnce(t, n)
	w.countedOnce(t, n)
	w.storesEqualLog(t, dir)
}

// A read of a table that lost records fails. A consumer that continued at the oldest record would deliver rows without the
// earlier ones.
func TestTableConsumer_FailsAtLostRecords(t *testing.T) {
	w := parallelWire(t)
	consumer := newTableConsumer(w.Kafka)
	reading, err := consumer.ConsumePartition("t-table", 1, 1000) // beyond the end of the log
	must.OK(t, err)
	w.tableTransaction(t, "another", kgo.TryCommit)
	for m := range reading.Messages() { // closed after the error
		t.Fatalf("offset %d is delivered, want an error", m.Offset)
	}
	if err := <-reading.Errors(); err == nil || !errors.Is(err.Err, kerr.OffsetOutOfRange) {
		t.Errorf("got %v, want %v", err, kerr.OffsetOutOfRange)
	}
	must.OK(t, consumer.Close())
}

func TestStaticMembers(t *testing.T) {
	t.Parallel()
	staticMembers(t, newWire(t))
}

func TestRealKafkaStaticMembers(t *testing.T) { staticMembers(t, newRealWire(t)) }

// A static member that restarts gets its partitions back without a rebalance. If it does not restart, the others get its
// partitions after the session timeout, and not before. Records in the meantime wait and are counted once.
func staticMembers(t *testing.T, w *wire) {
	const name = 2
	// Long enough that a busy machine starts a member in time, and that heartbeats of the other one arrive. Otherwise, the
	// member would rightly count as dead.
	const session = 30 * time.Second
	member := func(as, dir string) *Runner {
		env := w.env(t)
		env.Kafka.Member = as
		cfg := w.config(dir)
		cfg.SessionTimeout = session
		return must.Get(New(cfg, env, w.counter("t-in")))(t)
	}
	dirs := [name]string{t.TempDir(), t.TempDir()}
	names := [name]string{"127.0.0.1:8081", "127.0.0.1:8082"}
	var runners [name]*Runner
	var stops [name]func() error
	for i := range runners {
		runners[i] = member(names[i], dirs[i])
		stops[i] = start(t, runners[i])
	}
	shared := func() bool { return stages(runners[0], StageRunning) == 2 && stages(runners[1], StageRunning) == 2 }
	eventually.True(t, "both own partitions", shared)
	for i := range runners { // the group's leader and the other
		had, others := owned(runners[i]), runners[1-i].owned.Load()
		began := time.Now()
		must.OK(t, stops[i]())
		w.send(t, "t-in", 0, testPartitions, func(n int) string { return ownerIn(int32(n)) })
		runners[i] = member(names[i], dirs[i])
		stops[i] = start(t, runners[i])
		eventually.True(t, "the member has rejoined", shared)
		t.Logf("offline for %s", time.Since(began).Round(time.Millisecond))
		expect.Equal(t, owned(runners[i]), had, "partitions after it rejoined")
		expect.Equal(t, runners[1-i].owned.Load(), others, "partitions that the other member has acquired")
	}
	began := time.Now() // before it has stopped: the session timeout counts from its last heartbeat
	must.OK(t, stops[0]())
	eventually.True(t, "the other member owns all partitions", func() bool { return stages(runners[1], StageRunning) == testPartitions })
	t.Logf("the other member owned all partitions after %s", time.Since(began).Round(time.Millisecond))
	expect.AtLeast(t, time.Since(began), session/2, "time until the other member owned all: a static member must not leave the group")
	for p := range int32(testPartitions) {
		eventually.True(t, "each record is counted", func() bool { return count(t, runners[1], ownerIn(p)) == name })
	}
}

// owned returns which partitions a member owns.
func owned(r *Runner) (all [testPartitions]bool) {
	for _, p := range r.Status().Partitions {
		all[p.Partition] = p.Stage == StageRunning
	}
	return all
}
