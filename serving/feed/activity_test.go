package feed

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/smartfeed/smartfeed/internal/testkit/expect"
	"github.com/smartfeed/smartfeed/internal/testkit/must"
	"github.com/smartfeed/smartfeed/schemas"
)

// fakeActivity records the announced users.
type fakeActivity struct {
	mu        sync.Mutex
	fault     fault
	announced []schemas.UserActivity
}

func (l *fakeActivity) Announce(ctx context.Context, r *schemas.UserActivity) error {
	err := l.fault.inject(ctx)
	l.mu.Lock()
	defer l.mu.Unlock()
	if err == nil {
		l.announced = append(l.announced, *r)
	}
	return err
}

// inactiveGenerator returns its chunk only after the user's visit is announced.
type inactiveGenerator struct{ *fakeGenerator }

func (g inactiveGenerator) Chunk(ctx context.Context, r schemas.ChunkRequest) (*schemas.Chunk, error) {
	chunk, err := g.fakeGenerator.Chunk(ctx, r)
	if err == nil && !r.Announced {
		chunk.Served.Items, chunk.Inactive = nil, true
	}
	return chunk, err
}

func TestVisit_AnnouncesInactiveUserBeforeChunk(t *testing.T) {
	for name, c := range map[string]struct {
		delay     time.Duration
		err       error
		announced int
	}{
		"announced":             {announced: 1},
		"the log fails":         {err: errFake},
		"the log is a bit slow": {delay: 100 * ms, announced: 1},
		"no ActivityLog":        {},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r, activity := stocked(t), &fakeActivity{}
				activity.fault.delay, activity.fault.err = c.delay, c.err
				r.deps.Generator = inactiveGenerator{r.gen}
				want := "*a *b *c f10"
				if name == "no ActivityLog" {
					want = "f10 f9 f8 f7" // a deployment without inactive users would not see this chunk
				} else {
					r.deps.Activity = activity
				}
				page := must.Get(r.Visit(t.Context(), viewer, "home", 4))(t)
				same(t, "items", names(page.Items), want)
				same(t, "announced", len(activity.announced), c.announced)
			})
		})
	}
}

func TestVisit_AnnouncesActivityWithoutItems(t *testing.T) {
	for name, c := range map[string]struct {
		announce bool
		items    bool
		delay    time.Duration
		want     int
	}{
		"announcement due":           {announce: true, want: 1},
		"not due":                    {},
		"its Served announces it":    {announce: true, items: true},
		"the log hangs":              {announce: true, delay: time.Hour},
		"the log outlasts the visit": {announce: true, delay: 300 * ms, want: 1},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r, activity := stocked(t), &fakeActivity{}
				activity.fault.delay = c.delay
				r.deps.Activity, r.gen.chunk.Announce = activity, c.announce
				if !c.items {
					r.gen.chunk.Served.Items = nil
				}
				start := time.Now()
				must.Get(r.Visit(t.Context(), viewer, "home", 4))(t)
				expect.Equal(t, time.Since(start), 0, "time that the answer waited")
				must.OK(t, r.Close(t.Context()))
				same(t, "announced", len(activity.announced), c.want)
				if c.want > 0 {
					same(t, "who", activity.announced[0].User, viewer)
				}
			})
		})
	}
}
