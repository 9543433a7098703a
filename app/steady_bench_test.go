package app

import (
	"net/http"
	"testing"
	"time"

	"github.com/smartfeed/smartfeed/internal/testkit/expect"
	"github.com/smartfeed/smartfeed/internal/testkit/memory"
)

// The process serves for six minutes, which fill its caches and memtables, and then for five minutes, during which its memory
// must hardly grow.
const (
	steadyWarm  = 12
	steadyParts = 10
	steadyPart  = 30 * time.Second
	steadyRate  = 1000 // per second: pages, and a visit for every thirty
	steadyMore  = 0.1
)

// BenchmarkSteady serves pages and visits for five minutes after a warm-up. It fails if the memory grows by more than a
// tenth in that time.
func BenchmarkSteady(b *testing.B) {
	p := startBench(b)
	p.fillFeeds()
	pages, visits := p.pages(), visitPaths()
	var paths []string
	for i := range 30 * len(visits) {
		if i%30 == 0 {
			paths = append(paths, visits[i/30])
		}
		paths = append(paths, pages[i%len(pages)])
	}
	for range b.N {
		var held []float64
		for range steadyWarm + steadyParts {
			asked := load{Address: p.server.Addr(), Paths: paths, Conns: 64, Rate: steadyRate, For: steadyPart}.generate(b)
			if n := asked.Codes[http.StatusOK]; n < asked.Sent*95/100 || n < steadyRate*int(steadyPart.Seconds())/2 {
				b.Errorf("responses %v of %d requests, %d late: want almost all", asked.Codes, asked.Sent, asked.Late)
			}
			now, err := memory.Held()
			if err != nil {
				b.Skip(err)
			}
			held = append(held, now.Resident)
		}
		first, last := held[steadyWarm-1], held[len(held)-1]
		b.Logf("MiB held every %s: %.0f", steadyPart, held)
		b.ReportMetric(first, "MiB-when-warm")
		b.ReportMetric(last, "MiB-5m-later")
		expect.AtMost(b, last, (1+steadyMore)*first, "MiB after five minutes")
	}
}
