package app

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/smartfeed/smartfeed/internal/ops"
	"github.com/smartfeed/smartfeed/internal/ops/generations"
	"github.com/smartfeed/smartfeed/internal/testkit/eventually"
	"github.com/smartfeed/smartfeed/internal/testkit/expect"
	"github.com/smartfeed/smartfeed/internal/testkit/must"
	"github.com/smartfeed/smartfeed/internal/testkit/oracle/visits"
	"github.com/smartfeed/smartfeed/processors/actors"
	"github.com/smartfeed/smartfeed/processors/rows"
	"github.com/smartfeed/smartfeed/schemas"
	"github.com/smartfeed/smartfeed/topics"
	"github.com/smartfeed/smartfeed/topics/generation"
)

// generate rebuilds a target as a generation and returns the result of the command.
func (s *started) generate(target string) generations.Built {
	s.t.Helper()
	done := runJSON[generations.Built](s, "rebuild", target, "--rate", "100000", "--timeout", processingTimeout)
	s.answersFrom(done.Generation)
	return done
}

// answersFrom waits until a generation of the pools is active.
func (s *started) answersFrom(number int) {
	s.t.Helper()
	name := generation.Name(topics.Pools, number)
	s.awaitGeneration(name+" answers", func(status rows.Status) bool { return status.Group == name && status.Ready })
}

// sharesPartitions waits until this process owns some but not all partitions of the active generation.
func (s *started) sharesPartitions() {
	s.t.Helper()
	s.awaitGeneration("this process has some but not all partitions", func(status rows.Status) bool {
		n := len(status.Partitions)
		return n > 0 && n < int(s.cfg.partitions())
	})
}

// awaitGeneration waits until the status of the active pools group satisfies a condition.
func (s *started) awaitGeneration(what string, so func(rows.Status) bool) {
	s.t.Helper()
	eventually.True(s.t, what, func() bool { return so(s.generations.running()[0].Status()) })
}

// records returns all committed records of a topic.
func (s *started) records(topic string) (list []*kgo.Record) {
	s.t.Helper()
	ends := must.Get(s.ends.Ends(s.t.Context(), topic))(s.t)
	for p, end := range ends[topic] {
		must.OK(s.t, s.ends.ReadTo(s.t.Context(), topic, p, 0, end, func(r *kgo.Record) error { list = append(list, r); return nil }))
	}
	return list
}

// checkReportedOnce checks that each served item is in the materialized feed once, in positions without gaps, and in one
// impression.
func (s *started) checkReportedOnce() {
	s.t.Helper()
	said := map[string]int{}
	positions := map[schemas.UserID][]int64{}
	for _, r := range s.records(topics.FeedEntries) {
		f := must.Get(s.streams.FeedEntries.Decode(r.Value))(s.t)
		for e := range f.All() {
			said[fmt.Sprint("entry of ", e.User, " ", e.Pin)]++
			positions[e.User] = append(positions[e.User], e.Position)
		}
	}
	for _, r := range s.records(topics.Impressions) {
		i := must.Get(s.streams.Impressions.Decode(r.Value))(s.t)
		for _, shown := range i.Pins {
			said[fmt.Sprint("impression of ", i.User, " ", shown.Pin)]++
		}
	}
	for what, n := range said {
		expect.Equal(s.t, n, 1, "the %s", what)
	}
	shown := 0
	for user, list := range positions {
		slices.Sort(list)
		for i, at := range list {
			if at != int64(i+1) {
				s.t.Fatalf("positions of %s: %v", user, list)
			}
		}
		shown += len(list)
	}
	expect.Equal(s.t, len(said), 2*shown, "entries and impressions: two per served item")
	expect.AtLeast(s.t, shown, 1, "served items")
}

// The pools of a new generation with another cap match brute force, and seen pins stay seen. The generation survives a
// restart, and another one can follow.
func TestGeneration_AppliesAnotherCap(t *testing.T) {
	t.Parallel()
	d := readDataset(t, generated(t, 0.02))
	cfg := testConfig(t.TempDir())
	cfg.Pools.MaxCandidates = 20
	cfg.Actors.EdgeWeightSteps = actors.Steps{{MinAffinity: math.Inf(-1), Weight: 1}} // a backfill uses the current weights of edges; brute force has none
	s := start(t, cfg)
	s.importSet(d)
	s.stop()

	cfg.Pools.MaxCandidates = DefaultConfig().Pools.MaxCandidates
	s = start(t, cfg)
	if done := s.generate("all"); done.Previous != 1 || done.Generation != 2 || done.Copied == nil || done.Copied.Rows == 0 || done.Rebuilt.Users < len(d.users) {
		t.Errorf("built %+v", done)
	}
	s.checkPools(d, cfg.Pools.MaxCandidates)
	shown := &reading{started: s, user: d.users[0], limit: 20, shown: map[schemas.PinID]visits.Item{}}
	shown.visit()
	must.AtLeast(t, len(shown.shown), 1, "shown items")
	shown.wait()
	before := s.poolsOf(d.users)
	s.stop()

	s = start(t, cfg)
	s.answersFrom(2)
	shown.started = s
	expect.NoDiff(t, s.poolsOf(d.users), before, "pools after a restart (-before +after)")
	done := s.generate("all")
	expect.Equal(t, [2]int{done.Previous, done.Generation}, [2]int{2, 3}, "previous and new generation")
	expect.NoDiff(t, s.poolsOf(d.users), before, "pools after another generation (-before +after)")
	shown.visit() // checks that no pin is new twice
	shown.wait()
	s.checkReportedOnce()
}

// The next generation, rebuilds and erasures include users whose first event arrived during a later generation.
func TestGeneration_KeepsUsersOfPreviousOne(t *testing.T) {
	t.Parallel()
	s := start(t, testConfig(t.TempDir()))
	history := &story{now: time.Now().Add(-time.Hour)}
	history.add("follows", "user:early", "follow", "interest:tea", nil)
	for n := range 10 {
		history.add("pins", "user:author", "create", fmt.Sprint("pin:", n), map[string]any{"interests": []string{"interest:tea"}})
	}
	s.publish(history.events...)
	s.generate("all")
	eventually.True(t, "the retired generation stops", func() bool { return len(s.generations.running()) <= 1 })
	s.publish(event(time.Now(), "late", "follows", "user:late", "follow", "interest:tea", nil))
	both := []schemas.UserID{"user:early", "user:late"}
	before := s.poolsOf(both)
	expect.Equal(t, before["user:late interest"].Total, 10, "pins in the pool of the late user")
	s.rebuilt("user:late")
	done := s.generate("all")
	expect.Equal(t, [2]int{done.Generation, done.Rebuilt.Users}, [2]int{3, 2}, "generation and its users")
	expect.NoDiff(t, s.poolsOf(both), before, "pools (-before +after)")
	if done := runJSON[ops.Erased](s, "erase", "user:late"); done.Had[topics.Pools] == 0 || done.Has[topics.Pools] != 0 {
		t.Errorf("erase: got %+v", done)
	}
}

// life makes users visit and authors publish while a test runs.
type life struct {
	s         *started
	readers   []*reading
	pins      int // used by one goroutine
	published atomic.Int64
	wg        sync.WaitGroup
	stop      chan struct{}
}

const authors = 5

func (s *started) startLife(readers int) *life {
	l := &life{s: s, stop: make(chan struct{})}
	follows := &story{now: time.Now().Add(-time.Hour)}
	for n := range readers {
		r := &reading{started: s, user: schemas.UserID(fmt.Sprint("user:reader-", n)), limit: 5, shown: map[schemas.PinID]visits.Item{}}
		l.readers = append(l.readers, r)
		for a := range authors {
			follows.add("follows", string(r.user), "follow", fmt.Sprint("user:author-", a), nil)
		}
	}
	s.publish(follows.events...)
	l.publish(200)
	return l
}

// publish publishes pins that are delivered to every reader.
func (l *life) publish(n int) {
	history := &story{prefix: fmt.Sprint("life-", l.pins, "-"), now: time.Now().Add(-time.Minute)}
	for range n {
		history.add("pins", fmt.Sprint("user:author-", l.pins%authors), "create", fmt.Sprint("pin:", l.pins), nil)
		l.pins++
	}
	l.s.publish(history.events...)
	l.published.Store(int64(l.pins))
}

// run publishes and visits until end is called.
func (l *life) run() {
	l.wg.Go(func() {
		for !l.ended() {
			l.publish(3)
		}
	})
	for _, r := range l.busy() {
		l.wg.Go(func() {
			for !l.ended() {
				r.visit()
			}
		})
	}
}

// busy returns the readers who visit, and quiet the others.
func (l *life) busy() []*reading  { return l.readers[:2] }
func (l *life) quiet() []*reading { return l.readers[2:] }

func (l *life) ended() bool {
	select {
	case <-l.stop:
		return true
	case <-time.After(5 * time.Millisecond):
		return false
	}
}

func (l *life) end() {
	close(l.stop)
	l.wg.Wait()
}

// check checks that every reader has seen every pin or has it as a candidate, and none twice.
func (l *life) check() {
	l.s.t.Helper()
	for _, r := range l.readers {
		pool := l.s.pool(r.user, schemas.Following, everyCap)
		for _, item := range pool.Items {
			if _, again := r.shown[item.Pin]; again {
				l.s.t.Errorf("%s is a candidate for %s, but already seen", item.Pin, r.user)
			}
		}
		expect.Equal(l.s.t, pool.Total+len(r.shown), l.pins, "candidates and seen pins of %s", r.user)
	}
}

// During the build and the cut-over, users visit and authors publish, in walks of many steps. No pin is lost, duplicated,
// or new twice.
func TestGeneration_CutsOverUnderLoad(t *testing.T) {
	t.Parallel()
	cfg := testConfig(t.TempDir())
	cfg.Pools.MaxCandidates, cfg.Fanout.MaxRecentPublications, cfg.Fanout.StepFollowers = 5000, 5000, 3
	s := start(t, cfg)
	l := s.startLife(20)
	l.run()
	for want := 2; want <= 3; want++ {
		expect.Equal(t, s.generate("all").Generation, want, "generation built")
	}
	pins := l.published.Load()
	eventually.True(t, "authors still publish", func() bool { return l.published.Load() >= pins+30 })
	l.end()
	l.readers[0].wait()
	l.check()
	s.checkReportedOnce()
}

// An interrupted command resumes. An abort stops the generation.
func TestGeneration_ResumesAndAborts(t *testing.T) {
	t.Parallel()
	cfg := testConfig(t.TempDir())
	cfg.Pools.MaxCandidates, cfg.Fanout.MaxRecentPublications = 5000, 5000
	s := start(t, cfg)
	l := s.startLife(300)
	expect.Error(t, expect.ErrorOf(s.run("rebuild", "all", "--abort")), "no generation is being built", "abort without a build")
	for _, then := range []string{"aborted", "resumed"} {
		s.interrupt(topics.Pools, "rebuilt", 110, `"smartfeed rebuild all" resumes`, "rebuild", "all", "--rate", "50")
		l.publish(5)
		if then == "aborted" {
			must.Get(s.run("rebuild", "all", "--abort"))(t)
			l.publish(5)
			l.check()
			continue
		}
		s.checkRejected("rebuild all", "replay", "all", "--half-life", "240h")
		if done := s.generate("all"); done.Generation != 3 || done.Copied != nil {
			t.Errorf("resumed: %+v", done)
		}
	}
	l.publish(5)
	l.check()
	s.cutOverInPart()
	expect.Error(t, expect.ErrorOf(s.run("rebuild", "all", "--abort")), "the cut-over has started", "abort after the first mark")
	l.publish(5)
	l.readers[0].visit()
	if done := s.generate("all"); done.Generation != 4 || done.Copied != nil {
		t.Errorf("ended: %+v", done)
	}
	l.publish(5)
	l.readers[0].visit()
	l.readers[0].wait()
	l.check()
	s.checkReportedOnce()
}

// cutOverInPart builds a generation, and fails after it has written the marks of all inputs except one.
func (s *started) cutOverInPart() {
	s.t.Helper()
	before := s.marks(topics.Deliveries)
	refused := s.broker.Broker().Fault(kfake.Fault{
		Keys: []kmsg.Key{kmsg.Produce}, Topic: topics.Candidates, Err: kerr.InvalidRecord, Count: -1, // only the cut-over writes there
	})
	out, err := s.run("rebuild", "all", "--rate", "100000", "--timeout", processingTimeout)
	refused.Remove()
	expect.Error(s.t, err, `"smartfeed rebuild all" finishes it`, "%s: error with the command that resumes it", out)
	if marks := s.marks(topics.Deliveries) - before; refused.Hits() == 0 || marks != int(s.cfg.partitions()) {
		s.t.Fatalf("%d marks were rejected, %d written", refused.Hits(), marks)
	}
}

// marks returns the number of cut-over marks in a topic.
func (s *started) marks(topic string) (n int) {
	s.t.Helper()
	for _, r := range s.records(topic) {
		if generation.IsMark(r) {
			n++
		}
	}
	return n
}

// Two processes share the partitions of both generations, with different assignments. A serving process sends requests to
// the owner of a user in the active generation.
func TestGeneration_IsSharedByProcesses(t *testing.T) {
	t.Parallel()
	broker := startBroker(t)
	config := func() Config {
		cfg := roleConfig(t, broker)
		cfg.Pools.MaxCandidates, cfg.Fanout.MaxRecentPublications, cfg.Fanout.StepFollowers = 5000, 5000, 3
		return cfg
	}
	first := startPieces(t, config(), processing(topics.RowGroups()))
	second := startPieces(t, config(), processing(topics.RowGroups()))
	front := startPieces(t, config(), serving())
	l := front.startLife(20)
	out, err := front.run("rebuild", "all", "--timeout", processingTimeout)
	if err != nil || !strings.Contains(out, "generation 2 of the pools is active, with 20 users") {
		t.Fatalf("rebuild all: %v: %s", err, out)
	}
	for _, s := range []*started{first, second} {
		s.answersFrom(2)
		s.sharesPartitions()
	}
	l.publish(10)
	for _, r := range l.readers[:5] {
		r.visit()
	}
	l.readers[0].wait()
	l.check()
	front.checkReportedOnce()
}
