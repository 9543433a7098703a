package hedged

import (
	"math"
	"sync"
	"time"
)

// latency is a moving histogram of the latency of a store. Each bucket is a tenth wider than the one before, from 100 µs to
// about ten seconds. At maxSamples, all counts are halved, so that the last few thousand reads decide.
type latency struct {
	mu      sync.Mutex
	counts  [buckets]uint32
	total   uint32
	changed uint32        // samples since at was computed
	at      time.Duration // the last computed p99.9; 0: unknown
}

const (
	buckets    = 121
	minSamples = 1000 // with fewer samples, a p99.9 is meaningless
	maxSamples = 16_384
	computeAt  = 64 // new samples between computations; one takes about a hundred steps
)

// bucketOf returns the index of the bucket for d. Bucket i starts at 100 µs * 1.1^i.
func bucketOf(d time.Duration) int {
	if d <= 100*time.Microsecond {
		return 0
	}
	return min(int(math.Log(float64(d)/float64(100*time.Microsecond))/math.Log(1.1)), buckets-1)
}

// bound returns the upper bound of a bucket.
func bound(bucket int) time.Duration {
	return time.Duration(float64(100*time.Microsecond) * math.Pow(1.1, float64(bucket+1)))
}

func (l *latency) record(d time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.counts[bucketOf(d)]++
	l.total++
	l.changed++
	if l.total < maxSamples {
		return
	}
	l.total = 0
	for i := range l.counts {
		l.counts[i] /= 2
		l.total += l.counts[i]
	}
}

// p999 returns the p99.9 of the latency, at most a tenth too high. It returns 0 if there are too few samples.
func (l *latency) p999() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.total < minSamples {
		return 0
	}
	if l.at == 0 || l.changed >= computeAt {
		l.at, l.changed = l.compute(), 0
	}
	return l.at
}

// compute sums the counts from the slowest bucket down until they exceed a thousandth of the total.
func (l *latency) compute() time.Duration {
	slower, most := uint32(0), l.total/1000
	for i := buckets - 1; i > 0; i-- {
		if slower += l.counts[i]; slower > most {
			return bound(i)
		}
	}
	return bound(0)
}
