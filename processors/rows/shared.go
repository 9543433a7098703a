package rows

import (
	"fmt"
	"sync/atomic"
	"time"

	"github.com/cockroachdb/pebble/v2"
)

// Shared holds what the groups of a process share: the block cache, the memtable budget, the limit on compactions and the
// commit rate. It bounds memory and commits of the process, independent of the number of partitions. Close it when
// every Run has returned.
type Shared struct {
	cache     *pebble.Cache
	memTables int64
	recent    int64        // memory for cached rows, in bytes
	filters   int64        // memory for the filters of existing rows, in bytes
	stores    atomic.Int64 // most stores that the groups may open at the same time
	commitGap *gapController

	compactions *compactions
	scans       chan struct{} // holds an element while a partition lists its rows
	recoveries  recoveries
}

// NewShared returns the shared resources for groups of one process, which must all use the same configuration.
func NewShared(cfg Config) (*Shared, error) {
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("rows: %w", err)
	}
	return &Shared{
		cache:       pebble.NewCache(int64(cfg.BlockCacheBytes + cfg.MemTableBytes)), // Pebble reserves memtables from the cache
		memTables:   int64(cfg.MemTableBytes),
		recent:      int64(cfg.RowCacheBytes),
		filters:     int64(cfg.RowFilterBytes),
		commitGap:   newGapController(cfg.CommitInterval, cfg.MaxCommitInterval, cfg.CommitRate),
		compactions: newCompactions(),
		scans:       make(chan struct{}, 1),
		recoveries:  recoveries{now: time.Now, open: map[*store]int64{}},
	}, nil
}

// Close releases the memory of the cache.
func (s *Shared) Close() { s.cache.Unref() }

// memTable returns the memtable size of a partition. Each store has at most two memtables. The partitions of a group
// fill at the same rate. If all were flushed at the same time, they would occupy all CPUs. Therefore the sizes differ
// by up to a quarter from an even share.
func (s *Shared) memTable(partition int32) uint64 {
	const golden = 0x9e3779b97f4a7c15 // 2^64 divided by the golden ratio: its multiples are evenly spread
	const least, most = 1 << 20, 64 << 20
	even := min(s.memTables/(2*max(s.stores.Load(), 1)), most)
	spread := int64((uint64(partition)*golden + golden/2) >> 54) // 0 to 1023
	return uint64(min(max(even+even/4-even*spread/2048, least), most))
}

// recentBytes returns the cache size of recently read rows per store and generation.
func (s *Shared) recentBytes() int { return int(s.recent / (2 * max(s.stores.Load(), 1))) }

// filterBytes returns the size of the filter of existing rows per store.
func (s *Shared) filterBytes() int { return int(s.filters / max(s.stores.Load(), 1)) }

// gapController limits the commit rate of a process. Each partition waits a gap between the starts of two commits. The gap
// grows from minGap to maxGap as the commit rate rises from perSecond to twice that. A transaction costs the brokers half a
// millisecond of CPU; its records cost little.
//
// Each second, the gap moves a quarter of the way to its target. The commit rate depends strongly on the gap. With full
// steps, the gap would oscillate between its extremes as long as the load lasts. Records would then wait for the
// longest gap every other second.
type gapController struct {
	minGap, maxGap time.Duration
	perSecond      int64

	second  atomic.Int64 // the second that count belongs to
	count   atomic.Int64
	current atomic.Int64 // gap in nanoseconds
}

func newGapController(minGap, maxGap time.Duration, perSecond int) *gapController {
	p := &gapController{minGap: minGap, maxGap: maxGap, perSecond: int64(perSecond)}
	p.current.Store(int64(minGap))
	return p
}

// commit counts a commit that starts at now.
func (p *gapController) commit(now time.Time) {
	second := now.Unix()
	if before := p.second.Load(); before != second && p.second.CompareAndSwap(before, second) {
		gap := int64(p.gapAt(p.count.Swap(0)))
		if second-before > 1 {
			gap = int64(p.minGap)
		} else {
			gap = (3*p.current.Load() + gap) / 4
		}
		p.current.Store(gap)
	}
	p.count.Add(1)
}

// gap returns the current gap between the starts of two commits of a partition.
func (p *gapController) gap() time.Duration { return time.Duration(p.current.Load()) }

// gapAt returns the target gap for a commit rate. It grows linearly from minGap, at perSecond, to maxGap, at twice that.
func (p *gapController) gapAt(commits int64) time.Duration {
	over := min(max(commits-p.perSecond, 0), p.perSecond)
	return p.minGap + time.Duration(int64(p.maxGap-p.minGap)*over/p.perSecond)
}

// commitLimiter decides when a partition may commit: once per gap on average, and up to burst commits in a row after an
// idle period. At low load, a record that arrives soon after another does not wait for the gap. The algorithm is the
// generic cell rate algorithm (ITU-T I.371). due is when the next commit would be due if all were one gap apart.
type commitLimiter struct{ due time.Time }

// burst is the number of commits without a gap between them. With random arrivals at two thirds of the rate that the gap
// allows, four in ten records wait if every gap is kept, and two in ten if the average gap is kept.
const burst = 2

// wait returns how long the next commit must wait. It need not wait if the result is 0 or negative.
func (r *commitLimiter) wait(now time.Time, gap time.Duration) time.Duration {
	if r.due.Before(now) { // also for the zero time, which Sub cannot handle
		return 0
	}
	return r.due.Sub(now) - (burst-1)*gap
}

// commit counts a commit that starts at now.
func (r *commitLimiter) commit(now time.Time, gap time.Duration) {
	if r.due.Before(now) {
		r.due = now
	}
	r.due = r.due.Add(gap)
}
