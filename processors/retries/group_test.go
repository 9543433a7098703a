package retries_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/smartfeed/smartfeed/internal/convert"
	"github.com/smartfeed/smartfeed/internal/packed"
	"github.com/smartfeed/smartfeed/internal/testkit/expect"
	"github.com/smartfeed/smartfeed/internal/testkit/must"
	"github.com/smartfeed/smartfeed/internal/testkit/proctest"
	"github.com/smartfeed/smartfeed/processors/retries"
	"github.com/smartfeed/smartfeed/processors/rows"
	"github.com/smartfeed/smartfeed/schemas"
	"github.com/smartfeed/smartfeed/topics"
)

// quick returns a configuration with delays short enough for a test.
func quick() retries.Config {
	cfg := retries.DefaultConfig()
	cfg.InitialDelay, cfg.MaxDelay, cfg.DoneAfter = 100*time.Millisecond, 200*time.Millisecond, time.Second
	cfg.MaxAttempts, cfg.KindRate, cfg.TopicRate = 3, 1000, 1000
	return cfg
}

type rig struct {
	*proctest.Wire
	t      *testing.T
	cfg    retries.Config
	member *proctest.Member
}

// newRig starts the group, for a parallel test.
func newRig(t *testing.T, cfg retries.Config) *rig {
	t.Parallel()
	r := &rig{Wire: proctest.New(t), t: t, cfg: cfg}
	r.member = r.Start("retries", r.group(cfg))
	return r
}

func (r *rig) reader() retries.Reader {
	return retries.Reader{Rows: r.member.View(topics.Retries), Config: r.cfg}
}

// deadLetters polls the reader until the member owns the partition.
func (r *rig) deadLetters(topic string, state schemas.RetryState) []schemas.RetriedDeadLetter {
	r.t.Helper()
	var list []schemas.RetriedDeadLetter
	r.Eventually("the dead letters of "+topic, func() bool {
		var err error
		list, err = r.reader().RetriedDeadLetters(r.t.Context(), topic, "", state, 1_000_000)
		return here(r.t, err)
	})
	return list
}

// isLater reports whether a dead letter is not yet due.
func isLater(l schemas.RetriedDeadLetter) bool { return l.Due.Time().After(time.Now()) }

func (r *rig) kinds(topic string) map[string]schemas.RetryKind {
	r.t.Helper()
	byName := map[string]schemas.RetryKind{}
	r.Eventually("the kinds of "+topic, func() bool {
		list, err := r.reader().RetryKinds(r.t.Context(), topic)
		for _, k := range list {
			byName[k.Kind] = k
		}
		return here(r.t, err)
	})
	return byName
}

func here(t *testing.T, err error) bool {
	t.Helper()
	if !errors.Is(err, schemas.ErrNotOwner) {
		must.OK(t, err)
	}
	return err == nil
}

func (r *rig) order(o *schemas.RetryOrder) {
	r.t.Helper()
	if o.Time == 0 {
		o.Time = schemas.MicrosOf(time.Now())
	}
	proctest.Publish(r.Wire, r.Streams.RetryOrders, o.Topic, o)
}

func (r *rig) limit(scope string, rate float64, priority int32) {
	topic, _, _ := strings.Cut(scope, "/")
	r.order(&schemas.RetryOrder{Topic: topic, Operator: "op", Limits: []schemas.RetryLimit{{Scope: scope, Rate: rate, Priority: priority}}})
}

// fail publishes a dead letter of a record of edges.
func (r *rig) fail(offset int64, reason string) *schemas.DeadLetter {
	r.t.Helper()
	l := &schemas.DeadLetter{Topic: topics.Edges, Partition: 1, Offset: offset, Group: topics.Pools, Reason: reason,
		Key: []byte(fmt.Sprintf("user:%d", offset)), Value: []byte(fmt.Sprintf("value %d", offset))}
	proctest.Publish(r.Wire, r.Streams.DeadLetters, l.Topic, l)
	return l
}

// flaky is a group that fails to process the edges of some users a given number of times. It counts edges in row "n".
type flaky struct {
	mu       sync.Mutex
	rejected map[schemas.UserID]int
}

func (p *flaky) group(name string, s *topics.Streams) rows.Group {
	return rows.Group{Name: name, Inputs: []rows.Input{rows.Keyed(s.Edges, func(tx *rows.Tx, e *schemas.Edge) error {
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.rejected[e.User] > 0 {
			p.rejected[e.User]--
			return schemas.Bad(fmt.Sprintf("user %q is rejected", e.User))
		}
		rows.AddNumber(tx.Own(), []byte("n"), 1)
		return nil
	})}}
}

func (r *rig) edge(user schemas.UserID) {
	proctest.Publish(r.Wire, r.Streams.Edges, string(user),
		&schemas.Edge{User: user, Other: "user:x", Kind: schemas.FollowEdge, Live: true, Time: 1})
}

// counted returns how many edges of each user a group has applied.
func (r *rig) counted(group string) map[string]rows.Number {
	n := map[string]rows.Number{}
	for _, row := range r.Rows(group, "") {
		n[row.Owner] = must.Get(packed.Decode[rows.Number](row.Value))(r.t)
	}
	return n
}

// A record that fails temporarily is processed once, only by the group that failed, even if members are killed. A record
// that always fails is retried Attempts times and no more.
func TestRetries_TemporaryFailureIsProcessedOnceAndPermanentIsParked(t *testing.T) {
	r := newRig(t, quick())
	const users, permanent = 30, 1_000_000
	p, rejected := &flaky{rejected: map[schemas.UserID]int{}}, map[schemas.UserID]bool{}
	want := map[string]rows.Number{}
	for u := range users {
		user := schemas.UserID(fmt.Sprintf("user:%d", u))
		want[string(user)] = 1
		switch u % 3 {
		case 1:
			p.rejected[user] = 2
		case 2:
			p.rejected[user], rejected[user] = permanent, true
		}
	}
	failing := r.Start("failing", p.group(topics.Pools, r.Streams))
	r.Start("healthy", (&flaky{}).group(topics.Fanout, r.Streams))
	random := rand.New(rand.NewPCG(3, 4))
	for u := range users {
		r.edge(schemas.UserID(fmt.Sprintf("user:%d", u)))
		switch random.IntN(8) {
		case 0:
			r.member.Kill()
			r.member.Restart()
		case 1:
			failing.Kill()
			failing.Restart()
		}
	}
	r.Eventually("no dead letter is waiting or sent", func() bool {
		n := r.kinds(topics.Edges)["edges/pools/user-is-rejected"].States
		return n[schemas.RetryParked] == int64(len(rejected)) && n[schemas.RetryWaiting]+n[schemas.RetrySent] == 0
	})
	r.WaitIdle()
	expect.NoDiff(t, r.counted(topics.Fanout), want, "the group that never failed has applied")
	for user := range rejected {
		delete(want, string(user))
	}
	expect.NoDiff(t, r.counted(topics.Pools), want, "the group that failed has applied")
	checkParked(t, r, rejected)
}

// checkParked checks that each user's record is tried once and retried Attempts times.
func checkParked(t *testing.T, r *rig, rejected map[schemas.UserID]bool) {
	t.Helper()
	tries, firsts := map[string][]int32{}, map[string]map[int64]bool{}
	for _, rec := range proctest.Drain(r.Wire, r.Streams.DeadLetters) {
		l := rec.Value
		if !rejected[schemas.UserID(l.Key)] {
			continue
		}
		tries[string(l.Key)] = append(tries[string(l.Key)], l.Attempts)
		if firsts[string(l.Key)] == nil {
			firsts[string(l.Key)] = map[int64]bool{}
		}
		_, first := l.First()
		firsts[string(l.Key)][first] = true
	}
	for user := range rejected {
		if got := tries[string(user)]; !slices.Equal(got, []int32{0, 1, 2, 3}) || len(firsts[string(user)]) != 1 {
			t.Errorf("dead letters of the record of %s: attempts %v, %d first records; want attempts 0 to 3 of one record", user, got, len(firsts[string(user)]))
		}
	}
	for _, l := range r.deadLetters(topics.Edges, schemas.RetryParked) {
		if l.Attempts != 3 || l.Why != "maximum number of attempts reached" || l.Due != nil {
			t.Errorf("parked: %+v, want 3 attempts", l)
		}
	}
}

// A rate of zero stops a kind, and a rate above zero resumes it. Ordered dead letters are limited by the rate, too.
func TestOrder_RateZeroStopsKind(t *testing.T) {
	r := newRig(t, quick())
	r.limit("edges/pools/it-is-stopped", 0, 5)
	stopped, free := r.fail(1, "it is stopped"), r.fail(2, "it goes")
	r.WaitIdle()
	r.order(&schemas.RetryOrder{Topic: topics.Edges, DeadLetters: []schemas.DeadLetter{*stopped}})
	r.Eventually("the other kind is done", func() bool {
		return r.kinds(topics.Edges)["edges/pools/it-goes"].States[schemas.RetryDone] == 1
	})
	got := r.kinds(topics.Edges)["edges/pools/it-is-stopped"]
	if got.States[schemas.RetryWaiting] != 1 || got.Rate != 0 || got.Priority != 5 || got.Operator != "op" || got.Next == nil {
		t.Errorf("stopped kind: %+v, want one that waits at rate 0", got)
	}
	r.order(&schemas.RetryOrder{Topic: topics.Edges, Time: 1, Limits: []schemas.RetryLimit{{Scope: "edges/pools/it-is-stopped", Rate: 9}}})
	r.WaitIdle()
	expect.Equal(t, r.kinds(topics.Edges)["edges/pools/it-is-stopped"].Rate, 0, "rate after an outdated order")
	r.limit("edges/pools/it-is-stopped", -1, 0)
	r.Eventually("the stopped kind is done", func() bool {
		return r.kinds(topics.Edges)["edges/pools/it-is-stopped"].States[schemas.RetryDone] == 1
	})
	sent := r.published()
	if len(sent) != 2 || sent[string(stopped.Key)] != string(stopped.Value) || sent[string(free.Key)] != string(free.Value) {
		t.Errorf("retries: %v, want the bytes of both", sent)
	}
}

// Dead letters that wait at a configured rate of zero are retried when the group is restarted with another rate,
// without a new record.
func TestRetries_ChangedConfiguredRateNeedsNoRecord(t *testing.T) {
	cfg := quick()
	cfg.KindRate = 0
	r := newRig(t, cfg)
	l := r.fail(1, "bad")
	r.Eventually("the dead letter is due", func() bool {
		list := r.deadLetters(topics.Edges, schemas.RetryWaiting)
		return len(list) == 1 && !isLater(list[0])
	})
	must.Equal(t, len(r.published()), 0, "retries at a rate of 0")
	r.restart(nil, r.group(quick()))
	r.Eventually("the retry is published", func() bool { return r.published()[string(l.Key)] == string(l.Value) })
}

// If the topic of a waiting dead letter leaves the catalogue, the dead letter is parked and the dead letters of other
// topics are retried.
func TestRetries_ParksWaitingOfRemovedTopic(t *testing.T) {
	cfg := quick()
	cfg.KindRate = 0
	r := newRig(t, cfg)
	const deadLetters = 30
	for i := range int64(deadLetters) {
		r.fail(i, "bad")
	}
	r.WaitIdle()
	must.Equal(t, len(r.deadLetters(topics.Edges, schemas.RetryWaiting)), deadLetters, "dead letters that wait")
	catalogue := slices.DeleteFunc(r.catalogue(), func(t topics.Topic) bool { return t.Name == topics.Edges })
	cfg = quick()
	cfg.MaxParked = 20
	r.restart(smallestLimits, retries.Group(cfg, catalogue, r.Streams))
	r.Eventually("no dead letter waits", func() bool { return len(r.deadLetters(topics.Edges, schemas.RetryWaiting)) == 0 })
	r.WaitIdle()
	all := r.deadLetters(topics.Edges, "")
	for _, l := range all {
		if l.State != schemas.RetryParked || l.Why != "the topic accepts no retries" || l.Attempts != 0 || l.Due != nil {
			t.Errorf("%+v, want parked", l)
		}
	}
	expect.Equal(t, [2]int{len(all), len(r.published())}, [2]int{cfg.MaxParked, 0}, "dead letters kept, the newest, and retries")
	other := &schemas.DeadLetter{Topic: topics.Users, Group: "g", Key: []byte("k")}
	proctest.Publish(r.Wire, r.Streams.DeadLetters, other.Topic, other)
	r.Eventually("a retry of another topic is published", func() bool { return len(r.Records(topics.Users)) == 1 })
}

// published returns the values of the retries on edges by key. It fails the test if a retry is in the wrong partition.
func (r *rig) published() map[string]string {
	r.t.Helper()
	all := map[string]string{}
	for _, rec := range r.Records(topics.Edges) {
		retry, _ := topics.RetryOf(rec)
		if rec.Partition != topics.PartitionBytes(rec.Key, r.Kafka.Partitions) || retry.Group != topics.Pools || retry.Attempt != 1 || retry.Partition != 1 {
			r.t.Errorf("%s in partition %d, retry %+v", rec.Key, rec.Partition, retry)
		}
		all[string(rec.Key)] = string(rec.Value)
	}
	return all
}

// smallestLimits sets the smallest limits of a record that package rows accepts.
func smallestLimits(cfg *rows.Config) {
	cfg.MaxRecordWrites, cfg.MaxRecordWriteBytes, cfg.MaxValueBytes = 1000, 1<<20, 512<<10
}

// restart restarts the group with another configuration of package rows.
func (r *rig) restart(adjust func(*rows.Config), g rows.Group) {
	r.t.Helper()
	r.member = r.StartWith("retries", adjust, g)
}

func (r *rig) group(cfg retries.Config) rows.Group {
	return retries.Group(cfg, r.catalogue(), r.Streams)
}

func (r *rig) catalogue() []topics.Topic {
	return topics.Catalogue(topics.Profile{Partitions: r.Kafka.Partitions, Embedded: true})
}

// Dead letters that are due together are sent in as many steps as the limits of a record require.
func TestTimer_SplitsByRecordLimits(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ deadLetters, bytes int }{
		"bytes": {4, topics.MaxRetriedBytes - 100},
		"rows":  {150, 10},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, quick())
			r.restart(smallestLimits, r.group(r.cfg))
			r.limit(topics.Edges, 0, 0)
			for i := range c.deadLetters {
				l := &schemas.DeadLetter{Topic: topics.Edges, Partition: 1, Offset: int64(i), Group: topics.Pools, Reason: "bad",
					Key: fmt.Appendf(nil, "user:%d", i), Value: make([]byte, c.bytes)}
				proctest.Publish(r.Wire, r.Streams.DeadLetters, l.Topic, l)
			}
			r.Eventually("all dead letters are due", func() bool {
				list := r.deadLetters(topics.Edges, schemas.RetryWaiting)
				return len(list) == c.deadLetters &&
					!slices.ContainsFunc(list, isLater)
			})
			r.limit(topics.Edges, 1000, 0)
			r.Eventually("all retries are published", func() bool { return len(r.published()) == c.deadLetters })
			expect.Equal(t, len(r.deadLetters(topics.TicksOf(topics.Retries), "")), 0, "dead letters of the group's own ticks")
		})
	}
}

// If a timer fired without an effect, the next dead letter sets it again.
func TestDeadLetter_SetsLostTimerAgain(t *testing.T) {
	r := newRig(t, quick())
	lost := r.group(r.cfg)
	lost.Inputs = []rows.Input{rows.Keyed(r.Streams.DeadLetters, func(tx *rows.Tx, _ *schemas.DeadLetter) error {
		tx.Own().Put([]byte("t"), []byte{1, 0, 2})
		return nil // version 1, no retries yet, a timer one microsecond after 1970
	}), lost.Inputs[1]}
	r.restart(nil, lost)
	r.fail(1, "state row not written")
	r.WaitIdle()
	r.restart(nil, r.group(r.cfg))
	r.fail(2, "bad")
	r.Eventually("the retry is published", func() bool { return r.published()["user:2"] != "" })
}

// After a cap was lowered, the dead letters beyond it are removed step by step.
func TestTrim_AfterLoweredCap(t *testing.T) {
	cfg := quick()
	cfg.MaxAttempts = 0
	r := newRig(t, cfg)
	const before, after = 400, 20
	for i := range int64(before) {
		r.fail(i, "bad")
	}
	r.WaitIdle()
	cfg.MaxParked = 10
	r.restart(smallestLimits, r.group(cfg))
	for i := range int64(after) {
		r.fail(before+i, "bad")
	}
	r.WaitIdle()
	list := r.deadLetters(topics.Edges, schemas.RetryParked)
	slices.SortFunc(list, func(a, b schemas.RetriedDeadLetter) int { return cmp.Compare(a.Offset, b.Offset) })
	if want := before + after - 10*after; len(list) != want || list[0].Offset != before+after-int64(want) {
		t.Errorf("%d dead letters parked, from offset %d; want the newest %d", len(list), list[0].Offset, want)
	}
}

// When more dead letters are due than the rates allow, kinds with a higher priority go first.
func TestTimer_HigherPriorityFirst(t *testing.T) {
	cfg := quick()
	cfg.TopicRate = 1 // a burst of one, then one per second
	r := newRig(t, cfg)
	r.limit("edges/pools/low", 0, 0)
	r.limit("edges/pools/high", 0, 0)
	r.WaitIdle() // orders and dead letters are on different topics: the limits must apply before dead letters arrive
	for i := range int64(2) {
		r.fail(i, "low")
		r.fail(10+i, "high")
	}
	r.Eventually("all dead letters are due", func() bool {
		list := r.deadLetters(topics.Edges, schemas.RetryWaiting)
		return len(list) == 4 && !slices.ContainsFunc(list, isLater)
	})
	r.order(&schemas.RetryOrder{Topic: topics.Edges, Limits: []schemas.RetryLimit{
		{Scope: "edges/pools/low", Rate: 10}, {Scope: "edges/pools/high", Rate: 10, Priority: 1},
	}})
	r.Eventually("all retries are published", func() bool { return len(r.published()) == 4 })
	sent := r.Records(topics.Edges)
	slices.SortFunc(sent, func(a, b *kgo.Record) int { return a.Timestamp.Compare(b.Timestamp) })
	keys := convert.All(sent, func(rec *kgo.Record) string { return string(rec.Key) })
	expect.NoDiff(t, keys, []string{"user:10", "user:11", "user:0", "user:1"}, "order of retries: high before low")
}

// Dead letters that cannot be retried, or exceed a cap, are parked. Done and parked dead letters are limited in number.
func TestRetries_ParksAndBounds(t *testing.T) {
	cfg := quick()
	cfg.InitialDelay, cfg.MaxDelay = time.Hour, time.Hour
	cfg.MaxWaiting, cfg.MaxParked = 2, 6
	r := newRig(t, cfg)
	publish := func(topic string, offset int64, value string) *schemas.DeadLetter {
		l := &schemas.DeadLetter{Topic: topic, Offset: offset, Group: "g", Reason: "bad", Key: []byte("k"), Value: []byte(value)}
		proctest.Publish(r.Wire, r.Streams.DeadLetters, l.Topic, l)
		return l
	}
	for _, topic := range []string{"removed", topics.DeadLetters, topics.RetryOrders, topics.TicksOf(topics.Pools)} {
		publish(topic, 1, "v")
	}
	publish(topics.Pins, 1, strings.Repeat("x", topics.MaxRetriedBytes))
	proctest.Publish(r.Wire, r.Streams.DeadLetters, topics.Follows, &schemas.DeadLetter{Topic: topics.Follows, Group: "g", Reason: "bad"})
	for i := range int64(10) {
		publish(topics.Users, i, "v")
	}
	proctest.Publish(r.Wire, r.Streams.DeadLetters, topics.Pins, &schemas.DeadLetter{Topic: topics.Users, Group: "g"})
	r.PublishBytes(topics.DeadLetters, "k", []byte("not a dead letter"))
	r.PublishBytes(topics.RetryOrders, "k", []byte("no order"))
	r.order(&schemas.RetryOrder{Topic: topics.Pins, Limits: []schemas.RetryLimit{{Scope: "users", Rate: 1}}})
	r.WaitIdle()
	for topic, want := range map[string]string{
		"removed": "the topic accepts no retries", topics.DeadLetters: "the topic accepts no retries",
		topics.RetryOrders: "the topic accepts no retries", topics.TicksOf(topics.Pools): "the topic accepts no retries",
		topics.Pins: "the record is too large to keep", topics.Follows: "the record is empty",
	} {
		parked := slices.DeleteFunc(r.deadLetters(topic, ""), func(l schemas.RetriedDeadLetter) bool { return l.Group == topics.Retries })
		if len(parked) != 1 || parked[0].State != schemas.RetryParked || parked[0].Why != want {
			t.Errorf("%s: %+v, want one parked dead letter: %s", topic, parked, want)
		}
	}
	waits, parked := r.deadLetters(topics.Users, schemas.RetryWaiting), r.deadLetters(topics.Users, schemas.RetryParked)
	if len(waits) != 2 || len(parked) != 6 || parked[0].Why != "too many dead letters are waiting" {
		t.Errorf("of 10 dead letters, %d wait and %d are parked: %+v, want 2 and the newest 6", len(waits), len(parked), parked)
	}
	for _, l := range parked {
		expect.AtLeast(t, l.Offset, 4, "offset of a kept dead letter: the newest are kept")
	}
}

// WaitIdle does not wait for a dead letter whose retry is due later.
func TestWaitIdle_IgnoresDelayedRetries(t *testing.T) {
	cfg := quick()
	cfg.InitialDelay, cfg.MaxDelay = time.Hour, time.Hour
	r := newRig(t, cfg)
	r.fail(1, "bad")
	reader := topics.Reader{Group: topics.Retries, Topics: r.group(cfg).Reads()}
	ctx, cancel := context.WithTimeout(t.Context(), proctest.Patience)
	defer cancel()
	must.OK(t, topics.Wait(ctx, r.Kafka, schemas.MicrosOf(time.Now()), nil, reader))
	expect.Equal(t, len(r.deadLetters(topics.Edges, schemas.RetryWaiting)), 1, "dead letters that wait")
}

// An order retries parked dead letters and dead letters that were removed, but no dead letter that is done.
func TestOrder_RetriesParkedAndRemoved(t *testing.T) {
	cfg := quick()
	cfg.MaxAttempts = 0
	r := newRig(t, cfg)
	parked := r.fail(1, "bad")
	r.WaitIdle()
	must.Equal(t, len(r.deadLetters(topics.Edges, schemas.RetryParked)), 1, "parked dead letters")
	removed := *parked
	removed.Offset, removed.Key = 2, []byte("user:2")
	again := func() {
		r.order(&schemas.RetryOrder{Topic: topics.Edges, DeadLetters: []schemas.DeadLetter{*parked, removed}})
	}
	again()
	r.Eventually("both dead letters are done", func() bool { return len(r.deadLetters(topics.Edges, schemas.RetryDone)) == 2 })
	again()
	r.WaitIdle()
	list := r.deadLetters(topics.Edges, "")
	slices.SortFunc(list, func(a, b schemas.RetriedDeadLetter) int { return cmp.Compare(a.Offset, b.Offset) })
	if len(list) != 2 || list[0].State != schemas.RetryDone || list[1].State != schemas.RetryDone || list[1].Attempts != 1 {
		t.Errorf("got %+v, want two done dead letters", list)
	}
	expect.Equal(t, len(r.published()), 2, "retries published")
}

// If the retry header of a record names another record as the one that failed first, its dead letter is separate and is
// retried.
func TestDeadLetter_ForgedRetryHeaderIsSeparate(t *testing.T) {
	cfg := quick()
	cfg.InitialDelay, cfg.MaxDelay = time.Hour, time.Hour
	r := newRig(t, cfg)
	forge := func(offset, first int64) {
		l := &schemas.DeadLetter{Topic: topics.Edges, Partition: 1, Offset: offset, Group: topics.Pools, Reason: "forged",
			Key: []byte("user:1"), Value: []byte("forged"), Attempts: 99, FirstPartition: 1, FirstOffset: first}
		proctest.Publish(r.Wire, r.Streams.DeadLetters, l.Topic, l)
	}
	r.fail(1, "bad")
	forge(50, 1)
	forge(51, 2) // the dead letter of record 2 arrives later
	r.fail(2, "bad")
	r.WaitIdle()
	got := convert.All(r.deadLetters(topics.Edges, schemas.RetryWaiting), func(l schemas.RetriedDeadLetter) string {
		return fmt.Sprintf("%d after %d attempts: %s", l.Offset, l.Attempts, l.Reason)
	})
	slices.Sort(got)
	want := []string{"1 after 0 attempts: bad", "2 after 0 attempts: bad", "50 after 0 attempts: forged"}
	expect.NoDiff(t, got, want, "waiting dead letters")
}
