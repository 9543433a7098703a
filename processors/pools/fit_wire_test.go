package pools_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/smartfeed/smartfeed/internal/testkit/expect"
	"github.com/smartfeed/smartfeed/internal/testkit/must"
	"github.com/smartfeed/smartfeed/internal/testkit/proctest"
	"github.com/smartfeed/smartfeed/processors/pools"
	"github.com/smartfeed/smartfeed/processors/rows"
	"github.com/smartfeed/smartfeed/schemas"
	"github.com/smartfeed/smartfeed/topics"
)

// widePin returns a pin with the longest facets that an event may have.
func widePin(n int) schemas.DeliveredPin {
	p := pin(n, schemas.Micros(1000-n), "user:a")
	p.Pin += schemas.PinID(strings.Repeat("x", schemas.MaxIDBytes-len(p.Pin)))
	for i := range schemas.MaxInterests {
		id := fmt.Sprintf("interest:%d-", i)
		p.Interests = append(p.Interests, schemas.InterestID(id+strings.Repeat("x", schemas.MaxIDBytes-len(id))))
	}
	return p
}

// A visit to 100 pins with the longest facets does not fit in one record. Each visit is recorded even with the smallest
// MaxValueBytes that the configuration allows, and the rest is shown by the next visits.
func TestChunk_FitsRecordWithLongestFacets(t *testing.T) {
	const user, pins = schemas.UserID("user:wide"), 100
	cfg := pools.Config{MaxCandidates: 200, MaxSources: 3, MaxSeenPins: 1000, MaxRecentItems: 100}
	r := newRigWith(t, cfg, func(c *rows.Config) { c.MaxValueBytes = 512 << 10 })
	var want []schemas.PinID
	for n := range pins {
		p := widePin(n)
		r.deliver(schemas.Related, user, 1, p)
		want = append(want, p.Pin)
	}
	r.WaitIdle()
	var got []schemas.PinID
	for v := 0; len(got) < pins; v++ {
		chunk := must.Get(r.chunkOf(user, fmt.Sprintf("wide-%d", v), pins))(t)
		if len(chunk.Served.Items) == 0 {
			break
		}
		expect.Equal(t, len(chunk.Served.Deferred), 0, "pins that visit %d defers", v)
		for _, it := range chunk.Served.Items {
			got = append(got, it.Pin)
		}
		if w, err := r.generator.Why(t.Context(), schemas.WhyRequest{User: user, Pin: want[len(want)-1], Feed: "plain", Limit: pins}); err != nil {
			t.Error(err)
		} else if w.Fate == schemas.FateNext && len(got) < pins/2 {
			t.Errorf("visit %d: why reports the last pin as next", v)
		}
		proctest.Publish(r.Wire, r.Streams.Served, string(user), &chunk.Served)
		r.generator.Settle(user, chunk.Served.ID, schemas.Acknowledged)
	}
	expect.NoDiff(t, got, want, "pins of all visits")
	r.WaitIdle()
	expect.Empty(t, r.DeadLetterReasons(), "dead letters")
	entries := 0
	for _, rec := range proctest.Drain(r.Wire, r.Streams.FeedEntries) {
		entries += len(rec.Value.Items)
	}
	expect.Equal(t, entries, pins, "feed entries")
	expect.Equal(t, r.member.Status(topics.Pools).Effects["deferred"], 0, "deferred pins")
}

// chunkOf requests a chunk of the feed plain until this process owns the user's partition.
func (r *rig) chunkOf(user schemas.UserID, id string, limit int) (*schemas.Chunk, error) {
	r.t.Helper()
	r.pool(user, schemas.Related)
	ctx, cancel := context.WithTimeout(r.t.Context(), proctest.Patience)
	defer cancel()
	return r.generator.Chunk(ctx, schemas.ChunkRequest{
		Served: id, User: user, Feed: "plain", Limit: limit, Time: schemas.MicrosOf(time.Now()),
	})
}
