package rows

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/smartfeed/smartfeed/internal/testkit/eventually"
	"github.com/smartfeed/smartfeed/internal/testkit/expect"
	"github.com/smartfeed/smartfeed/internal/testkit/must"
	"github.com/smartfeed/smartfeed/schemas"
	"github.com/smartfeed/smartfeed/topics"
)

func TestBatch_WaitsOnlyForDeferredRecords(t *testing.T) {
	const deferred, prompt = true, false
	start := time.Unix(100, 0)
	for name, c := range map[string]struct {
		records []bool // one per second
		wakes   []bool // whether the committer is notified
		want    time.Duration
	}{
		"no record":             {nil, nil, 0},
		"prompt":                {[]bool{prompt, prompt}, []bool{true, false}, 0},
		"deferred":              {[]bool{deferred}, []bool{true}, 9 * time.Second},
		"several deferred":      {[]bool{deferred, deferred, deferred}, []bool{true, false, false}, 7 * time.Second},
		"prompt after deferred": {[]bool{deferred, prompt, prompt}, []bool{true, true, false}, 0},
		"deferred after prompt": {[]bool{prompt, deferred}, []bool{true, false}, 0},
		"deferred for too long": {slices.Repeat([]bool{deferred}, 13), nil, -3 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			b, now := newBatch(1), start
			for i, record := range c.records {
				if got := b.add(record, func() time.Time { return now }); c.wakes != nil && got != c.wakes[i] {
					t.Errorf("record %d: notified %t, want %t", i, got, c.wakes[i])
				}
				now = now.Add(time.Second)
			}
			expect.NoDiff(t, b.deferredFor(now, 10*time.Second), c.want, "wait")
			b.reset()
			expect.Equal(t, b.deferredFor(now, time.Hour), 0, "time it waits for after a reset")
		})
	}
}

// Deferred records are not committed before the interval has passed, but when the partition stops.
func TestDeferred_CommitWaitsForIntervalOrStop(t *testing.T) {
	t.Parallel()
	const n = 30
	for name, c := range map[string]struct {
		interval time.Duration
		before   int64 // records committed before the partitions stop
	}{"short interval": {50 * time.Millisecond, n}, "long interval": {time.Hour, 0}} {
		t.Run(name, func(t *testing.T) {
			w := newWire(t)
			g := w.counter("t-in")
			g.Inputs[0] = g.Inputs[0].Deferred()
			r := newRunner(t, w, t.TempDir(), g)
			r.cfg.DeferredCommitInterval, r.cfg.HandoverTimeout = c.interval, 30*time.Second // a busy machine takes seconds
			stop := start(t, r)
			eventually.True(t, "it is ready", func() bool { return r.Status().Ready })
			processed := func() (sum int64) {
				for i := range r.slots {
					if last, ok := r.slots[i].partition.appliedByTopic()["t-in"]; ok {
						sum += last + 1
					}
				}
				return sum
			}
			for i := range n { // one after the other: it takes longer than the gap between commits
				w.send(t, "t-in", i, 1, user)
				eventually.True(t, "the record is processed", func() bool { return processed() == int64(i+1) })
			}
			if c.before > 0 {
				eventually.True(t, "the records are committed", func() bool { return r.Status().Counters.Records == c.before })
			} else if got := r.Status().Counters.Records; got != 0 {
				t.Errorf("%d records are committed before the interval has passed, want 0", got)
			}
			must.OK(t, stop())
			expect.NoDiff(t, w.Committed("t", "t-in"), n, "committed records after the stop")
			w.emittedOnce(t, n)
		})
	}
}

// A record of a group whose effects may wait does not cost a separate fetch. Other groups receive each record at once.
func TestDeferred_BrokersCollectRecords(t *testing.T) {
	for name, c := range map[string]struct {
		inputs []Input
		want   int32
	}{
		"all deferred": {[]Input{{topic: "a", defers: true}, {topic: "b", defers: true}}, deferredFetchBytes},
		"one prompt":   {[]Input{{topic: "a", defers: true}, {topic: "b"}}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			g := groupRun{r: &Runner{topo: &topology{inputs: c.inputs}, cfg: DefaultConfig()}}
			got := must.Get(g.consumer())(t).Consumer
			expect.Equal(t, got.Fetch.Min, c.want, "bytes that brokers collect")
			expect.Equal(t, got.MaxWaitTime, DefaultConfig().FetchMaxWait, "time for which brokers collect")
		})
	}
}

// Each row of a transaction is sent in its last state, also if a callback in between is undone.
func TestPutAndSendLatest_SendsLastStateOfEachRow(t *testing.T) {
	streams := must.Get(topics.Open(t.Context(), oneSchema{}))(t)
	s := streams.UsersDeleted
	s.Name = "out"
	b := newBench(t, group())
	put := func(row string, at schemas.Micros, result error) {
		_ = b.callAs("k", func(tx *Tx) error {
			_, err := tx.Own().Get([]byte(row)) // as callbacks do that change a row
			must.OK(t, err)
			PutAndSendLatest(tx.Own(), []byte(row), s, "k", &schemas.DeletedUser{User: "user:1", Time: at})
			return result
		})
	}
	put("a", 1, nil)
	put("b", 2, nil)
	put("a", 3, nil)
	put("a", 4, context.Canceled)
	_ = b.callAs("k", func(tx *Tx) error { _, err := tx.Own().Get([]byte("a")); return err })
	var sent []schemas.Micros
	for _, r := range new(transactionRecords).fill(b.pending, b.topo, 0) {
		if r.Topic == "out" {
			sent = append(sent, must.Get(s.Decode(r.Value))(t).Time)
		}
	}
	expect.NoDiff(t, sent, []schemas.Micros{2, 3}, "sent")
	expect.Equal(t, b.pending.sentEmits(), 2, "sent records")
}
