package hedged

import (
	"sync"
	"time"

	"github.com/smartfeed/smartfeed/internal/measure"
)

// latency measures the p99.9 of the latest calls of a store, of some thousands at most.
type latency struct {
	mu    sync.Mutex
	calls *measure.Histogram
	n     int           // number of calls
	at    time.Duration // the last result of p999; 0: unknown
}

const (
	minSamples = 1000 // with fewer samples, a p99.9 is meaningless
	maxSamples = 8192 // then the histogram starts again
	computeAt  = 64   // new samples between computations; one takes about a thousand steps
)

func (l *latency) record(d time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.calls == nil || l.n == maxSamples {
		l.calls, l.n = new(measure.Histogram), 0
	}
	l.calls.Add(d)
	if l.n++; l.n >= minSamples && (l.n-minSamples)%computeAt == 0 {
		l.at = l.calls.Quantile(0.999)
		l.at += l.at / 10 // of equal latencies, each would be the p99.9
	}
}

// p999 returns the p99.9 of the latency, a tenth higher. It returns 0 if there are too few samples.
func (l *latency) p999() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.at
}
