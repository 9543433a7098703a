package insight_test

import (
	stdcmp "cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/smartfeed/smartfeed/internal/testkit/expect"
	"github.com/smartfeed/smartfeed/internal/testkit/must"
	"github.com/smartfeed/smartfeed/schemas"
	"github.com/smartfeed/smartfeed/serving/insight"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const partitions = 16

var now = time.Date(2026, 11, 20, 15, 4, 5, 0, time.UTC)

// fakeParts answers with f.
type fakeParts func(context.Context, schemas.InsightRequest) (*schemas.InsightPart, error)

func (f fakeParts) Insight(ctx context.Context, r schemas.InsightRequest) (*schemas.InsightPart, error) {
	return f(ctx, r)
}

func newService(f fakeParts) *insight.Service {
	cfg := insight.Config{Partitions: partitions, SequenceDays: 35, Timeout: time.Minute}
	return insight.NewService(cfg, f, func() time.Time { return now })
}

// Every partition is requested once, with the same day, and the answers are the sums. Partition p has p users in each
// count.
func TestService_AddsUpAllPartitions(t *testing.T) {
	const total = partitions * (partitions - 1) / 2
	var mu sync.Mutex
	requested := map[int32]int{}
	service := newService(func(_ context.Context, r schemas.InsightRequest) (*schemas.InsightPart, error) {
		mu.Lock()
		defer mu.Unlock()
		requested[r.Partition]++
		expect.Equal(t, r.Today, int32(now.Unix()/86400), "today")
		n := int(r.Partition)
		part := &schemas.InsightPart{}
		for range r.Growth {
			part.Growth = append(part.Growth, schemas.GrowthDay{Day: "d", New: n, Daily: 2 * n, Active: 3 * n, Resurrected: 4 * n, Dormant: 5 * n})
		}
		if r.Xd28s {
			part.Xd28s = []schemas.Xd28{{Days: 1, Users: n}, {Days: 2, Users: 2 * n}}
		}
		for range r.Retention {
			part.Cohorts = append(part.Cohorts, schemas.Cohort{Week: "w", Users: n, Active: []int{n, 2 * n}})
		}
		if f := r.Funnel; f != nil {
			part.Steps = []schemas.FunnelStep{{Verb: f.Steps[0], Users: n * f.Days}, {Verb: f.Steps[1], Users: n * int(f.Within)}}
		}
		return part, nil
	})
	growth := must.Get(service.Growth(t.Context(), 2))(t)
	day := schemas.GrowthDay{Day: "d", New: total, Daily: 2 * total, Active: 3 * total, Resurrected: 4 * total, Dormant: 5 * total}
	expect.NoDiff(t, growth, []schemas.GrowthDay{day, day}, "growth")
	xd28s := must.Get(service.Xd28s(t.Context()))(t)
	expect.NoDiff(t, xd28s, []schemas.Xd28{{Days: 1, Users: total}, {Days: 2, Users: 2 * total}}, "xd28s")
	cohorts := must.Get(service.Retention(t.Context(), 1))(t)
	expect.NoDiff(t, cohorts, []schemas.Cohort{{Week: "w", Users: total, Active: []int{total, 2 * total}}}, "retention")
	steps := must.Get(service.Funnel(t.Context(), []schemas.Verb{"view", "save"}, 2*time.Microsecond, 7))(t)
	expect.NoDiff(t, steps, []schemas.FunnelStep{{Verb: "view", Users: 7 * total}, {Verb: "save", Users: 2 * total}}, "funnel")
	for p := range int32(partitions) {
		expect.Equal(t, requested[p], 4, "requests of partition %d, one for each answer", p)
	}
}

// If one partition does not answer, or differently, there is no answer: a smaller number would look like a loss of users.
func TestService_FailsWithoutEveryPart(t *testing.T) {
	for name, c := range map[string]struct {
		part *schemas.InsightPart
		err  error
	}{
		"no owner":        {err: schemas.ErrNotOwner},
		"too few weeks":   {part: &schemas.InsightPart{Cohorts: make([]schemas.Cohort, 2)}},
		"another insight": {part: &schemas.InsightPart{}},
	} {
		t.Run(name, func(t *testing.T) {
			service := newService(func(_ context.Context, r schemas.InsightRequest) (*schemas.InsightPart, error) {
				if r.Partition == 11 {
					return c.part, c.err
				}
				return &schemas.InsightPart{Cohorts: make([]schemas.Cohort, 3)}, nil
			})
			if cohorts, err := service.Retention(t.Context(), 3); err == nil || cohorts != nil || c.err != nil && !errors.Is(err, c.err) {
				t.Errorf("got %v, %v, want an error", cohorts, err)
			}
		})
	}
}

// A partition that hangs fails the answer at the deadline. Few requests are in flight at a time, and only those of one
// answer.
func TestService_BoundsTimeAndRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var inFlight, most atomic.Int32
		service := newService(func(ctx context.Context, r schemas.InsightRequest) (*schemas.InsightPart, error) {
			defer inFlight.Add(-1)
			if n := inFlight.Add(1); n > most.Load() {
				most.Store(n)
			}
			select {
			case <-ctx.Done():
				return nil, ctx.Err()
			case <-time.After(25 * time.Second):
				return &schemas.InsightPart{Xd28s: []schemas.Xd28{{Days: 1}}}, nil
			}
		})
		start := time.Now()
		answers := make([]error, 2)
		var wg sync.WaitGroup
		for i := range answers {
			wg.Go(func() { _, answers[i] = service.Xd28s(t.Context()) })
		}
		wg.Wait()
		slices.SortFunc(answers, func(a, b error) int { // the first answer takes 50 of 60 seconds
			return stdcmp.Compare(fmt.Sprint(a), fmt.Sprint(b))
		})
		if answers[0] != nil && answers[1] != nil || !errors.Is(stdcmp.Or(answers[0], answers[1]), context.DeadlineExceeded) || time.Since(start) != time.Minute {
			t.Errorf("after %s: got %v, want an answer, and an error after a minute", time.Since(start), answers)
		}
		expect.Equal(t, most.Load(), 8, "requests at a time")
	})
}

// interests are the actions by interest in each partition.
type interests [partitions]map[schemas.InterestID]uint64

func (all interests) Insight(_ context.Context, r schemas.InsightRequest) (*schemas.InsightPart, error) {
	own, part := all[r.Partition], &schemas.InsightPart{}
	if q := r.Totals; q != nil {
		for _, id := range slices.Sorted(maps.Keys(own)) {
			if id >= q.From && len(part.Totals) < q.Limit {
				part.Totals = append(part.Totals, schemas.InterestTotal{Interest: id, Actions: own[id]})
			}
		}
	}
	if len(r.Hours) > 200 {
		return nil, fmt.Errorf("hours of %d interests", len(r.Hours))
	}
	for _, id := range r.Hours {
		part.Hours = append(part.Hours, schemas.Popular{Interest: id, Actions: own[id], Hours: [7][24]uint64{4: {15: own[id]}}})
	}
	return part, nil
}

// The most popular interests are found although each is in few partitions, ties are in the order of their ids, and the pages
// of the partitions end at different ids.
func TestPopularity_EqualsBruteForce(t *testing.T) {
	const count = 20000 // several pages in each partition
	random := rand.New(rand.NewPCG(1, 2))
	all, counts := interests{}, map[schemas.InterestID]uint64{}
	for p := range all {
		all[p] = map[schemas.InterestID]uint64{}
		for range 4000 + 1000*p {
			id := schemas.InterestID(fmt.Sprint("interest:", random.IntN(count)))
			all[p][id]++
			counts[id]++
		}
	}
	want := slices.SortedFunc(maps.Keys(counts), func(a, b schemas.InterestID) int {
		return stdcmp.Or(stdcmp.Compare(counts[b], counts[a]), stdcmp.Compare(a, b))
	})
	for _, limit := range []int{1, 10, insight.MaxPopular} {
		popular := must.Get(newService(all.Insight).Popularity(t.Context(), limit))(t)
		expect.Equal(t, len(popular), limit, "popular pins")
		for i, p := range popular {
			if p.Interest != want[i] || p.Actions != counts[want[i]] || p.Hours[4][15] != p.Actions {
				t.Fatalf("%d of %d: %s with %d, want %s with %d", i, limit, p.Interest, p.Actions, want[i], counts[want[i]])
			}
		}
	}
	none, err := newService(interests{}.Insight).Popularity(t.Context(), 3)
	if err != nil || none == nil || len(none) != 0 {
		t.Errorf("without actions: got %v, %v, want an empty list", none, err)
	}
}

func TestService_RejectsOutOfRange(t *testing.T) {
	service := newService(func(context.Context, schemas.InsightRequest) (*schemas.InsightPart, error) {
		t.Error("a part was requested")
		return &schemas.InsightPart{}, nil
	})
	_, growth := service.Growth(t.Context(), insight.MaxDays+1)
	_, retention := service.Retention(t.Context(), 0)
	_, steps := service.Funnel(t.Context(), nil, time.Hour, 1)
	_, days := service.Funnel(t.Context(), []schemas.Verb{"view"}, time.Hour, 36)
	_, within := service.Funnel(t.Context(), []schemas.Verb{"view"}, 0, 1)
	_, popular := service.Popularity(t.Context(), insight.MaxPopular+1)
	for name, err := range map[string]error{"growth": growth, "retention": retention, "steps": steps, "days": days, "within": within, "popular": popular} {
		_, isRequest := err.(*insight.RequestError)
		expect.True(t, isRequest, "%s: got %v, want a RequestError", name, err)
	}
}
