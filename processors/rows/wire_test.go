package rows

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/smartfeed/smartfeed/internal/testkit/child"
	"github.com/smartfeed/smartfeed/internal/testkit/eventually"
	"github.com/smartfeed/smartfeed/internal/testkit/expect"
	"github.com/smartfeed/smartfeed/internal/testkit/must"
	"github.com/smartfeed/smartfeed/internal/testkit/topicstest"
	"github.com/smartfeed/smartfeed/schemas"
	"github.com/smartfeed/smartfeed/topics"
)

const testPartitions = 4

// wire is an embedded broker with the topics of a group "t": t-in, t-in2, t-batch, t-out, and the group's table, loop and ticks.
type wire struct {
	*topicstest.Cluster
	broker *child.Process // in another process, or nil
	client *kgo.Client    // produces to Record.Partition; consumes nothing
	admin  *kadm.Client
}

func newWire(t testing.TB) *wire {
	t.Helper()
	w := connect(topicstest.Bare(t, testPartitions))
	w.createAll(t)
	return w
}

// connect returns a wire on a cluster.
func connect(c *topicstest.Cluster) *wire {
	c.Open()
	client := c.Client(manual, kgo.RecordDeliveryTimeout(0))
	return &wire{Cluster: c, client: client, admin: kadm.NewClient(client)}
}

// parallelWire returns a wire for a parallel test.
func parallelWire(t *testing.T) *wire {
	t.Helper()
	t.Parallel()
	return newWire(t)
}

// manual is for producers that set the partition.
var manual = kgo.RecordPartitioner(kgo.ManualPartitioner())

func (w *wire) createAll(t testing.TB) {
	t.Helper()
	w.create(t, groupTopics()...)
}

func groupTopics() []string {
	return []string{"t-in", "t-in2", "t-batch", "t-out", "t-table", "t-loop", "t-ticks", topics.DeadLetters}
}

func (w *wire) create(t testing.TB, names ...string) {
	t.Helper()
	made, err := w.admin.CreateTopics(t.Context(), testPartitions, -1, nil, names...)
	if err != nil || made.Error() != nil {
		t.Fatal(err, made.Error())
	}
}

// stream returns a stream of small records with any topic name.
func (w *wire) stream(topic string) topics.Stream[schemas.DeletedUser] {
	s := w.Streams.UsersDeleted
	s.Name = topic
	return s
}

// send produces numbered records to a topic, each to the partition of its user. The record's Time is its number.
func (w *wire) send(t testing.TB, topic string, from, n int, user func(i int) string) {
	t.Helper()
	var records []*kgo.Record
	for i := from; i < from+n; i++ {
		records = append(records, w.record(t, topic, user(i), i))
	}
	must.OK(t, w.client.ProduceSync(t.Context(), records...).FirstErr())
}

func (w *wire) record(t testing.TB, topic, user string, i int) *kgo.Record {
	t.Helper()
	value := must.Get(w.stream(topic).Encode(&schemas.DeletedUser{User: schemas.UserID(user), Time: schemas.Micros(i)}))(t)
	return &kgo.Record{Topic: topic, Partition: topics.Partition(user, testPartitions), Key: []byte(user), Value: value}
}

// config returns a small configuration for tests. The session timeout is long enough that a busy machine starts a
// member and delivers heartbeats in time. Otherwise, members would rightly count as dead, and Run would return an
// error. Tests that wait for the death of a member set a shorter one.
func (w *wire) config(dir string) Config {
	cfg := DefaultConfig()
	cfg.Dir, cfg.SessionTimeout, cfg.HandoverTimeout = dir, 15*time.Second, time.Second
	cfg.FetchMaxWait = 50 * time.Millisecond
	cfg.BlockCacheBytes, cfg.MemTableBytes = 8<<20, 8<<20
	return cfg
}

func (w *wire) env(t testing.TB) Env {
	level := slog.LevelInfo
	if os.Getenv("ROWS_TEST_DEBUG") != "" {
		level = slog.LevelDebug
	}
	return Env{Kafka: w.Kafka, Streams: w.Streams, Log: slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: level}))}
}

// start runs a group until the test ends or stop is called. stop returns Run's error.
func start(t testing.TB, r *Runner) (stop func() error) {
	t.Helper()
	return topicstest.Run(t, r.Run)
}

// whileRunning is eventually.True, but fails as soon as Run returns.
func whileRunning(t testing.TB, r *Runner, what string, condition func() bool) {
	t.Helper()
	eventually.True(t, what, func() bool {
		t.Helper()
		if r.runs.Load() > 0 && !r.running.Load() {
			t.Fatalf("Run returned before the condition held: %s", what)
		}
		return condition()
	})
}

// run runs a group until the test ends or stop is called. stop returns Run's error.
func (w *wire) run(t testing.TB, dir string, g Group) (r *Runner, stop func() error) {
	t.Helper()
	r = newRunner(t, w, dir, g)
	return r, start(t, r)
}

// countFirst counts and emits the records 0 to n-1 of as many users, and stops the group.
func (w *wire) countFirst(t *testing.T, dir string, n int) {
	t.Helper()
	r, stop := w.run(t, dir, w.counter("t-in"))
	w.send(t, "t-in", 0, n, user)
	whileRunning(t, r, "all are applied", func() bool { return r.Status().Counters.Records == int64(n) })
	must.OK(t, stop())
}

// runFails runs a group, and expects an error with all of the texts.
func runFails(t *testing.T, r *Runner, texts ...string) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	err := r.Run(ctx)
	for _, text := range texts {
		expect.Error(t, err, text, "Run")
	}
	return err
}

// runFailsForGood is runFails for a fatal error.
func runFailsForGood(t *testing.T, r *Runner, texts ...string) {
	t.Helper()
	expect.True(t, errors.As(runFails(t, r, texts...), new(*FatalError)), "a fatal error")
}

func newRunner(t testing.TB, w *wire, dir string, g Group) *Runner {
	t.Helper()
	return must.Get(New(w.config(dir), w.env(t), g))(t)
}

var patience = eventually.Limit()

// watched returns a logger that counts messages with a prefix.
func watched(t testing.TB, prefix string, hits *atomic.Int64) *slog.Logger {
	return slog.New(watcher{slog.NewTextHandler(t.Output(), nil), prefix, hits})
}

type watcher struct {
	slog.Handler
	prefix string
	hits   *atomic.Int64
}

func (h watcher) Handle(ctx context.Context, r slog.Record) error {
	if strings.HasPrefix(r.Message, h.prefix) {
		h.hits.Add(1)
	}
	return h.Handler.Handle(ctx, r)
}

func silent() *slog.Logger { return slog.New(slog.DiscardHandler) }

func user(i int) string { return fmt.Sprintf("user:%d", i) }

// counter returns a group that counts each user's records in row "n" and emits each record once.
func (w *wire) counter(inputs ...string) Group {
	g := Group{Name: "t", Outputs: []string{"t-out"}}
	for _, topic := range inputs {
		g.Inputs = append(g.Inputs, Keyed(w.stream(topic), func(tx *Tx, rec *schemas.DeletedUser) error {
			increment(tx.Own())
			Send(tx, w.stream("t-out"), tx.Key(), rec)
			return nil
		}))
	}
	return g
}

// increment adds 1 to the owner's row "n".
func increment(o Owner) Number { return AddNumber(o, []byte("n"), 1) }

// count reads the owner's row "n" through the view. It returns -1 if the partition is not owned.
func count(t testing.TB, r *Runner, owner string) int {
	t.Helper()
	n := Number(-1)
	err := r.View().Read(t.Context(), owner, func(s Snapshot) (err error) {
		n, _, err = Value[Number](s, []byte("n"))
		return err
	})
	if !errors.Is(err, schemas.ErrNotOwner) {
		must.OK(t, err)
	}
	return int(n)
}
