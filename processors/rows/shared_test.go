package rows

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/smartfeed/smartfeed/internal/testkit/expect"
	"github.com/smartfeed/smartfeed/internal/testkit/must"
)

func TestGapController_GapGrowsWithCommits(t *testing.T) {
	p := newGapController(10*time.Millisecond, 50*time.Millisecond, 400)
	for _, c := range []struct {
		commits int64
		want    time.Duration
	}{{0, 10}, {400, 10}, {500, 20}, {600, 30}, {800, 50}, {10_000, 50}} {
		expect.Equal(t, p.gapAt(c.commits), c.want*time.Millisecond, "gap at %d commits per second", c.commits)
	}
}

func TestGapController_FollowsTheLastSecond(t *testing.T) {
	p := newGapController(10*time.Millisecond, 50*time.Millisecond, 10)
	second := time.Unix(100, 0)
	for range 15 {
		p.commit(second)
	}
	expect.Equal(t, p.gap(), 10*time.Millisecond, "gap within the first second")
	p.commit(second.Add(time.Second))
	expect.Equal(t, p.gap(), 15*time.Millisecond, "gap after 15 commits in a second: a quarter of the way to 30 ms")
	p.commit(second.Add(time.Minute)) // an idle period: counts of a minute ago are ignored
	expect.Equal(t, p.gap(), 10*time.Millisecond, "gap after an idle period")
}

// Under a steady load, the gap converges to a value that allows the commit rate for which it is the target.
func TestGapController_GapConverges(t *testing.T) {
	for _, partitions := range []int{1, 8, 16, 24, 32, 64, 256} {
		p := newGapController(10*time.Millisecond, 50*time.Millisecond, 500)
		var gaps []time.Duration
		for second := range int64(40) {
			for range partitions * int(time.Second/p.gap()) { // each commits as often as allowed
				p.commit(time.Unix(second, 0))
			}
			if second >= 15 {
				gaps = append(gaps, p.gap())
			}
		}
		expect.AtMost(t, slices.Max(gaps)-slices.Min(gaps), 2*time.Millisecond, "%d busy partitions: oscillation of the gap", partitions)
	}
}

func TestShared_MemTablesFitTheBudget(t *testing.T) {
	cfg := DefaultConfig()
	cfg.MemTableBytes = 64 << 20
	s := must.Get(NewShared(cfg))(t)
	defer s.Close()
	for _, c := range []struct {
		stores int64
		even   uint64
	}{{0, 32 << 20}, {4, 8 << 20}, {16, 2 << 20}} {
		s.stores.Store(c.stores)
		sum, sizes := uint64(0), map[uint64]bool{}
		for p := range int32(8) {
			got := s.memTable(p)
			expect.Between(t, got, c.even*3/4, c.even*5/4, "memtable of partition %d with %d stores", p, c.stores)
			sum, sizes[got] = sum+got, true
		}
		expect.AtMost(t, sum, 8*c.even*21/20, "memtables with %d stores, together", c.stores)
		expect.Equal(t, len(sizes), 8, "different memtables with %d stores", c.stores)
	}
	s.stores.Store(1000)
	expect.Equal(t, s.memTable(0), 1<<20, "memtable with 1000 stores")
	s.stores.Store(1)
	s.memTables = 1 << 40
	expect.AtLeast(t, s.memTable(7), 48<<20, "memtable of a huge budget")
}

func TestRate_LastTenSeconds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var r rate
		for range 20 {
			r.add(30, time.Now())
			time.Sleep(time.Second)
		}
		expect.Equal(t, r.perSecond(time.Now()), 27, "records per second")
		time.Sleep(5 * time.Second)
		expect.Equal(t, r.perSecond(time.Now()), 12, "rate five seconds later")
		time.Sleep(time.Hour)
		expect.Equal(t, r.perSecond(time.Now()), 0, "rate an hour later")
	})
}

func TestBatch_ReleasesExcessMemory(t *testing.T) {
	b := newBatch(1)
	b.data = make([]byte, maxKept+1)
	b.writes = make([]write, maxKept/writeBytes+1)
	b.reset()
	expect.Equal(t, [2]int{cap(b.data), cap(b.writes)}, [2]int{}, "bytes and writes that an empty batch keeps")
	f := &transactionRecords{}
	for range maxReusedRecords + 1 {
		f.next()
	}
	f.reset()
	expect.Equal(t, cap(f.records), 0, "records that empty transactionRecords keep")
}

func TestCommitLimiter_Wait(t *testing.T) {
	const ms = time.Millisecond
	for name, c := range map[string]struct{ at, want []int }{ // when batches become ready, and when they are committed
		"the first two at once, then one per gap": {[]int{0, 0, 0, 0, 0}, []int{0, 0, 10, 20, 30}},
		"no wait when they arrive a gap apart":    {[]int{0, 10, 20, 30}, []int{0, 10, 20, 30}},
		"half a gap idle is half a gap less":      {[]int{0, 0, 15, 15}, []int{0, 0, 15, 20}},
		"two at most after an idle period":        {[]int{0, 1000, 1000, 1000}, []int{0, 1000, 1000, 1010}},
	} {
		began := time.Now()
		var r commitLimiter
		var got []int
		now := began
		for _, at := range c.at {
			if ready := began.Add(time.Duration(at) * ms); now.Before(ready) {
				now = ready
			}
			now = now.Add(max(r.wait(now, 10*ms), 0))
			r.commit(now, 10*ms)
			got = append(got, int(now.Sub(began)/ms))
		}
		expect.NoDiff(t, got, c.want, "%s: times of commits in ms", name)
	}
}
