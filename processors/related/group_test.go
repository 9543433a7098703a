package related_test

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/smartfeed/smartfeed/internal/convert"
	"github.com/smartfeed/smartfeed/internal/testkit/expect"
	"github.com/smartfeed/smartfeed/internal/testkit/must"
	"github.com/smartfeed/smartfeed/internal/testkit/proctest"
	"github.com/smartfeed/smartfeed/processors/related"
	"github.com/smartfeed/smartfeed/processors/score"
	"github.com/smartfeed/smartfeed/schemas"
	"github.com/smartfeed/smartfeed/topics"
)

var base = schemas.MicrosOf(time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC))

func after(d time.Duration) schemas.Micros { return schemas.MicrosOf(base.Time().Add(d)) }

func pin(n int) schemas.Neighbor {
	return schemas.Neighbor{
		ID: schemas.ID(fmt.Sprintf("pin:%d", n)), Version: schemas.Version(100 + n), Quality: 1 + float64(n),
		Facets: schemas.Facets{
			Author: schemas.UserID(fmt.Sprintf("user:author-%d", n%3)),
			// Two of three interests each, so that some pairs are stronger than others.
			Interests: []schemas.InterestID{schemas.InterestID(fmt.Sprintf("interest:%d", n%3)), schemas.InterestID(fmt.Sprintf("interest:%d", (n+1)%3))},
		},
		Created: after(time.Duration(n) * time.Minute),
	}
}

// oracle sums the weights of all occurrences without forward decay.
type oracle struct {
	cfg     related.Config
	weights map[schemas.ID]map[schemas.ID]float64 // decayed to base
	boards  map[schemas.BoardID][]*schemas.BoardSave
}

func (o *oracle) add(of, other schemas.ID, weight float64, at schemas.Micros) {
	if o.weights[of] == nil {
		o.weights[of] = map[schemas.ID]float64{}
	}
	age := base.Time().Sub(at.Time())
	o.weights[of][other] += weight * math.Exp2(-age.Hours()/(30*24))
}

func (o *oracle) request(r *schemas.RelatedRequest) {
	for _, n := range r.Near {
		o.add(r.Pin.ID, n.Neighbor.ID, n.Weight, n.Time)
		o.add(n.Neighbor.ID, r.Pin.ID, n.Weight, n.Time)
	}
	for _, of := range r.Pin.Interests {
		for _, other := range r.Pin.Interests {
			if of != other {
				o.add(schemas.ID(of), schemas.ID(other), r.Weight, r.Time)
			}
		}
	}
}

func (o *oracle) save(s *schemas.BoardSave) {
	for _, other := range o.boards[s.Board] {
		weight, at := s.Weight, s.Time
		if other.Time > s.Time || other.Time == s.Time && other.Weight > s.Weight {
			weight, at = other.Weight, other.Time
		}
		if other.Pin.ID != s.Pin.ID {
			o.add(s.Pin.ID, other.Pin.ID, weight, at)
			o.add(other.Pin.ID, s.Pin.ID, weight, at)
		}
	}
	o.boards[s.Board] = append(o.boards[s.Board], s)
}

// neighbors returns the shares of an id's neighbors, strongest first.
func (o *oracle) neighbors(of schemas.ID) []schemas.RelatedItem {
	total := 0.0
	for _, w := range o.weights[of] {
		total += w
	}
	var list []schemas.RelatedItem
	for id, w := range o.weights[of] {
		list = append(list, schemas.RelatedItem{ID: id, Share: w / total})
	}
	slices.SortFunc(list, func(a, b schemas.RelatedItem) int {
		return cmp.Or(cmp.Compare(b.Share, a.Share), cmp.Compare(a.ID, b.ID))
	})
	return list
}

type rig struct {
	*proctest.Wire
	t      *testing.T
	member *proctest.Member
}

// newRig starts the group, for a parallel test.
func newRig(t *testing.T, cfg related.Config) *rig {
	t.Parallel()
	r := &rig{Wire: proctest.New(t), t: t}
	r.member = r.Start("a", related.Group(cfg, r.Streams))
	return r
}

// neighbors retries until this process owns the partition.
func (r *rig) neighbors(of schemas.ID, limit int) []schemas.RelatedItem {
	r.t.Helper()
	var list []schemas.RelatedItem
	r.Eventually("the neighbors of "+string(of), func() bool {
		var err error
		list, err = related.Reader{Rows: r.member.View(topics.Related)}.Neighbors(r.t.Context(), of, limit)
		if !errors.Is(err, schemas.ErrNotOwner) {
			must.OK(r.t, err)
		}
		return err == nil
	})
	return list
}

func (r *rig) send(e any) {
	switch e := e.(type) {
	case *schemas.RelatedRequest:
		proctest.Publish(r.Wire, r.Streams.RelatedRequests, string(e.Pin.ID), e)
	case *schemas.BoardSave:
		proctest.Publish(r.Wire, r.Streams.BoardSaves, string(e.Board), e)
	}
}

// Shares are those of the decayed sums, regardless of the order of arrival and the number of kills.
func TestRelated_SharesEqualDecayedSums(t *testing.T) {
	cfg := related.DefaultConfig()
	cfg.PairedBoardPins = 100 // no bound is exceeded
	o := &oracle{cfg: cfg, weights: map[schemas.ID]map[schemas.ID]float64{}, boards: map[schemas.BoardID][]*schemas.BoardSave{}}
	rng := rand.New(rand.NewPCG(1, 2))
	r := newRig(t, cfg)
	const events = 240
	for i := range events {
		at, weight := after(time.Duration(rng.Int64N(int64(120*24*time.Hour)))), []float64{0.5, 1, 3}[rng.IntN(3)]
		p := rng.IntN(12)
		if rng.IntN(3) == 0 {
			s := &schemas.BoardSave{Board: schemas.BoardID(fmt.Sprintf("board:%d", rng.IntN(4))), Time: at, Weight: weight, Pin: pin(p)}
			o.save(s)
			r.send(s)
			continue
		}
		req := &schemas.RelatedRequest{User: "user:u", Weight: weight, Time: at, Pin: pin(p)}
		for q := range 12 {
			if q != p && rng.IntN(4) == 0 {
				req.Near = append(req.Near, schemas.Near{Neighbor: pin(q), Weight: weight, Time: at})
			}
		}
		o.request(req)
		r.send(req)
		if i%60 == 30 {
			r.member.Kill()
			r.member.Restart()
		}
	}
	r.WaitIdle()
	compared := 0
	for of := range o.weights {
		want := o.neighbors(of)
		got := r.neighbors(of, 1000)
		if diff := gocmp.Diff(want, got, cmpopts.EquateApprox(1e-9, 0), cmpopts.IgnoreFields(schemas.RelatedItem{}, "Facets", "Created")); diff != "" {
			t.Errorf("neighbors of %s (-want +got):\n%s", of, diff)
		}
		for _, item := range got {
			expect.False(t, strings.HasPrefix(string(item.ID), "pin:") && item.Author == "", "neighbor %s of %s has no facets", item.ID, of)
		}
		compared += len(want)
	}
	expect.AtLeast(t, compared, 100, "compared neighbors")
}

// An action delivers the strongest neighbors, each with its write-time score and its share as the edge weight.
func TestRequest_DeliversNeighbors(t *testing.T) {
	cfg := related.DefaultConfig()
	cfg.DeliveredNeighbors = 2
	r := newRig(t, cfg)
	near := func(n int, weight float64) schemas.Near {
		return schemas.Near{Neighbor: pin(n), Weight: weight, Time: base}
	}
	r.send(&schemas.RelatedRequest{User: "user:first", Weight: 1, Time: base, Pin: pin(1), Near: []schemas.Near{near(2, 5), near(3, 2), near(4, 3)}})
	r.WaitIdle()
	r.send(&schemas.RelatedRequest{User: "user:second", Weight: 3, Time: base, Pin: pin(1)})
	r.WaitIdle()
	want := func(n int, share, weight float64) schemas.DeliveredPin {
		p := pin(n)
		return schemas.DeliveredPin{Pin: schemas.PinID(p.ID), Version: p.Version, PinContent: schemas.PinContent{Facets: p.Facets, Created: p.Created},
			BaseScore: score.Base(p.Quality, p.Created, cfg.ScoreHalfLife) + schemas.BaseScore(math.Log(share)+math.Log(weight))}
	}
	wants := []schemas.Delivery{
		{Source: schemas.Related, Users: []schemas.UserID{"user:first"}, Pins: []schemas.DeliveredPin{want(2, 0.5, 1), want(4, 0.3, 1)}},
		{Source: schemas.Related, Users: []schemas.UserID{"user:second"}, Pins: []schemas.DeliveredPin{want(2, 0.5, 3), want(4, 0.3, 3)}},
	}
	var got []schemas.Delivery
	for _, rec := range proctest.Drain(r.Wire, r.Streams.Deliveries) {
		expect.Equal(t, rec.Partition, topics.Partition(string(rec.Value.Users[0]), r.Kafka.Partitions), "partition of a delivery")
		got = append(got, *rec.Value)
	}
	slices.SortFunc(got, func(a, b schemas.Delivery) int { return cmp.Compare(a.Users[0], b.Users[0]) })
	expect.NoDiffBut(t, gocmp.Options{cmpopts.EquateApprox(1e-12, 0), cmpopts.EquateEmpty()}, got, wants, "deliveries")
}

// A neighbor is not offered if it is so old that its share underflows. Other neighbors are still offered.
func TestOffer_OmitsUnderflowingShares(t *testing.T) {
	r := newRig(t, related.DefaultConfig())
	long, longer := schemas.MicrosOf(time.Time{}), schemas.Micros(math.MinInt64)
	r.send(&schemas.RelatedRequest{User: "user:first", Weight: 1, Time: long, Pin: pin(1), Near: []schemas.Near{
		{Neighbor: pin(2), Weight: 1, Time: long}, {Neighbor: pin(3), Weight: 1, Time: longer}, {Neighbor: pin(4), Weight: 1, Time: base},
	}})
	r.WaitIdle()
	r.send(&schemas.RelatedRequest{User: "user:second", Weight: 3, Time: base, Pin: pin(1)})
	r.WaitIdle()
	for _, rec := range proctest.Drain(r.Wire, r.Streams.Deliveries) {
		if len(rec.Value.Pins) != 1 || rec.Value.Pins[0].Pin != "pin:4" || math.IsInf(float64(rec.Value.Pins[0].BaseScore), 0) {
			t.Errorf("%s is offered %+v, want only pin:4", rec.Value.Users[0], rec.Value.Pins)
		}
	}
}

// Only the strongest neighbors are kept, within a bound.
func TestTrim_KeepsStrongestNeighbors(t *testing.T) {
	cfg := related.DefaultConfig()
	cfg.MaxNeighbors, cfg.DeliveredNeighbors = 10, 0
	r := newRig(t, cfg)
	const all = 400
	for i := range all {
		n := (i * 37) % all // not in the order of strength
		r.send(&schemas.RelatedRequest{User: "user:u", Weight: 1, Time: base, Pin: pin(100_000),
			Near: []schemas.Near{{Neighbor: pin(n), Weight: float64(n + 1), Time: after(time.Duration(i))}}})
	}
	r.WaitIdle()
	got := r.neighbors(pin(100_000).ID, 10*cfg.MaxNeighbors)
	if limit := cfg.MaxNeighbors + cfg.MaxNeighbors/4; len(got) < cfg.MaxNeighbors || len(got) > limit {
		t.Fatalf("%d of %d neighbors are kept, want %d to %d", len(got), all, cfg.MaxNeighbors, limit)
	}
	for i, item := range got[:cfg.MaxNeighbors] {
		expect.Equal(t, item.ID, pin(all-1-i).ID, "neighbor %d", i)
	}
}

// widePin returns a pin with the longest facets that an event may have.
func widePin(n int) schemas.Neighbor {
	p := pin(n)
	p.Interests = nil
	for i := range schemas.MaxInterests {
		id := fmt.Sprintf("interest:%d-", i)
		p.Interests = append(p.Interests, schemas.InterestID(id+strings.Repeat("x", schemas.MaxIDBytes-len(id))))
	}
	return p
}

// The neighbors of a pin may need more than one record.
func TestOffer_SplitsDeliveriesByBytes(t *testing.T) {
	const half = 40
	cfg := related.DefaultConfig()
	cfg.MaxNeighbors, cfg.DeliveredNeighbors, cfg.PairedInterests = 2*half, 2*half, 0
	r := newRig(t, cfg)
	for _, from := range []int{1, 1 + half} {
		req := &schemas.RelatedRequest{User: "user:u", Weight: 1, Time: base, Pin: pin(0)}
		for n := range half {
			req.Near = append(req.Near, schemas.Near{Neighbor: widePin(from + n), Weight: 1, Time: base})
		}
		r.send(req)
		r.WaitIdle()
	}
	pins := map[schemas.PinID]bool{}
	for _, rec := range proctest.Drain(r.Wire, r.Streams.Deliveries) {
		for _, p := range rec.Value.Pins {
			pins[p.Pin] = true
		}
	}
	expect.Equal(t, len(pins), 2*half, "delivered pins")
	expect.Empty(t, r.DeadLetterReasons(), "dead letters")
}

// A board pairs only its last pins.
func TestSave_PairsLastPinsOfBoard(t *testing.T) {
	cfg := related.DefaultConfig()
	cfg.PairedBoardPins = 3
	r := newRig(t, cfg)
	for n := range 10 {
		r.send(&schemas.BoardSave{Board: "board:b", Time: after(time.Duration(n) * time.Second), Weight: 1, Pin: pin(n)})
	}
	r.send(&schemas.BoardSave{Board: "board:b", Time: after(-time.Hour), Weight: 1, Pin: pin(20)}) // late: not stored
	r.send(&schemas.BoardSave{Board: "board:b", Time: after(time.Hour), Weight: 1, Pin: pin(30)})
	r.WaitIdle()
	for of, want := range map[int][]schemas.ID{
		0:  {"pin:1", "pin:2", "pin:3"},
		20: {"pin:7", "pin:8", "pin:9"},
		30: {"pin:7", "pin:8", "pin:9"},
	} {
		got := convert.All(r.neighbors(pin(of).ID, 100), func(item schemas.RelatedItem) schemas.ID { return item.ID })
		slices.Sort(got)
		expect.NoDiff(t, got, want, "neighbors of pin:%d", of)
	}
}

func TestRelated_SendBadRecordsToDeadLetters(t *testing.T) {
	r := newRig(t, related.DefaultConfig())
	good := schemas.RelatedRequest{User: "user:u", Weight: 1, Time: base, Pin: pin(1)}
	weightless := good
	weightless.Weight = 0
	proctest.Publish(r.Wire, r.Streams.RelatedRequests, "pin:2", &good)
	proctest.Publish(r.Wire, r.Streams.RelatedRequests, "pin:1", &weightless)
	proctest.Publish(r.Wire, r.Streams.BoardSaves, "board:x", &schemas.BoardSave{Board: "board:y", Weight: 1, Pin: pin(1)})
	proctest.PublishTo(r.Wire, r.Streams.RelatedPairs, 0, "k", time.Time{},
		&schemas.RelatedPairs{Pins: []schemas.Neighbor{pin(1)}, Pairs: []schemas.Pair{{Of: "pin:9", Neighbor: 1, Weight: 1}}})
	r.WaitIdle()
	want := []string{
		`board save: key "board:x": want the board "board:y"`, `related pairs: neighbor 1 of "pin:9" with weight 1`,
		`related request: key "pin:2": want the pin "pin:1"`, `related request: pin "pin:1" of weight 0`,
	}
	expect.NoDiff(t, r.DeadLetterReasons(), want, "dead letters")
}

// A deleted pin keeps one small row and is no pin's neighbor. Later actions and saves that contain it do not change that.
func TestCard_DeletionRemovesNeighborsOnBothSides(t *testing.T) {
	r := newRig(t, related.DefaultConfig())
	act := func(on, near int) {
		r.send(&schemas.RelatedRequest{
			User: "user:1", Weight: 1, Time: base, Pin: pin(on), Near: []schemas.Near{{Neighbor: pin(near), Weight: 1, Time: base}},
		})
	}
	for other := 2; other < 6; other++ {
		act(1, other)
	}
	act(2, 3)
	r.WaitIdle()
	must.Equal(t, len(r.neighbors("pin:1", 100)), 4, "neighbors before the deletion")
	card := func(n int, deleted bool) {
		id := schemas.PinID(pin(n).ID)
		proctest.Publish(r.Wire, r.Streams.PinCards, string(id), &schemas.Card{PinVersion: schemas.PinVersion{Pin: id, Version: 200, PinContent: schemas.PinContent{Deleted: deleted}}})
	}
	card(1, true)
	card(1, true) // a repeat changes nothing
	card(3, false)
	r.WaitIdle()
	verify := func(when string) {
		t.Helper()
		expect.Equal(t, len(r.Rows(topics.Related, "pin:1")), 1, "%s: rows of the deleted pin", when)
		for of, want := range map[schemas.ID]int{"pin:1": 0, "pin:2": 1, "pin:3": 1, "pin:4": 0} {
			expect.Equal(t, len(r.neighbors(of, 100)), want, "%s: neighbors of %s", when, of)
		}
	}
	verify("deleted")
	act(1, 4) // late: after the deletion
	act(4, 1) // the user acted on the deleted pin before it was deleted
	for _, n := range []int{1, 4} {
		r.send(&schemas.BoardSave{Board: "board:b", Time: base, Weight: 1, Pin: pin(n)})
	}
	r.WaitIdle()
	verify("after later actions")
	expect.Equal(t, len(r.Rows(topics.Related, "pin:4")), 1, "rows of a pin without neighbors: only its strength")
}
