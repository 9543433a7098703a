package simulate

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/smartfeed/smartfeed/internal/testkit/expect"
	"github.com/smartfeed/smartfeed/internal/testkit/must"
	"github.com/smartfeed/smartfeed/internal/testkit/topicstest"
	"github.com/smartfeed/smartfeed/schemas"
	"github.com/smartfeed/smartfeed/topics"
)

// simulated runs a small simulation for a duration and returns its summary.
func simulated(t *testing.T, ctx context.Context, s topics.Setup, duration time.Duration) Summary {
	t.Helper()
	cfg := DefaultConfig()
	cfg.Users, cfg.Pins, cfg.Rate = 20, 50, 0
	return must.Get(Run(ctx, s, cfg, duration, nil))(t)
}

// records counts the records in the input topics.
func records(c *topicstest.Cluster) map[string]int64 {
	counts := map[string]int64{}
	for _, topic := range []string{topics.Users, topics.Follows, topics.Pins, topics.Actions} {
		counts[topic] = c.End(topic)
	}
	return counts
}

func TestRun_LoadsOnlyWithZeroDuration(t *testing.T) {
	c := topicstest.Start(t, 0)
	got := simulated(t, t.Context(), c.Setup(), 0)
	w := newWorld(Config{Users: 20, BoardsPerUser: 3, Interests: 40, Pins: 50, Seed: 1})
	follows := int64(0)
	for range w.follows() {
		follows++
	}
	want := map[string]int64{topics.Users: 20, topics.Follows: follows, topics.Pins: 50, topics.Actions: 0}
	expect.NoDiff(t, records(c), want, "records")
	if got.Loaded != 70+int(follows) || got.Live != 0 || got.Seconds != 0 {
		t.Errorf("summary %+v", got)
	}
}

func TestRun_PublishesLiveEvents(t *testing.T) {
	c := topicstest.Start(t, 0)
	got := simulated(t, t.Context(), c.Setup(), 300*time.Millisecond)
	sum := int64(0)
	for _, n := range records(c) {
		sum += n
	}
	if got.Live == 0 || sum != int64(got.Loaded)+got.Live || got.Seconds < 0.3 {
		t.Errorf("summary %+v, %d records; want all of both phases", got, sum)
	}
}

func TestRun_StopsWithoutErrorWhenCanceled(t *testing.T) {
	s := topicstest.Start(t, 0).Setup()
	ctx, interrupt := context.WithCancel(t.Context())
	s.Progress = func(what string, _ int) topics.Progress { return &interrupter{what: what, interrupt: interrupt} }
	expect.AtLeast(t, simulated(t, ctx, s, Forever).Live, 10, "events acknowledged before the interrupt")
}

// interrupter is a progress display that interrupts the simulation after ten live events.
type interrupter struct {
	what      string
	interrupt func()
	mu        sync.Mutex
	n         int
}

func (i *interrupter) Add(n int) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.n += n; i.what == "acting" && i.n == 10 {
		i.interrupt()
	}
}

func (*interrupter) Say(string)          {}
func (*interrupter) Done() time.Duration { return time.Second }

// deaf is a broker that never acknowledges.
type deaf struct{}

func (deaf) Send(context.Context, schemas.Line, func(error)) {}

func (deaf) Flush(ctx context.Context) error {
	<-ctx.Done()
	return ctx.Err()
}

func TestRun_LimitsWaitForAcknowledgements(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		err := actFor(t.Context(), time.Minute, deaf{}, newLive(newWorld(DefaultConfig()), "run"), func(schemas.Line) {})
		expect.Equal(t, time.Since(began), time.Minute+grace, "took")
		expect.Error(t, err, "some events are not acknowledged 5s after the end", "actFor")
	})
}
