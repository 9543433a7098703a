package conformance

import (
	"context"
	"sync"
	"testing"

	"github.com/smartfeed/smartfeed/internal/testkit/must"
	"github.com/smartfeed/smartfeed/schemas"
	"github.com/smartfeed/smartfeed/serving/feedstore"
)

func testPages(t *testing.T, open opener) {
	s, user := open(t, 100), newUser()
	write(t, s, feedstore.Batch{Entries: entries(user, 1, 30)})
	for _, c := range []struct {
		name  string
		below int64
		n     int
		want  []int64
	}{
		{"from the newest", top, 3, []int64{30, 29, 28}},
		{"below one", 28, 3, []int64{27, 26, 25}},
		{"to the end", 4, 10, []int64{3, 2, 1}},
		{"past the end", 1, 10, nil},
		{"below zero entries", 0, 10, nil},
		{"above all", 1000, 1, []int64{30}},
		{"limit zero", top, 0, nil},
	} {
		got, _ := page(t, s, user, c.below, c.n)
		same(t, c.name, positions(got), c.want)
	}
	got, _ := page(t, s, user, 8, 1)
	same(t, "complete entry", got, []schemas.FeedEntry{entry(user, 7)})
}

func testHoles(t *testing.T, open opener) {
	s, user := open(t, 100), newUser()
	write(t, s, feedstore.Batch{Entries: append(entries(user, 3, 4), entry(user, 6))})
	got, trimmed := page(t, s, user, top, 10)
	same(t, "positions", positions(got), []int64{6, 4, 3})
	same(t, "trim position", trimmed, int64(0))
}

func testTrimming(t *testing.T, open opener) {
	const keep = 40
	s, user := open(t, keep), newUser()
	for p := int64(1); p <= 500; p++ {
		write(t, s, feedstore.Batch{Entries: entries(user, p, p)})
		if p%7 != 0 {
			continue
		}
		got, trimmed := page(t, s, user, top, 1000)
		if n := p - trimmed; n < min(p, keep) || n > keep+keep/10 {
			t.Fatalf("after %d: trim position %d keeps %d, want %d to %d", p, trimmed, n, keep, keep+keep/10)
		}
		if len(got) != int(p-trimmed) || got[0].Position != p || got[len(got)-1].Position != trimmed+1 {
			t.Fatalf("after %d: got %v above trim position %d", p, positions(got), trimmed)
		}
	}
}

// testTrimmingWhileRead reads pages while they are trimmed. The trim position and the rows must be consistent, or the caller
// mistakes trimmed entries for entries that have not arrived.
func testTrimmingWhileRead(t *testing.T, open opener) {
	s, user := open(t, 20), newUser()
	write(t, s, feedstore.Batch{Entries: entries(user, 1, 20)})
	ctx, stop := context.WithCancel(t.Context())
	var writer sync.WaitGroup
	defer writer.Wait()
	defer stop()
	writer.Go(func() {
		for p := int64(21); ctx.Err() == nil; p++ {
			if err := s.Write(ctx, feedstore.Batch{Entries: entries(user, p, p)}); err != nil && ctx.Err() == nil {
				t.Errorf("Write: %v", err)
				return
			}
		}
	})
	for trims, last := 0, int64(0); trims < 20; {
		got, trimmed := page(t, s, user, top, 1000)
		if len(got) == 0 || int64(len(got)) != got[0].Position-trimmed {
			t.Fatalf("got %v above trim position %d: a hole", positions(got), trimmed)
		}
		if trimmed > last {
			trims, last = trims+1, trimmed
		}
	}
}

func testLateBelowTrimPosition(t *testing.T, open opener) {
	s, user := open(t, 20), newUser()
	write(t, s, feedstore.Batch{Entries: entries(user, 1, 60)})
	before, trimmed := page(t, s, user, top, 100)
	must.AtLeast(t, trimmed, 40, "trim position")
	odd := entry(user, 40)
	odd.Time = 1e12                           // by a fast clock: later than all entries after it
	late := append(entries(user, 1, 30), odd) // a replay of the log
	write(t, s, feedstore.Batch{Entries: late})
	got, again := page(t, s, user, top, 100)
	same(t, "entries", got, before)
	same(t, "trim position", again, trimmed)
}

func testSwept(t *testing.T, open opener) {
	s, user := open(t, 100), newUser()
	swept := schemas.FeedEntry{User: user, Position: 2, Time: 1}
	for name, batches := range map[string][][]schemas.FeedEntry{
		"sweep last":  {entries(user, 1, 3), {swept}},
		"sweep first": {{swept}, entries(user, 1, 3)},
	} {
		for _, b := range batches {
			write(t, s, feedstore.Batch{Entries: b})
		}
		got, _ := page(t, s, user, top, 10)
		same(t, name, got, []schemas.FeedEntry{entry(user, 3), swept, entry(user, 1)})
	}
}
