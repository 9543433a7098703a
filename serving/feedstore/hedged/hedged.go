// Package hedged reads from two feed stores that are fed by the same log, a primary and a standby. A read succeeds although
// one of them is down, hangs, is slow, or lags.
//
// # Order
//
// One store is first: the primary, while it is healthy. A read queries the first store. It also queries the second store
//
//	at once                 if the first fails
//	at once                 if the first's answer has a hole (see Page), the second currently responds, and there is budget
//	after the first's p99.9 of the same kind of read, within bounds, if there is budget
//	after Config.LateAfter       if the second store itself is in time, or there is budget
//
// The first success wins, and the other call is canceled. An answer with a hole is not a success, but better than no
// answer. Of two such answers, the one that goes further wins. An answer with a hole waits for the other store only as
// long as that store usually takes, because a missing entry is usually in flight to both stores. A read returns an
// error only if both stores fail.
//
// # Budget and credit
//
// The budget limits the load that a slow first store causes on the second. Each read earns Config.BudgetRatio of an
// extra read, and up to Config.BudgetBurst extra reads are saved. Late reads may exceed the budget on credit. Each
// store has a credit of Config.BudgetBurst. A call that is answered within Config.LateAfter returns its credit, with
// Config.BudgetRatio as interest. Therefore:
//
//   - a store that is in time for all but one of twenty calls is queried for every late read;
//   - if both stores are late because they are overloaded, neither gets twice the load.
//
// An extra read after a failure is free, because it replaces the failed read.
//
// # Swapping the order
//
// A first store is unhealthy if it loses more reads than the budget would pay for: Config.FailoverLosses on balance.
// The stores then swap, and the reads that still wait for the previous first store query the other one, too. At most
// ten times Config.BudgetBurst reads may do so; answers in time earn this allowance back like the budget.
//
// Two overloaded stores swap repeatedly. If budget and credit are used up because both stores were late, a swap takes
// Config.FailoverLosses / Config.BudgetRatio reads (400 by default). If the first store hangs, most of these reads fail.
//
// # Lag
//
// Edges, cards and deletions decide whether a materialized item may be shown, and a store that lags does not have all of
// them. If Stores.Lag reports that one store lacks records of the requested keys that the other store has, the other store
// is queried first, regardless of the order. The answer of the store that lags is not a success. It is returned with
// feed.ErrStale if the other store fails or is late.
//
// # Warm reads
//
// A share of the reads, Config.WarmRatio, is also sent to the second store, and no caller waits for the answer. These
// reads keep its caches warm, show whether both stores hold the same data, and detect that the primary is healthy
// again. After Config.FailbackReads successful warm reads in a row, the primary is first again.
package hedged

import (
	"cmp"
	"context"
	"fmt"
	"reflect"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/smartfeed/smartfeed/internal/settings"
	"github.com/smartfeed/smartfeed/schemas"
	"github.com/smartfeed/smartfeed/serving/feed"
	"github.com/smartfeed/smartfeed/topics"
)

// Config configures a Store. See DefaultConfig.
type Config struct {
	// Until a store has answered a thousand reads of a kind, the time is Most.
	MinDelay  time.Duration `yaml:"min_delay" default:"5ms" range:"1ns..max_delay" help:"minimum delay of a hedged read of the second store"`
	MaxDelay  time.Duration `yaml:"max_delay" default:"60ms" range:"..late_after" help:"maximum delay of a hedged read of the second store"`
	LateAfter time.Duration `yaml:"late_after" default:"100ms" range:"max_delay..1m" help:"time after which a read is late, and the second store is read on credit"`

	BudgetRatio    float64 `yaml:"budget_ratio" default:"0.05" range:"0..1" help:"hedged reads earned per read"`
	BudgetBurst    int     `yaml:"budget_burst" default:"50" range:"1..10000" help:"maximum number of saved hedged reads, and the credit of a store"`
	FailoverLosses int     `yaml:"failover_losses" default:"20" range:"1..10000" help:"net number of lost reads after which the first store becomes the second"`

	WarmRatio     float64 `yaml:"warm_ratio" default:"0.02" range:"0..0.5" help:"share of the reads that are also sent to the second store, without waiting for the answer"`
	FailbackReads int     `yaml:"failback_reads" default:"50" range:"1..10000" help:"number of consecutive successful warm reads after which the primary is first again"`
	// A store that lags longer is detected within twice this time.
	MaxLag time.Duration `yaml:"max_lag" default:"2s" range:"100ms..1m" help:"maximum lag behind the other store in edges, cards, lists and deletions; beyond it, answers of the store are stale"`
}

// DefaultConfig returns the default configuration.
func DefaultConfig() Config { return settings.Defaults[Config]() }

// Validate reports every field that is out of bounds.
func (c Config) Validate() error { return settings.Validate(c) }

// Stores are the two stores. Their reads must return soon after their context ends.
type Stores struct {
	Primary, Standby feed.Store
	Lag              Lag // nil: neither store lags
}

// Lag reports which store lacks records that the other one has.
type Lag interface {
	// Lags reports whether a store, "primary" or "standby", lacks records of a topic with one of the keys.
	Lags(store, topic string, keys ...string) bool
}

// Store combines two stores for reading. Its methods are safe for concurrent use.
type Store struct {
	cfg     Config
	stores  [2]feed.Store // by side
	lag     Lag           // nil: neither store lags
	balance *balance
	metrics *measures
	calls   sync.WaitGroup
	warming chan struct{} // one slot for each warm read in flight

	page         kind[pageRead]
	edges        kind[[]schemas.Edge]
	cards        kind[map[schemas.PinID]schemas.Card]
	deletedUsers kind[map[schemas.UserID]bool]
	list         kind[listRead]
}

// maxWarming is the maximum number of warm reads in flight. Further ones are skipped.
const maxWarming = 16

// New validates the configuration and registers the metrics.
func New(cfg Config, stores Stores, reg prometheus.Registerer) (*Store, error) {
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("hedged feed store: %w", err)
	}
	s := &Store{
		cfg: cfg, stores: [2]feed.Store{primary: stores.Primary, standby: stores.Standby}, lag: stores.Lag,
		balance: newBalance(cfg), warming: make(chan struct{}, maxWarming),
	}
	s.page = kind[pageRead]{name: "page", complete: pageRead.complete, further: pageRead.further, same: same[pageRead]}
	s.edges = kind[[]schemas.Edge]{name: "edges", topic: topics.Edges, same: sameEdges}
	s.cards = kind[map[schemas.PinID]schemas.Card]{name: "cards", topic: topics.PinCards, same: same[map[schemas.PinID]schemas.Card]}
	s.deletedUsers = kind[map[schemas.UserID]bool]{name: "deleted_users", topic: topics.UsersDeleted, same: same[map[schemas.UserID]bool]}
	s.list = kind[listRead]{name: "list", topic: topics.Publications, same: same[listRead]}
	var err error
	if s.metrics, err = newMeasures(reg, s.balance); err != nil {
		return nil, fmt.Errorf("hedged feed store: %w", err)
	}
	return s, nil
}

// Close waits for the calls that no read waits for any more. No read may start after it.
func (s *Store) Close() { s.calls.Wait() }

// pageRead is the result of Page and its arguments.
type pageRead struct {
	entries []schemas.FeedEntry
	trimmed int64
	below   int64
	n       int
}

// unbroken returns how many entries are consecutive from the position below downwards.
func (p pageRead) unbroken() int {
	next := p.below - 1
	if len(p.entries) > 0 && p.below >= top {
		next = p.entries[0].Position
	}
	for i := range p.entries {
		if p.entries[i].Position != next {
			return i
		}
		next--
	}
	return len(p.entries)
}

// top is the smallest value of below that requests the newest entries, whose first position is unknown.
const top = 1<<63 - 2

// complete reports whether the page has no hole: below the requested position, between two entries, and above the trim position
// at its end.
func (p pageRead) complete() bool {
	n := p.unbroken()
	if n < len(p.entries) {
		return false
	}
	if n >= p.n || p.below >= top && n == 0 {
		return true
	}
	last := p.below
	if n > 0 {
		last = p.entries[n-1].Position
	}
	return last-1 <= p.trimmed
}

func (p pageRead) further(q pageRead) bool { return p.unbroken() > q.unbroken() }

// Page implements feed.Store. An answer has a hole if it lacks a position below the given one, between two entries, or at
// its end above the trim position.
func (s *Store) Page(ctx context.Context, user schemas.UserID, below int64, n int) ([]schemas.FeedEntry, int64, error) {
	p, err := read(ctx, s, &s.page, func(ctx context.Context, from feed.Store) (pageRead, error) {
		entries, trimmed, err := from.Page(ctx, user, below, n)
		return pageRead{entries, trimmed, below, n}, err
	})
	return p.entries, p.trimmed, err
}

// Edges implements feed.Store.
func (s *Store) Edges(ctx context.Context, user schemas.UserID, others []schemas.ID) ([]schemas.Edge, error) {
	return read(ctx, s, &s.edges, func(ctx context.Context, from feed.Store) ([]schemas.Edge, error) {
		return from.Edges(ctx, user, others)
	}, string(user))
}

// Cards implements feed.Store.
func (s *Store) Cards(ctx context.Context, pins []schemas.PinID) (map[schemas.PinID]schemas.Card, error) {
	return read(ctx, s, &s.cards, func(ctx context.Context, from feed.Store) (map[schemas.PinID]schemas.Card, error) {
		return from.Cards(ctx, pins)
	}, schemas.Texts(pins)...)
}

// DeletedUsers implements feed.Store.
func (s *Store) DeletedUsers(ctx context.Context, users []schemas.UserID) (map[schemas.UserID]bool, error) {
	return read(ctx, s, &s.deletedUsers, func(ctx context.Context, from feed.Store) (map[schemas.UserID]bool, error) {
		return from.DeletedUsers(ctx, users)
	}, schemas.Texts(users)...)
}

// listRead is the result of List.
type listRead struct {
	pins []schemas.PinVersion
	next string
}

// List implements feed.Store.
func (s *Store) List(ctx context.Context, followee schemas.Followee, from string, n int) ([]schemas.PinVersion, string, error) {
	l, err := read(ctx, s, &s.list, func(ctx context.Context, store feed.Store) (listRead, error) {
		pins, next, err := store.List(ctx, followee, from, n)
		return listRead{pins, next}, err
	}, string(followee))
	return l.pins, l.next, err
}

// same reports whether both stores hold the same data.
func same[T any](a, b T) bool { return reflect.DeepEqual(a, b) }

// sameEdges compares edges in any order.
func sameEdges(a, b []schemas.Edge) bool {
	order := func(x, y schemas.Edge) int {
		return cmp.Or(cmp.Compare(x.Other, y.Other), cmp.Compare(x.Kind, y.Kind))
	}
	return slices.Equal(slices.SortedFunc(slices.Values(a), order), slices.SortedFunc(slices.Values(b), order))
}
