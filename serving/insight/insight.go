// Package insight answers how a product grows, what the arms of experiments do, and which interests are popular at which hours. The users of each partition
// are counted by the process that owns it (see processors/insights). A Service requests the parts of all partitions and
// adds them up. If it does not receive every part in time, it returns an error, and never a smaller number.
package insight

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/smartfeed/smartfeed/internal/convert"
	"github.com/smartfeed/smartfeed/schemas"
	"github.com/smartfeed/smartfeed/topics"
)

// Parts returns the part of an insight that one partition has.
type Parts interface {
	Insight(ctx context.Context, r schemas.InsightRequest) (*schemas.InsightPart, error)
}

// Config limits requests.
type Config struct {
	Partitions   int32
	SequenceDays int           // days that sequences are kept
	Timeout      time.Duration // of an answer
	// Arms returns the present shares of the arms, by feed and arm, including the arm "" of the users in no other one.
	Arms func() map[string]map[string]float64
}

// Bounds of requests.
const (
	MaxDays    = 90 // of growth
	MaxWeeks   = 52 // of retention
	MaxSteps   = 10 // of a funnel
	MaxPopular = 1000
	MaxActions = 50 // verbs of experiments

	maxTotals = 5000 // interests of a page; at most 1.5 MB
	maxHours  = 200  // interests whose hours one request names; at most 60 KB
)

// RequestError is returned for an invalid request.
type RequestError struct{ Problem string }

// Error returns the problem.
func (e *RequestError) Error() string { return e.Problem }

// within returns a RequestError unless a number is 1 to most.
func within(name string, n, most int) error {
	if n < 1 || n > most {
		return &RequestError{fmt.Sprintf("%s: %d: want 1 to %d", name, n, most)}
	}
	return nil
}

// Service answers from the parts of all partitions. It computes one answer at a time: insights are for people, who can
// wait, and the processes have other work.
type Service struct {
	cfg   Config
	parts Parts
	now   func() time.Time
	turn  *semaphore.Weighted
}

// NewService returns a service.
func NewService(cfg Config, parts Parts, now func() time.Time) *Service {
	return &Service{cfg: cfg, parts: parts, now: now, turn: semaphore.NewWeighted(1)}
}

// answer returns the result of f, which it calls when no other answer is computed, within the deadline.
func answer[T any](ctx context.Context, s *Service, what string, f func(context.Context) ([]T, error)) (list []T, err error) {
	ctx, cancel := context.WithTimeout(ctx, s.cfg.Timeout)
	defer cancel()
	if err = s.turn.Acquire(ctx, 1); err == nil {
		list, err = f(ctx)
		s.turn.Release(1)
	}
	if err != nil {
		return nil, fmt.Errorf("answer %s: %w", what, err)
	}
	return list, nil
}

// each requests the parts of all partitions, and calls add with one at a time.
func (s *Service) each(ctx context.Context, r schemas.InsightRequest, add func(*schemas.InsightPart) error) error {
	r.Today = int32(s.now().Unix() / (24 * 60 * 60))
	var mu sync.Mutex
	return topics.Concurrently(ctx, int(s.cfg.Partitions), func(ctx context.Context, partition int) error {
		of := r
		of.Partition = int32(partition)
		part, err := s.parts.Insight(ctx, of)
		if err != nil {
			return err
		}
		mu.Lock()
		defer mu.Unlock()
		return add(part)
	})
}

// sum returns the sum of a list in the parts of all partitions, element by element.
func sum[T any](ctx context.Context, s *Service, r schemas.InsightRequest, list func(*schemas.InsightPart) []T, add func(*T, T)) (total []T, err error) {
	err = s.each(ctx, r, func(p *schemas.InsightPart) error {
		part := list(p)
		if total == nil {
			total = part
			return nil
		}
		if len(part) != len(total) {
			return fmt.Errorf("a part has %d elements, another %d: run the same release in all processes", len(part), len(total))
		}
		for i := range part {
			add(&total[i], part[i])
		}
		return nil
	})
	return total, err
}

// summed answers with a sum.
func summed[T any](ctx context.Context, s *Service, what string, r schemas.InsightRequest, list func(*schemas.InsightPart) []T, add func(*T, T)) ([]T, error) {
	return answer(ctx, s, what, func(ctx context.Context) ([]T, error) { return sum(ctx, s, r, list, add) })
}

// Growth returns the state changes of the last days up to today, oldest first. days is 1 to MaxDays.
func (s *Service) Growth(ctx context.Context, days int) ([]schemas.GrowthDay, error) {
	if err := within("days", days, MaxDays); err != nil {
		return nil, err
	}
	list := func(p *schemas.InsightPart) []schemas.GrowthDay { return p.Growth }
	return summed(ctx, s, "growth", schemas.InsightRequest{Growth: days}, list, (*schemas.GrowthDay).Add)
}

// Xd28s returns, for each number of days, how many users acted on that many of the last 28 days, including today.
func (s *Service) Xd28s(ctx context.Context) ([]schemas.Xd28, error) {
	list := func(p *schemas.InsightPart) []schemas.Xd28 { return p.Xd28s }
	return summed(ctx, s, "xd28s", schemas.InsightRequest{Xd28s: true}, list, (*schemas.Xd28).Add)
}

// Retention returns the cohorts of the last weeks up to the present one, oldest first. weeks is 1 to MaxWeeks.
func (s *Service) Retention(ctx context.Context, weeks int) ([]schemas.Cohort, error) {
	if err := within("weeks", weeks, MaxWeeks); err != nil {
		return nil, err
	}
	list := func(p *schemas.InsightPart) []schemas.Cohort { return p.Cohorts }
	return summed(ctx, s, "retention", schemas.InsightRequest{Retention: weeks}, list, (*schemas.Cohort).Add)
}

// Funnel returns how many users took the steps in order within the given time, in the last days up to today. There are
// 1 to MaxSteps steps, days is at least 1 and at most Config.SequenceDays, and period is above 0. If a user has more than
// some thousand actions on a day, only the first ones count.
func (s *Service) Funnel(ctx context.Context, steps []schemas.Verb, period time.Duration, days int) ([]schemas.FunnelStep, error) {
	if err := cmp.Or(within("steps", len(steps), MaxSteps), within("days", days, s.cfg.SequenceDays)); err != nil {
		return nil, err
	}
	if period <= 0 {
		return nil, &RequestError{fmt.Sprintf("within: %s: want above 0", period)}
	}
	request := schemas.FunnelRequest{Steps: steps, Within: schemas.MicrosIn(period), Days: days}
	list := func(p *schemas.InsightPart) []schemas.FunnelStep { return p.Steps }
	return summed(ctx, s, "funnel", schemas.InsightRequest{Funnel: &request}, list, (*schemas.FunnelStep).Add)
}

// Popularity returns the interests with the most actions, with their hours. limit is 1 to MaxPopular.
func (s *Service) Popularity(ctx context.Context, limit int) ([]schemas.Popular, error) {
	if err := within("limit", limit, MaxPopular); err != nil {
		return nil, err
	}
	list := func(p *schemas.InsightPart) []schemas.Popular { return p.Hours }
	return answer(ctx, s, "popularity", func(ctx context.Context) ([]schemas.Popular, error) {
		ids, err := s.mostPopular(ctx, limit)
		all := []schemas.Popular{}
		for some := range slices.Chunk(ids, maxHours) {
			with, failed := sum(ctx, s, schemas.InsightRequest{Hours: some}, list, (*schemas.Popular).Add)
			all, err = append(all, with...), cmp.Or(err, failed)
		}
		slices.SortFunc(all, func(a, b schemas.Popular) int {
			return cmp.Or(cmp.Compare(b.Actions, a.Actions), cmp.Compare(a.Interest, b.Interest))
		})
		return all, err
	})
}

// mostPopular returns the n interests with the most actions, ties by name. It reads pages, because there may be too many
// interests to hold them all.
func (s *Service) mostPopular(ctx context.Context, n int) (ids []schemas.InterestID, err error) {
	var most []schemas.InterestTotal
	for from, more := schemas.InterestID(""), true; more; {
		var page map[schemas.InterestID]uint64
		if page, from, more, err = s.totals(ctx, from); err != nil {
			return nil, err
		}
		for id, actions := range page {
			most = append(most, schemas.InterestTotal{Interest: id, Actions: actions})
		}
		slices.SortFunc(most, func(a, b schemas.InterestTotal) int {
			return cmp.Or(cmp.Compare(b.Actions, a.Actions), cmp.Compare(a.Interest, b.Interest))
		})
		most = most[:min(len(most), n)]
	}
	return convert.All(most, func(t schemas.InterestTotal) schemas.InterestID { return t.Interest }), nil
}

// totals returns the actions of interests from an id on, and the first id that it leaves out, if there are more. The pages
// of the partitions end at different ids, so those beyond the first end are incomplete.
func (s *Service) totals(ctx context.Context, from schemas.InterestID) (page map[schemas.InterestID]uint64, next schemas.InterestID, more bool, err error) {
	page = map[schemas.InterestID]uint64{}
	request := schemas.InsightRequest{Totals: &schemas.TotalsRequest{From: from, Limit: maxTotals}}
	err = s.each(ctx, request, func(p *schemas.InsightPart) error {
		for _, t := range p.Totals {
			page[t.Interest] += t.Actions
		}
		if n := len(p.Totals); n == maxTotals {
			if end := p.Totals[n-1].Interest + "\x00"; !more || end < next {
				next, more = end, true
			}
		}
		return nil
	})
	for id := range page {
		if more && id >= next {
			delete(page, id)
		}
	}
	return page, next, more, err
}
