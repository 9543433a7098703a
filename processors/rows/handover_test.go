package rows

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/IBM/sarama"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// standbyConfig has members keep copies of what others own.
func standbyRunner(t *testing.T, w *wire, dir string) *Runner {
	t.Helper()
	cfg := w.config(dir)
	cfg.Standby = true
	r, err := New(cfg, w.env(t), w.counter("t-in"))
	must(t, err)
	return r
}

// Whatever a table ends with, an owner and a standby recover, and soon.
func TestRecoveryWhateverTheTableEndsWith(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		end  func(t *testing.T, w *wire)
	}{
		{"commit marker", func(*testing.T, *wire) {}},
		{"abort marker", func(t *testing.T, w *wire) { w.tableTransaction(t, "another", kgo.TryAbort) }},
		{"open transaction of the former owner", func(t *testing.T, w *wire) {
			for p := range testPartitions {
				w.leaveOpen(t, "t-"+string(rune('0'+p)), int32(p))
			}
		}},
		{"plain record", func(t *testing.T, w *wire) {
			for p := range int32(testPartitions) {
				must(t, w.client.ProduceSync(t.Context(), &kgo.Record{Topic: "t-table", Partition: p, Key: reservedKey(fenceKind), Value: []byte{}}).FirstErr())
			}
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			w := newWire(t)
			const n = 100
			r := newRunner(t, w, t.TempDir(), w.counter("t-in"))
			stop := start(t, r)
			w.send(t, "t-in", 0, n, user)
			eventually(t, "all are applied", func() bool { return r.Status().Counters.Records == n })
			must(t, stop())
			c.end(t, w)

			began := time.Now()
			a, b := standbyRunner(t, w, t.TempDir()), standbyRunner(t, w, t.TempDir())
			stopA := start(t, a)
			eventually(t, "the owner is ready", func() bool { return a.Status().Ready })
			if took := time.Since(began); took > 5*time.Second {
				t.Errorf("the owner took %v to recover", took)
			}
			for i := range n {
				if got := count(t, a, user(i)); got != 1 {
					t.Fatalf("%s is counted %d times after recovery, want once", user(i), got)
				}
			}
			stopB := start(t, b)
			eventually(t, "both are ready, with standbys", func() bool {
				return stages(a, RunningNow) == 2 && stages(a, Following) == 2 && stages(b, RunningNow) == 2 && stages(b, Following) == 2
			})
			must(t, stopA())
			must(t, stopB())
		})
	}
}

// Goka is done recovering when the record just before the end arrives; after a transaction that is a marker.
func TestTableConsumerHandsOnMarkers(t *testing.T) {
	t.Parallel()
	for _, end := range []kgo.TransactionEndTry{kgo.TryCommit, kgo.TryAbort} {
		w := newWire(t)
		w.tableTransaction(t, "another", end)
		consumer := newTableConsumer(w.kafka)
		reading, err := consumer.ConsumePartition("t-table", 1, sarama.OffsetOldest)
		must(t, err)
		rows, last := 0, int64(-1)
		for last < 1 { // a row at 0, a marker at 1
			select {
			case m := <-reading.Messages():
				last = m.Offset
				if !isLocal(string(m.Key)) {
					rows++
				} else if m.Value != nil {
					t.Errorf("the marker is handed on as a row: %q", m.Value)
				}
			case <-time.After(10 * time.Second):
				t.Fatalf("end %v: nothing after offset %d", end, last)
			}
		}
		if want := map[kgo.TransactionEndTry]int{kgo.TryCommit: 1, kgo.TryAbort: 0}[end]; rows != want {
			t.Errorf("end %v: %d rows, want %d", end, rows, want)
		}
		if got := reading.HighWaterMarkOffset(); got != 2 {
			t.Errorf("end %v: high watermark %d, want 2", end, got)
		}
		reading.AsyncClose()
		for range reading.Messages() {
			t.Error("a message after the last")
		}
		must(t, consumer.Close())
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
	client, err := w.kafka.Transactional(id)
	must(t, err)
	defer client.Close()
	must(t, client.BeginTransaction())
	for p := range int32(testPartitions) {
		must(t, client.ProduceSync(t.Context(), strayRow(p)).FirstErr())
	}
	must(t, client.EndTransaction(t.Context(), end))
}

// leaveOpen leaves a transaction open as an owner that dies does.
func (w *wire) leaveOpen(t *testing.T, id string, partition int32) {
	t.Helper()
	client, err := w.kafka.Transactional(id)
	must(t, err)
	must(t, client.BeginTransaction())
	must(t, client.ProduceSync(t.Context(), strayRow(partition)).FirstErr())
	client.Close()
}

func strayRow(partition int32) *kgo.Record {
	return &kgo.Record{Topic: "t-table", Partition: partition, Key: []byte("user:1\x00n"), Value: []byte("stray, and not committed")}
}

// A standby must never fence the owner.
func TestStandbyTakesNoProducerID(t *testing.T) {
	t.Parallel()
	w := newWire(t)
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
	start(t, a)
	start(t, b)
	eventually(t, "both have two and follow two", func() bool {
		return stages(a, RunningNow) == 2 && stages(a, Following) == 2 && stages(b, RunningNow) == 2 && stages(b, Following) == 2
	})
	const n = 400
	w.send(t, "t-in", 0, n, user)
	eventually(t, "all are applied", func() bool {
		return a.Status().Counters.Records+b.Status().Counters.Records == n
	})
	w.emittedOnce(t, n)
	mu.Lock()
	defer mu.Unlock()
	if taken := int(a.owned.Load() + b.owned.Load()); inits > taken {
		t.Errorf("%d producer ids for %d times that a partition was taken", inits, taken)
	}
	if got := a.Status().Starts + b.Status().Starts; got != 2 {
		t.Errorf("%d starts, want 2: somebody was fenced", got)
	}
}

// Goka sleeps five seconds after each session, in which nothing is worked off.
func TestJoiningAndLeavingTakeNoFiveSeconds(t *testing.T) {
	t.Parallel()
	w := newWire(t)
	member := func() *Runner {
		cfg := w.config(t.TempDir())
		cfg.SessionTimeout = 10 * time.Second
		r, err := New(cfg, w.env(t), w.counter("t-in"))
		must(t, err)
		return r
	}
	a, b := member(), member()
	start(t, a)
	eventually(t, "the first has all", func() bool { return stages(a, RunningNow) == testPartitions })
	began := time.Now()
	stopB := start(t, b)
	eventually(t, "the second has its share", func() bool { return stages(a, RunningNow) == 2 && stages(b, RunningNow) == 2 })
	joined := time.Since(began)
	began = time.Now()
	must(t, stopB())
	eventually(t, "the first has all again", func() bool { return stages(a, RunningNow) == testPartitions })
	if left := time.Since(began); joined > 4*time.Second || left > 4*time.Second {
		t.Errorf("joining took %v, leaving %v", joined, left)
	}
}

// An error of the consumer group ends Run: a member must not spin in silence.
func TestGroupErrorEndsRun(t *testing.T) {
	t.Parallel()
	w := newWire(t)
	r := newRunner(t, w, t.TempDir(), w.counter("t-in"))
	w.Broker().ControlKey(int16(kmsg.JoinGroup), func(req kmsg.Request) (kmsg.Response, error, bool) {
		w.Broker().KeepControl()
		resp := req.ResponseKind().(*kmsg.JoinGroupResponse)
		resp.ErrorCode = 30 // GROUP_AUTHORIZATION_FAILED
		return resp, nil, true
	})
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	if err := r.Run(ctx); err == nil || ctx.Err() != nil {
		t.Errorf("Run: %v, %v; want the group's error", err, ctx.Err())
	}
}

// An abandoned run leaves what a crash leaves; the next goes on from there.
func TestAbandonedRunLosesAndDoublesNothing(t *testing.T) {
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
		eventually(t, "some are applied", func() bool { return r.Status().Counters.Commits >= 3 || w.committed(t, "t-in") == n })
		cancel(ErrAbandoned)
		<-done
	}
	r := newRunner(t, w, dir, w.counter("t-in"))
	runUntilDone(t, w, r, n)
	w.emittedOnce(t, n)
	w.countedOnce(t, n)
	w.storesEqualLog(t, dir)
}
