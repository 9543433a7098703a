package pools_test

import (
	"fmt"
	"syscall"
	"testing"
	"time"

	"github.com/smartfeed/smartfeed/internal/testkit/deletedtest"
	"github.com/smartfeed/smartfeed/internal/testkit/must"
	"github.com/smartfeed/smartfeed/internal/testkit/proctest"
	"github.com/smartfeed/smartfeed/processors/pools"
	"github.com/smartfeed/smartfeed/schemas"
)

// BenchmarkDeliveries delivers pins to a few users at a time, after each user was offered a given number of pins that all
// entered the pool. The cost of a delivery must not grow with that number. The CPU time is that of the entire process,
// including the embedded broker.
func BenchmarkDeliveries(b *testing.B) {
	for _, before := range []int{1_000, 100_000, 1_000_000} {
		b.Run(fmt.Sprintf("after=%d", before), func(b *testing.B) {
			w := proctest.NewOf(b, 1)
			w.Start("a", pools.Group(pools.DefaultConfig(), w.Streams, deletedtest.Of()))
			users := make([]schemas.UserID, 4)
			for i := range users {
				users[i] = schemas.UserID(fmt.Sprintf("user:%d", i))
				proctest.Publish(w, w.Streams.Edges, string(users[i]),
					&schemas.Edge{User: users[i], Other: "user:a", Kind: schemas.FollowEdge, Live: true, Time: 1})
			}
			offer(w, users, 0, before)
			w.WaitIdle()
			const records = 50_000
			b.ResetTimer()
			for range b.N {
				start := cpu(b)
				offer(w, users, before, records)
				w.WaitIdle()
				b.ReportMetric((cpu(b)-start).Seconds()*1e6/records/float64(len(users)), "cpu-µs/delivery")
				before += records
			}
			b.ReportMetric(b.Elapsed().Seconds()*1e6/float64(b.N)/records/float64(len(users)), "µs/delivery")
		})
	}
}

// offer delivers n pins, each newer than the ones before.
func offer(w *proctest.Wire, users []schemas.UserID, from, n int) {
	const batch = 500
	for n > 0 {
		var list []*schemas.Delivery
		for range min(n, batch) {
			p := pin(from, schemas.Micros(from), "user:a")
			p.Board = "board:about-the-usual-length"
			p.Interests = []schemas.InterestID{"interest:1", "interest:22", "interest:333", "interest:4444"}
			list = append(list, &schemas.Delivery{Source: schemas.Following, Pins: []schemas.DeliveredPin{p}, Users: users})
			from++
		}
		proctest.PublishTo(w, w.Streams.Deliveries, 0, "user:a", time.Time{}, list...)
		n -= len(list)
	}
}

// cpu returns the CPU time that the process has used.
func cpu(b *testing.B) time.Duration {
	var u syscall.Rusage
	must.OK(b, syscall.Getrusage(syscall.RUSAGE_SELF, &u))
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
