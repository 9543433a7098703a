package pools_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/smartfeed/smartfeed/internal/testkit/expect"
	"github.com/smartfeed/smartfeed/internal/testkit/proctest"
	"github.com/smartfeed/smartfeed/processors/pools"
	"github.com/smartfeed/smartfeed/processors/pools/layout"
	"github.com/smartfeed/smartfeed/schemas"
	"github.com/smartfeed/smartfeed/topics"
)

// showReported sends a Served of pins that a client must report within an hour, and report sends a report.
func (r *rig) showReported(id string, within time.Duration, numbers ...int) {
	now := schemas.MicrosOf(time.Now())
	s := &schemas.Served{ID: id, User: reader, Time: now, ReportWithin: within.Microseconds()}
	for _, n := range numbers {
		s.Items = append(s.Items, schemas.ServedItem{Pin: pin(n, 0, "").Pin, Source: schemas.Related, Created: 1})
	}
	proctest.Publish(r.Wire, r.Streams.Served, string(reader), s)
	r.WaitIdle()
}

func (r *rig) report(id string, numbers ...int) {
	i := &schemas.ClientImpressions{ID: id, Time: schemas.MicrosOf(time.Now()), User: reader, Visit: "v"}
	for _, n := range numbers {
		i.Pins = append(i.Pins, pin(n, 0, "").Pin)
	}
	proctest.Publish(r.Wire, r.Streams.ImpressionReports, string(reader), i)
	r.WaitIdle()
}

// candidates returns the numbers of the pins that the reader can be shown, ascending.
func (r *rig) candidates() (numbers []int) {
	for _, item := range r.pool(reader, schemas.Related).Items {
		n := 0
		_, _ = fmt.Sscanf(string(item.Pin), "pin:%d", &n)
		numbers = append(numbers, n)
	}
	slices.Sort(numbers)
	return numbers
}

func TestReported_UnreportedPinsReturnOnce(t *testing.T) {
	r := newRig(t, pools.Config{MaxCandidates: 8, MaxSources: 3, MaxSeenPins: 9, MaxRecentItems: 100}) // trims every two items
	want := func(when string, numbers ...int) {
		t.Helper()
		expect.NoDiff(t, r.candidates(), numbers, "%s: candidates", when)
	}
	for n := range 8 {
		r.deliver(schemas.Related, reader, 1, pin(n, schemas.Micros(n+1), "user:a"))
	}
	r.report("ignored", 1)
	r.showReported("one", time.Hour, 0)
	r.report("early", 1)
	r.showReported("two", time.Hour, 1, 2, 3, 4)
	r.showReported("delivered", 0, 5, 6)
	r.report("late", 2, 5, 2, 100)
	r.report("again", 2)
	want("before the timeout", 7)
	r.tick(59*time.Minute, reader)
	want("a minute before the timeout", 7)
	r.crash()
	r.tick(61*time.Minute, reader)
	want("after the timeout", 0, 3, 4, 7) // not 1 and 2, which were reported, nor 5 and 6, which need no report
	expect.Equal(t, r.count(reader, layout.KindUnreported), 0, "visits that still wait for reports")

	r.showReported("three", time.Hour, 3, 5)
	r.report("reported now", 3)
	r.tick(3*time.Hour, reader)
	want("3 was reported, and 5 was seen before", 0, 4, 7)
	r.showReported("four", 0, 0, 4, 200, 201, 202) // removes the oldest seen pins, among them places of pins that returned
	want("older candidates than the removed seen pins are refused")
	expect.AtMost(t, r.count(reader, layout.KindSeen), 9, "seen pins")
	expect.AtMost(t, r.count(reader, layout.KindSeenIndex), 5, "visits with seen pins")
}

// Without a feed that waits for reports, reports change no row.
func TestReported_DefaultKeepsRows(t *testing.T) {
	r := newRig(t, pools.Config{MaxCandidates: 8, MaxSources: 3, MaxSeenPins: 100, MaxRecentItems: 100})
	r.showReported("one", 0, 1, 2)
	before := r.Rows(topics.Pools, string(reader))
	r.report("r", 1, 3)
	r.tick(1000*time.Hour, reader)
	expect.Equal(t, len(r.Rows(topics.Pools, string(reader))), len(before), "rows")
}
