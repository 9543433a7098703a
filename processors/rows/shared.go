package rows

import (
	"fmt"
	"sync/atomic"
	"time"

	"github.com/cockroachdb/pebble/v2"
)

// Shared is what the groups of a process have in common, so that memory and commits are bounded for the process and
// not for each partition: the block cache, the memtable budget, compactions, the pace of commits. Close it when every Run has
// returned.
type Shared struct {
	cache     *pebble.Cache
	memTables int64
	recent    int64        // bytes of rows kept in memory
	stores    atomic.Int64 // that the groups may open at the same time
	pace      *pace

	compactions *compactions
	recoveries  recoveries
}

// NewShared makes the shared parts for groups of one process, from the configuration that all of them are given.
func NewShared(cfg Config) (*Shared, error) {
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("rows: %w", err)
	}
	return &Shared{
		cache:       pebble.NewCache(cfg.CacheBytes + cfg.MemTableBytes), // Pebble takes memtables out of the cache
		memTables:   cfg.MemTableBytes,
		recent:      cfg.RecentBytes,
		pace:        newPace(cfg.Gap, cfg.MaxGap, cfg.CommitsPerSecond),
		compactions: newCompactions(),
		recoveries:  recoveries{now: time.Now, open: map[*store]int64{}},
	}, nil
}

// Close gives the cache's memory back.
func (s *Shared) Close() { s.cache.Unref() }

// memTable is the size of a partition's memtable: each store has two at most. The partitions of a group fill alike, and
// if all were flushed at the same moment, nothing else would run on the processors; so sizes differ, by at most a quarter
// from the even part.
func (s *Shared) memTable(partition int32) uint64 {
	const golden = 0x9e3779b97f4a7c15 // 2^64 divided by the golden ratio: its multiples are spread evenly
	const least, most = 1 << 20, 64 << 20
	even := min(s.memTables/(2*max(s.stores.Load(), 1)), most)
	spread := int64((uint64(partition)*golden + golden/2) >> 54) // 0 to 1023
	return uint64(min(max(even+even/4-even*spread/2048, least), most))
}

// recentBytes is what each store's partition may keep of rows read lately in one of two generations.
func (s *Shared) recentBytes() int { return int(s.recent / (2 * max(s.stores.Load(), 1))) }

// pace spreads the commits of all partitions of a process: each waits a gap between the starts of two commits, which
// grows from least to most as the process nears twice its commits a second. Transactions cost the brokers half a
// millisecond of CPU each; records do not. Each second it goes a quarter of the way: the commits of a second depend on the
// gap so much that all of the way would lead from one end to the other and back for as long as the load lasts, and records
// would wait for the greatest gap every other second.
type pace struct {
	least, most time.Duration
	perSecond   int64

	second  atomic.Int64 // that count is of
	count   atomic.Int64
	current atomic.Int64 // gap, nanoseconds
}

func newPace(least, most time.Duration, perSecond int) *pace {
	p := &pace{least: least, most: most, perSecond: int64(perSecond)}
	p.current.Store(int64(least))
	return p
}

// commit counts a commit that starts at now.
func (p *pace) commit(now time.Time) {
	second := now.Unix()
	if before := p.second.Load(); before != second && p.second.CompareAndSwap(before, second) {
		gap := int64(p.gapAt(p.count.Swap(0)))
		if second-before > 1 {
			gap = int64(p.least)
		} else {
			gap = (3*p.current.Load() + gap) / 4
		}
		p.current.Store(gap)
	}
	p.count.Add(1)
}

// gap is the least time between the starts of two commits of a partition.
func (p *pace) gap() time.Duration { return time.Duration(p.current.Load()) }

// gapAt grows linearly from least, at perSecond commits a second, to most, at twice as many.
func (p *pace) gapAt(commits int64) time.Duration {
	over := min(max(commits-p.perSecond, 0), p.perSecond)
	return p.least + time.Duration(int64(p.most-p.least)*over/p.perSecond)
}

// rhythm is when a partition may commit: once a gap on average, and up to atOnce commits in a row after a rest, because a
// record that comes soon after another shall not wait for the gap's end where there is no hurry otherwise. It is the
// generic cell rate algorithm (ITU-T I.371): due is when a commit would be due if all came a gap apart.
type rhythm struct{ due time.Time }

// atOnce is how many commits may follow each other without a gap. With records at random moments, at two thirds of what
// the gap allows, four in ten wait for a gap that is kept each time, and two in ten for one that is kept on average.
const atOnce = 2

// wait is how long the next commit must wait, not more than 0 if it need not.
func (r *rhythm) wait(now time.Time, gap time.Duration) time.Duration {
	if r.due.Before(now) { // the zero time, too: no duration can be taken off it
		return 0
	}
	return r.due.Sub(now) - (atOnce-1)*gap
}

// commit counts a commit that starts at now.
func (r *rhythm) commit(now time.Time, gap time.Duration) {
	if r.due.Before(now) {
		r.due = now
	}
	r.due = r.due.Add(gap)
}
