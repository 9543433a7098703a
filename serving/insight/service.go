package insight

import (
	"context"
	"fmt"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/smartfeed/smartfeed/internal/settings"
	"github.com/smartfeed/smartfeed/schemas"
)

// Config limits the cost of insights. See DefaultConfig.
type Config struct {
	SequenceRetention time.Duration `yaml:"sequence_retention" default:"840h" range:"24h..9600h" help:"retention of sequences of actions, in whole days"`
	Timeout           time.Duration `yaml:"timeout" default:"10s" range:"10ms..5m" help:"timeout of an answer"`
	SweepInterval     time.Duration `yaml:"sweep_interval" default:"1h" range:"1s..96h" help:"interval at which expired days are deleted"`
}

// DefaultConfig returns the defaults.
func DefaultConfig() Config { return settings.Defaults[Config]() }

// sequenceDays returns SequenceRetention in whole days.
func (c Config) sequenceDays() int { return int(c.SequenceRetention / (24 * time.Hour)) }

// Validate reports every value that is out of range.
func (c Config) Validate() error { return settings.Validate(c) }

// Bounds of requests.
const (
	MaxDays    = 90 // of growth
	MaxWeeks   = 52 // of retention
	MaxSteps   = 10 // of a funnel
	MaxPopular = 1000
)

// RequestError is returned for an invalid request.
type RequestError struct{ Problem string }

// Error returns the problem.
func (e *RequestError) Error() string { return e.Problem }

// Service answers from a store. It runs one scan at a time: insights are for people, who can wait, and the machine has
// other work.
type Service struct {
	cfg     Config
	store   *Store
	deleted interface{ Has(schemas.UserID) bool }
	now     func() time.Time
	scans   *semaphore.Weighted
}

// NewService returns a service. No answer includes the users in deleted.
func NewService(cfg Config, store *Store, deleted interface{ Has(schemas.UserID) bool }, now func() time.Time) *Service {
	return &Service{cfg: cfg, store: store, deleted: deleted, now: now, scans: semaphore.NewWeighted(1)}
}

// scan runs f when no other scan runs, within the deadline.
func (s *Service) scan(ctx context.Context, what string, f func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, s.cfg.Timeout)
	defer cancel()
	err := s.scans.Acquire(ctx, 1)
	if err == nil {
		err = f(ctx)
		s.scans.Release(1)
	}
	if err != nil {
		return fmt.Errorf("answer %s: %w", what, err)
	}
	return nil
}

func (s *Service) today() day { return dayOf(schemas.MicrosOf(s.now())) }

func (s *Service) eachUser(ctx context.Context, visit func(*activity)) error {
	return s.store.eachUser(ctx, func(u schemas.UserID, a *activity) {
		if !s.deleted.Has(u) {
			visit(a)
		}
	})
}

// Growth returns the state changes of the last days up to today, oldest first. days is 1 to MaxDays.
func (s *Service) Growth(ctx context.Context, days int) ([]GrowthDay, error) {
	if days < 1 || days > MaxDays {
		return nil, &RequestError{fmt.Sprintf("days: %d: want 1 to %d", days, MaxDays)}
	}
	g := newGrowth(s.today(), days)
	err := s.scan(ctx, "growth", func(ctx context.Context) error { return s.eachUser(ctx, g.add) })
	return g.days, err
}

// Xd28s returns, for each number of days, how many users acted on that many of the last 28 days, including today.
func (s *Service) Xd28s(ctx context.Context) ([]Xd28, error) {
	all := make([]Xd28, DormantAfter)
	for i := range all {
		all[i].Days = i + 1
	}
	err := s.scan(ctx, "xd28s", func(ctx context.Context) error {
		return s.eachUser(ctx, func(a *activity) {
			if n := a.within(s.today(), DormantAfter); n > 0 {
				all[n-1].Users++
			}
		})
	})
	return all, err
}

// Retention returns the cohorts of the last weeks up to the present one, oldest first. weeks is 1 to MaxWeeks.
func (s *Service) Retention(ctx context.Context, weeks int) ([]Cohort, error) {
	if weeks < 1 || weeks > MaxWeeks {
		return nil, &RequestError{fmt.Sprintf("weeks: %d: want 1 to %d", weeks, MaxWeeks)}
	}
	r := newRetention(s.today(), weeks)
	err := s.scan(ctx, "retention", func(ctx context.Context) error { return s.eachUser(ctx, r.add) })
	return r.cohorts, err
}

// Funnel returns how many users took the steps in order within the given time, in the last days up to today. There are
// 1 to MaxSteps steps, days is at least 1 and at most Config.SequenceRetention, and within is above 0. If a user has
// more than some thousand actions on a day, only the first ones count.
func (s *Service) Funnel(ctx context.Context, steps []schemas.Verb, within time.Duration, days int) ([]FunnelStep, error) {
	switch {
	case len(steps) < 1 || len(steps) > MaxSteps:
		return nil, &RequestError{fmt.Sprintf("steps: %d: want 1 to %d", len(steps), MaxSteps)}
	case days < 1 || days > s.cfg.sequenceDays():
		return nil, &RequestError{fmt.Sprintf("days: %d: want 1 to %d", days, s.cfg.sequenceDays())}
	case within <= 0:
		return nil, &RequestError{fmt.Sprintf("within: %s: want above 0", within)}
	}
	f := newFunnel(steps, within)
	err := s.scan(ctx, "funnel", func(ctx context.Context) error {
		today := s.today()
		return s.store.eachDay(ctx, today-day(days)+1, today+1, steps, func(user []byte, acts []act) { // clocks differ, so tomorrow's actions count, too
			if !s.deleted.Has(schemas.UserID(user)) {
				f.add(user, acts)
			}
		})
	})
	return f.steps, err
}

// Popularity returns the interests with the most actions, with their hours. limit is 1 to MaxPopular.
func (s *Service) Popularity(ctx context.Context, limit int) ([]Popular, error) {
	if limit < 1 || limit > MaxPopular {
		return nil, &RequestError{fmt.Sprintf("limit: %d: want 1 to %d", limit, MaxPopular)}
	}
	var all []Popular
	err := s.scan(ctx, "popularity", func(ctx context.Context) (err error) {
		all, err = s.store.popular(ctx, limit)
		return err
	})
	return all, err
}
