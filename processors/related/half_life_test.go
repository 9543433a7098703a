package related_test

import (
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/smartfeed/smartfeed/processors/related"
	"github.com/smartfeed/smartfeed/schemas"
)

// After a change of the half-life, strengths keep their values, later occurrences add to them, and a trim deletes the
// weakest.
func TestHalfLife_ChangeKeepsStrengths(t *testing.T) {
	t.Parallel()
	const day, month = 24 * time.Hour, 30 * 24 * time.Hour
	for name, lives := range map[string][]time.Duration{"raised": {day, month}, "lowered, and raised": {month, day, 2 * month}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cfg := related.DefaultConfig()
			cfg.MaxNeighbors, cfg.DeliveredNeighbors, cfg.HalfLife = 4, 0, lives[0]
			r := newRig(t, cfg)
			r.together(4, 1)
			want, all := map[schemas.ID]float64{"pin:1": 4}, 4.0
			for i, life := range lives[1:] {
				cfg.HalfLife = life
				r.member = r.Start("a", related.Group(cfg, r.Kafka.Partitions, r.Streams))
				r.together(10, 10+i)
				r.together(1, 20+i, 30+i, 40+i, 50+i) // more than Config.MaxNeighbors
				want[pin(10+i).ID] = 10
				all += 14
			}
			r.wantShares(actedOn, want, all)
			r.wantShares(next, want, all)
		})
	}
}

// Two pins. Actions on the first add neighbors by related-requests; the second gets its neighbors by related-pairs.
const (
	actedOn = schemas.ID("pin:100")
	next    = schemas.ID("pin:101")
)

// together adds recent occurrences of each of the others with both pins, the given number of times.
func (r *rig) together(times int, others ...int) {
	near := func(n int) []schemas.Near {
		return []schemas.Near{{Neighbor: pin(n), Weight: 1, Time: schemas.MicrosOf(time.Now())}}
	}
	for range times {
		for _, n := range others {
			now := schemas.MicrosOf(time.Now())
			r.send(&schemas.RelatedRequest{User: "user:u", Weight: 1, Time: now, Pin: pin(100), Near: near(n)})
			r.send(&schemas.RelatedRequest{User: "user:u", Weight: 1, Time: now, Pin: pin(n), Near: near(101)})
		}
	}
	r.WaitIdle()
}

// wantShares checks the strongest neighbors by the number of occurrences of each, relative to all.
func (r *rig) wantShares(of schemas.ID, times map[schemas.ID]float64, all float64) {
	r.t.Helper()
	want, got := map[schemas.ID]float64{}, map[schemas.ID]float64{}
	for id, n := range times {
		want[id] = n / all
	}
	for _, item := range r.neighbors(of, len(times)) {
		got[item.ID] = item.Share
	}
	// The decay between an action and the change of the half-life is a thousandth in two minutes.
	if diff := gocmp.Diff(want, got, cmpopts.EquateApprox(0.01, 0)); diff != "" {
		r.t.Errorf("shares of the neighbors of %s (-want +got):\n%s", of, diff)
	}
}
