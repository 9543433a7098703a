package rows

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/smartfeed/smartfeed/internal/testkit/child"
	"github.com/smartfeed/smartfeed/internal/testkit/eventually"
	"github.com/smartfeed/smartfeed/internal/testkit/expect"
	"github.com/smartfeed/smartfeed/internal/testkit/must"
	"github.com/smartfeed/smartfeed/internal/testkit/topicstest"
	"github.com/smartfeed/smartfeed/schemas"
	"github.com/smartfeed/smartfeed/topics"
)

// The torture tests run two members in separate processes, the broker in a third one, and a driver that sends numbered
// records. They kill and stop members at random moments and around the end of a transaction. Then the rows must count every
// record once, the outputs must contain each once, and each local store must equal the changelog at its offset. A round of the
// test of members kills six times and stops twice. A round of the test of brokers kills two.
//
//	ROWS_TORTURE=17 go test -run TestTorture -timeout 30m ./processors/rows      17 rounds instead of one
//
// TestRealKafkaTorture… runs the same on Kafka: make test-services, make nightly.

// Signals that take effect the next time that a member is about to end a transaction, or has ended one.
const (
	signalStop  = syscall.SIGUSR1 // stop the process inside an open transaction
	signalEarly = syscall.SIGUSR2 // exit inside an open transaction
	signalLate  = syscall.SIGHUP  // exit between the end of the transaction and the write to the local store
)

// tortureGroup counts records, puts and deletes rows, and emits each record, every other one as a gathered item.
func tortureGroup(w *wire) Group {
	gathered := Gather(w.stream("t-out"), func(list []*schemas.DeletedUser) []*schemas.DeletedUser { return list })
	return Group{Name: "t", Outputs: []string{"t-out"}, Inputs: []Input{
		Keyed(w.stream("t-in"), func(tx *Tx, rec *schemas.DeletedUser) error {
			n := uint64(increment(tx.Own()))
			tx.Own().Put(binary.BigEndian.AppendUint64([]byte("e"), n), []byte(rec.User))
			if n > 3 { // keep the newest three
				tx.Own().Delete(binary.BigEndian.AppendUint64([]byte("e"), n-3))
			}
			if rec.Time%2 == 0 {
				Send(tx, w.stream("t-out"), tx.Key(), rec)
			} else {
				gathered.Add(tx, tx.Partition(), rec, 1)
			}
			return nil
		}),
	}}
}

// playMember runs the group of the torture tests until ctx ends. The arguments are those of newMember.
func playMember(ctx context.Context, args []string) error {
	w := &wire{Cluster: &topicstest.Cluster{
		Kafka:    topics.Kafka{Brokers: strings.Split(args[0], ","), Partitions: testPartitions, Embedded: args[2] == "true"},
		Registry: args[1],
	}}
	var err error
	for w.Streams == nil {
		w.Streams, err = w.Setup().Streams(ctx)
		if err != nil && (ctx.Err() != nil || !errors.Is(err, schemas.ErrRegistryUnavailable)) {
			return err
		}
		if err != nil { // the test may have killed the registry, which runs in the process of the broker
			time.Sleep(100 * time.Millisecond)
		}
	}
	cfg := w.config(args[3])
	cfg.SessionTimeout = time.Second
	cfg.Standby = args[4] == "true"
	log := slog.New(slog.NewTextHandler(os.Stdout, &slog.HandlerOptions{Level: slog.LevelWarn}))
	r, err := New(cfg, Env{Kafka: w.Kafka, Streams: w.Streams, Log: log}, tortureGroup(w))
	if err != nil {
		return err
	}
	r.crash = crashOnSignal()
	for ctx.Err() == nil {
		if err := r.Run(ctx); err != nil {
			fmt.Println("ended:", strings.ReplaceAll(err.Error(), "\n", " "))
			time.Sleep(100 * time.Millisecond)
		}
	}
	return nil
}

func crashOnSignal() func(point) {
	ordered, continued := make(chan os.Signal, 1), make(chan os.Signal, 1)
	signal.Notify(continued, syscall.SIGCONT)
	signal.Notify(ordered, signalStop, signalEarly, signalLate)
	var next atomic.Value // os.Signal
	go func() {
		for s := range ordered {
			next.Store(s)
		}
	}()
	at := map[os.Signal]point{signalStop: beforeEnd, signalEarly: beforeEnd, signalLate: afterEnd}
	return func(where point) {
		s, _ := next.Load().(os.Signal)
		if s == nil || at[s] != where || !next.CompareAndSwap(s, syscall.SIGURG) {
			return
		}
		if s == signalStop {
			// On a busy machine, the signal stops this thread late. The transaction must not end before that.
			_ = syscall.Kill(os.Getpid(), syscall.SIGSTOP)
			<-continued
			return
		}
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		select {}
	}
}

// member is a process of the group.
type member struct {
	t    testing.TB
	dir  string
	args []string
	cmd  *child.Process
	done chan struct{}

	mu    sync.Mutex
	lines []string // its warnings, and the errors of Run
}

func newMember(t testing.TB, w *wire, standby bool) *member {
	t.Helper()
	m := &member{t: t, dir: t.TempDir()}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("output of the member in %s:\n%s", m.dir, m.output())
		}
	})
	m.args = []string{strings.Join(w.Kafka.Brokers, ","), w.Registry, strconv.FormatBool(w.Kafka.Embedded), m.dir, strconv.FormatBool(standby)}
	m.start()
	return m
}

func (m *member) start() {
	m.t.Helper()
	m.cmd, m.done = child.Start(m.t, "member", m.args...), make(chan struct{})
	cmd, done := m.cmd, m.done
	go func() {
		defer close(done)
		for cmd.Output.Scan() {
			m.mu.Lock()
			m.lines = append(m.lines, cmd.Output.Text())
			m.mu.Unlock()
		}
		_ = cmd.Wait()
	}()
}

func (m *member) signal(s syscall.Signal) {
	m.t.Helper()
	must.OK(m.t, m.cmd.Process.Signal(s))
}

// restartKilled waits until the process is killed, and restarts it.
func (m *member) restartKilled() {
	m.t.Helper()
	select {
	case <-m.done:
	case <-time.After(patience):
		m.t.Fatal("the member still runs after a kill")
	}
	if s := m.cmd.ProcessState.Sys().(syscall.WaitStatus); s.Signal() != syscall.SIGKILL {
		m.t.Fatalf("the member was not killed: %v", m.cmd.ProcessState)
	}
	m.start()
}

func (m *member) output() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return strings.Join(m.lines, "\n")
}

// stopped reports whether the process is stopped by a signal.
func (m *member) stopped() bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", m.cmd.Process.Pid))
	if err != nil {
		return false
	}
	_, rest, _ := strings.Cut(string(stat), ") ")
	return strings.HasPrefix(rest, "T")
}

// driver sends numbered records and watches the output.
type driver struct {
	w      *wire
	users  int
	sent   atomic.Int64
	out    atomic.Int64 // all records below this number were emitted
	cancel context.CancelFunc
	done   chan struct{} // closed when no more records are sent
	wg     sync.WaitGroup
}

func drive(t testing.TB, w *wire, perSecond int) *driver {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	d := &driver{w: w, users: 200, cancel: cancel, done: make(chan struct{})}
	producer := must.Get(w.Kafka.Client(manual))(t)
	d.wg.Go(func() {
		defer close(d.done)
		defer producer.Close()
		tick := time.NewTicker(10 * time.Millisecond)
		defer tick.Stop()
		for {
			for range max(perSecond/100, 1) {
				u := user(rand.IntN(d.users))
				producer.Produce(context.WithoutCancel(ctx), w.record(t, "t-in", u, int(d.sent.Add(1)-1)), nil)
			}
			select {
			case <-tick.C:
			case <-ctx.Done():
				expect.Error(t, producer.Flush(context.WithoutCancel(ctx)), "", "Flush")
				return
			}
		}
	})
	consumer := must.Get(w.Kafka.Client(kgo.ConsumeTopics("t-out")))(t)
	watch, end := context.WithCancel(t.Context())
	t.Cleanup(func() { end(); cancel(); d.wg.Wait() })
	d.wg.Go(func() {
		defer consumer.Close()
		d.watch(watch, t, consumer)
	})
	eventually.True(t, "the group processes records", func() bool { return d.out.Load() > 100 })
	return d
}

// watch follows t-out.
func (d *driver) watch(ctx context.Context, t testing.TB, consumer *kgo.Client) {
	seen := map[int64]bool{}
	for ctx.Err() == nil {
		consumer.PollFetches(ctx).EachRecord(func(r *kgo.Record) {
			rec, err := d.w.stream("t-out").Decode(r.Value)
			if err != nil {
				t.Error(err)
				return
			}
			seen[int64(rec.Time)] = true
		})
		next := d.out.Load()
		for seen[next] {
			delete(seen, next)
			next++
		}
		d.out.Store(next)
	}
}

// caughtUp waits until all records sent so far are emitted.
func (d *driver) caughtUp(t testing.TB, when string) {
	t.Helper()
	sent := d.sent.Load()
	deadline := time.Now().Add(patience)
	for d.out.Load() < sent {
		if time.Now().After(deadline) {
			t.Fatalf("%s: %d of %d records were emitted within %s", when, d.out.Load(), sent, patience)
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// verify checks outputs, rows and stores against the sent records.
func (d *driver) verify(t testing.TB, members ...*member) {
	t.Helper()
	d.cancel()
	<-d.done
	d.caughtUp(t, "at the end")
	var dirs []string
	for _, m := range members {
		m.signal(syscall.SIGTERM)
		select {
		case <-m.done:
		case <-time.After(patience):
			t.Error("a member did not exit")
		}
		dirs = append(dirs, m.dir)
	}
	d.holdsAll(t, dirs...)
}

// holdsAll checks outputs, rows and the stores in the directories, which must not be in use, against the sent records.
func (d *driver) holdsAll(t testing.TB, dirs ...string) {
	t.Helper()
	d.holdsRows(t)
	expect.AtLeast(t, d.w.storesEqualLog(t, dirs...), testPartitions, "local stores")
	t.Logf("%d records", d.sent.Load())
}

// holdsRows checks outputs and the changelog against the sent records. It returns the number of records per user.
func (d *driver) holdsRows(t testing.TB) map[string]int64 {
	t.Helper()
	want := d.outputsEqualInputs(t)
	rows := map[string][]byte{}
	for _, rec := range d.w.Records("t-table") {
		if rec.Value == nil {
			delete(rows, string(rec.Key))
		} else {
			rows[string(rec.Key)] = rec.Value
		}
	}
	for u := range d.users {
		expect.Equal(t, int64(countIn(t, rows, user(u))), want[user(u)], "count of %s", user(u))
		newest := 0
		for key := range rows {
			if strings.HasPrefix(key, user(u)+"\x00e") {
				newest++
			}
		}
		expect.Equal(t, newest, int(min(want[user(u)], 3)), "other rows of %s", user(u))
	}
	return want
}

// outputsEqualInputs fails the test unless t-out contains each record as often as t-in, and t-in contains every sent record.
// It returns the number of records per user. A killed embedded broker forgets its producers' sequence numbers, so a retry by
// the driver can add a record to t-in twice.
func (d *driver) outputsEqualInputs(t testing.TB) map[string]int64 {
	t.Helper()
	in, perUser := d.times(t, "t-in")
	out, _ := d.times(t, "t-out")
	if !maps.Equal(in, out) {
		t.Errorf("%d different records of %d differ between t-in and t-out", len(out), len(in))
	}
	expect.Equal(t, int64(len(in)), d.sent.Load(), "records in t-in")
	return perUser
}

// times counts the records of a topic by number and by user.
func (d *driver) times(t testing.TB, topic string) (byNumber map[schemas.Micros]int, byUser map[string]int64) {
	t.Helper()
	byNumber, byUser = map[schemas.Micros]int{}, map[string]int64{}
	for _, r := range d.w.Records(topic) {
		rec := must.Get(d.w.stream(topic).Decode(r.Value))(t)
		byNumber[rec.Time]++
		byUser[string(r.Key)]++
	}
	return byNumber, byUser
}

// tortureRounds returns one, or the value of ROWS_TORTURE.
func tortureRounds(t testing.TB) int {
	t.Helper()
	text := os.Getenv("ROWS_TORTURE")
	if text == "" {
		return 1
	}
	return must.Get(strconv.Atoi(text))(t)
}

// faults counts the faults of a torture test, each of which occurs while the driver sends.
type faults struct {
	d            *driver
	sent         int64 // records sent before the last fault
	kills, stops int
}

// during checks that the driver has sent records since the last fault.
func (f *faults) during(t testing.TB) {
	t.Helper()
	eventually.True(t, "the driver sends records", func() bool { return f.d.sent.Load() > f.sent })
	f.sent = f.d.sent.Load()
	select {
	case <-f.d.done:
		t.Fatal("the driver has stopped")
	default:
	}
}

// settled waits, on the embedded broker, until the group has exactly its two members and a stable assignment. If a member
// dies while it is sent its assignment, it keeps its partitions forever: kfake starts no session timer if the answer does
// not arrive. There is no wait on Kafka.
func (f *faults) settled(t testing.TB) {
	t.Helper()
	if !f.d.w.Kafka.Embedded {
		return
	}
	eventually.True(t, "the group is stable", func() bool {
		groups, err := f.d.w.admin.DescribeGroups(t.Context(), "t")
		return err == nil && groups["t"].State == "Stable" && len(groups["t"].Members) == 2
	})
}

func (f *faults) kill(t testing.TB, m *member, s syscall.Signal) {
	t.Helper()
	f.settled(t)
	f.during(t)
	m.signal(s)
	m.restartKilled()
	f.kills++
	f.d.caughtUp(t, "after a member was killed")
}

// stop stops a member inside an open transaction until the other member owns its partitions and has fenced it.
func (f *faults) stop(t testing.TB, m *member) {
	t.Helper()
	f.during(t)
	before := len(m.output())
	m.signal(signalStop)
	eventually.True(t, "the member is stopped", m.stopped)
	f.stops++
	f.d.caughtUp(t, "while a member is stopped")
	m.signal(syscall.SIGCONT)
	eventually.True(t, "the commit of the stopped member is refused", func() bool {
		return strings.Contains(m.output()[before:], "commit t-table/")
	})
	f.d.caughtUp(t, "after it continued")
}

func TestTortureOfMembers(t *testing.T) {
	t.Parallel()
	tortureOfMembers(t, newTortureWire(t, t.TempDir()))
}

func tortureOfMembers(t *testing.T, w *wire) {
	a, b := newMember(t, w, false), newMember(t, w, true)
	d := drive(t, w, 400)
	f := &faults{d: d}
	for range tortureRounds(t) {
		for _, fault := range []syscall.Signal{syscall.SIGKILL, signalEarly, signalLate} {
			f.kill(t, a, fault)
			f.kill(t, b, fault)
		}
		f.stop(t, a)
		f.stop(t, b)
	}
	t.Logf("%d kills, %d stops", f.kills, f.stops)
	d.verify(t, a, b)
}

// kill -9 of the broker leaves transactions without a marker. Between the markers of one transaction, a kill can apply half
// of it: it explains one lost or duplicate output in several hundred kills.
func TestTortureOfTheBroker(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	w := newTortureWire(t, dir)
	tortureOfBrokers(t, w, func(d *driver) {
		w.broker.Kill()
		w.broker = child.Start(t, "broker", dir, w.Kafka.Brokers[0], strings.TrimPrefix(w.Registry, "http://"))
		w.broker.Line()
	})
}

// tortureOfBrokers kills a broker under load, repeatedly.
func tortureOfBrokers(t *testing.T, w *wire, kill func(d *driver)) {
	a, b := newMember(t, w, false), newMember(t, w, true)
	d := drive(t, w, 400)
	f := &faults{d: d}
	for range 2 * tortureRounds(t) {
		f.during(t)
		kill(d)
		f.kills++
		d.caughtUp(t, "after the broker was killed")
	}
	t.Logf("%d kills", f.kills)
	d.verify(t, a, b)
}

// newTortureWire starts a broker in another process, on a directory.
func newTortureWire(t testing.TB, dir string) *wire {
	t.Helper()
	c, broker := topicstest.Child(t, dir, testPartitions)
	w := connect(c)
	w.broker = broker
	w.createAll(t)
	return w
}
