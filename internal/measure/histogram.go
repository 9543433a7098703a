package measure

import (
	"math/bits"
	"sync/atomic"
	"time"
)

// Histogram counts durations in buckets that are at most a thirty-second of their value wide, from a microsecond to
// hours, as HdrHistogram does with two digits. The zero value is empty. It is safe for concurrent use.
type Histogram struct {
	counts [buckets]atomic.Int64
	sum    atomic.Int64 // nanoseconds
	most   atomic.Int64
}

const (
	fine    = 5                // bits below the leading one that choose a bucket
	half    = 1 << fine        // buckets of one power of two
	powers  = 36               // of microseconds: 2^36 µs are 19 hours
	buckets = half * powers    // 9 KiB
	step    = time.Microsecond // width of the narrowest
)

// bucketOf returns the bucket of a duration. Values below half have a bucket each. Above, each power of two has half
// buckets.
func bucketOf(d time.Duration) int {
	v := uint64(max(d, 0) / step)
	if v < half {
		return int(v)
	}
	power := bits.Len64(v) - fine - 1 // the value without its last power bits is in [half, 2*half)
	return min(power*half+int(v>>power), buckets-1)
}

// upTo returns the greatest duration in a bucket.
func upTo(bucket int) time.Duration {
	if bucket < half {
		return time.Duration(bucket+1)*step - 1
	}
	power := bucket/half - 1
	return time.Duration(uint64(bucket%half+half+1)<<power)*step - 1
}

// Add counts a duration.
func (h *Histogram) Add(d time.Duration) {
	h.counts[bucketOf(d)].Add(1)
	h.sum.Add(int64(d))
	raise(&h.most, int64(d))
}

// raise sets v to n, unless it is higher.
func raise(v *atomic.Int64, n int64) {
	for {
		old := v.Load()
		if n <= old || v.CompareAndSwap(old, n) {
			return
		}
	}
}

// Count returns the number of added durations.
func (h *Histogram) Count() (n int64) {
	for i := range h.counts {
		n += h.counts[i].Load()
	}
	return n
}

// Mean returns the mean duration, 0 without any.
func (h *Histogram) Mean() time.Duration {
	if n := h.Count(); n > 0 {
		return time.Duration(h.sum.Load() / n)
	}
	return 0
}

// Max returns the longest duration.
func (h *Histogram) Max() time.Duration { return time.Duration(h.most.Load()) }

// Quantile returns a duration that the share q of the durations, 0 to 1, does not exceed: the upper bound of a bucket,
// and never more than Max. It returns 0 without any durations.
func (h *Histogram) Quantile(q float64) time.Duration {
	n := h.Count()
	if n == 0 {
		return 0
	}
	rank := max(int64(q*float64(n)+0.999999), 1)
	var seen int64
	for i := range h.counts {
		if seen += h.counts[i].Load(); seen >= rank {
			return min(upTo(i), h.Max())
		}
	}
	return h.Max()
}
