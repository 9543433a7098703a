// Package hedged reads from two feed stores that are fed by the same log, a primary and a standby, so that an answer
// comes although either is down, hangs, is slow, or lags.
//
// One of them is first: the primary, as long as it is well. A read asks the first. It asks the second, too,
//
//	at once                 if the first fails
//	at once                 if the first's answer has a hole, see Page, the second answers at present, and there is budget
//	after the first's p99.9 of the same kind of read, within bounds, if there is budget
//	after Config.Late       if the second store is in time itself, or there is budget
//
// and the first success wins; the other call is cancelled. An answer with a hole is no success, but better than none:
// of two, the one that goes further. It waits for the other store's for as long as that usually takes, and no longer: what is
// missing is most often on its way to both. Only when both have failed is the read an error.
//
// The budget bounds what a slow first store costs the second: a read earns Config.Budget of an extra read, up to
// Config.Burst of them are saved. What is late is asked for beyond it, but on credit: each store has Config.Burst, which a
// call gives back, with Config.Budget as interest, if its answer comes within Config.Late. So a store that is in time
// in all but one of twenty calls is asked whatever is late; and when both are late, because they have too much to do,
// neither is asked twice as much. Only after a failure does an extra read cost nothing: it comes instead of the
// one that failed.
//
// A store that loses more reads than the budget would pay for, Config.Losses on balance, is unwell: then the two change
// places, and the reads that still wait for it ask the other, too, ten times Config.Burst of them at most; answers in time earn
// that back like the budget. Two stores that have too much to do change places again and again. Where budget and credit were spent
// before, because both were late, that takes Config.Losses / Config.Budget reads (400), most of which wait in vain if the
// first store hangs.
//
// Whether a frozen item may be shown is read from edges, cards and deletions, which a store that lags does not have. So when
// Stores.Lag says that one of the two lacks records of the keys that are read, which the other has, the other is asked first,
// whichever is first otherwise. The answer of the one that lags is no success: it is returned, with feed.ErrStale, when the
// other store fails or is late.
//
// A share of reads, Config.Warm, is sent to the second store without being waited for: it keeps its caches warm, shows
// whether the two hold the same, and tells when the primary is well again, which it is after Config.Recover good ones in
// a row; then it is first again.
package hedged

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/smartfeed/smartfeed/internal/bounds"
	"github.com/smartfeed/smartfeed/schemas"
	"github.com/smartfeed/smartfeed/serving/feed"
	"github.com/smartfeed/smartfeed/topics"
)

// Config of a Store. See DefaultConfig.
type Config struct {
	// Least and Most bound the time after which the second store is asked, too; defaults 5 ms and 60 ms. Until a store
	// has answered a thousand reads of a kind, it is Most.
	Least time.Duration `yaml:"least"`
	Most  time.Duration `yaml:"most"`
	// Late is what is no longer in time: then the second store is asked on credit; default 100 ms, at least Most, at most
	// 1 minute.
	Late time.Duration `yaml:"late"`
	// Budget is how many extra reads a read earns, default 0.05, 0 to 1.
	Budget float64 `yaml:"budget"`
	// Burst is how many of them are saved at most, and a store's credit; default 50, 1 to 10,000.
	Burst int `yaml:"burst"`
	// Losses on balance make the first store second, default 20, 1 to 10,000.
	Losses int `yaml:"losses"`
	// Warm is the share of reads that are sent to the second store without being waited for, default 0.02, 0 to 0.5.
	Warm float64 `yaml:"warm"`
	// Recover is how many of these in a row must go well until the primary is first again, default 50, 1 to 10,000.
	Recover int `yaml:"recover"`
	// MaxLag is how far one store may lag behind the other in edges, cards, lists and deletions before its answers are stale;
	// a store that lags longer is found out within twice this time; default 2 s, 100 ms to 1 minute.
	MaxLag time.Duration `yaml:"max_lag"`
}

// DefaultConfig returns the defaults of every field.
func DefaultConfig() Config {
	return Config{
		Least: 5 * time.Millisecond, Most: 60 * time.Millisecond, Late: 100 * time.Millisecond,
		Budget: 0.05, Burst: 50, Losses: 20, Warm: 0.02, Recover: 50, MaxLag: 2 * time.Second,
	}
}

// Validate reports every field that is out of its bounds.
func (c Config) Validate() error {
	problems := []error{
		bounds.Within("late", c.Late, c.Most, time.Minute),
		bounds.Within("budget", c.Budget, 0, 1),
		bounds.Within("burst", c.Burst, 1, 10_000),
		bounds.Within("losses", c.Losses, 1, 10_000),
		bounds.Within("warm", c.Warm, 0, 0.5),
		bounds.Within("recover", c.Recover, 1, 10_000),
		bounds.Within("max_lag", c.MaxLag, 100*time.Millisecond, time.Minute),
	}
	if c.Least <= 0 || c.Least > c.Most {
		problems = append(problems, fmt.Errorf("least: %s: want more than 0s and at most %s, which is most", c.Least, c.Most))
	}
	return errors.Join(problems...)
}

// Stores are the two stores of a product. Both hear of a read's end through its context, and then return soon.
type Stores struct {
	Primary, Standby feed.Store
	Lag              Lag // nil: neither lags
}

// Lag knows which store lacks records that the other one has.
type Lag interface {
	// Behind reports whether a store, "primary" or "standby", lacks records of a topic with one of the keys.
	Behind(store, topic string, keys ...string) bool
}

// Store is the two of them as one, for reading. Its methods may be called from any number of goroutines.
type Store struct {
	cfg     Config
	stores  [2]feed.Store // by side
	lag     Lag           // nil: neither lags
	balance *balance
	metrics *metrics
	calls   sync.WaitGroup
	warming chan struct{} // a place for each read that nobody waits for

	page  kind[pageRead]
	edges kind[[]schemas.Edge]
	cards kind[map[schemas.PinID]schemas.Card]
	gone  kind[map[schemas.UserID]bool]
	list  kind[listRead]
}

// maxWarming bounds the reads under way that nobody waits for; further ones are left out.
const maxWarming = 16

// New checks the configuration and registers the metrics.
func New(cfg Config, stores Stores, reg prometheus.Registerer) (*Store, error) {
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("hedged feed store: %w", err)
	}
	s := &Store{
		cfg: cfg, stores: [2]feed.Store{primary: stores.Primary, standby: stores.Standby}, lag: stores.Lag,
		balance: newBalance(cfg), warming: make(chan struct{}, maxWarming),
	}
	s.page = kind[pageRead]{name: "page", whole: pageRead.whole, further: pageRead.further, same: pageRead.same}
	s.edges = kind[[]schemas.Edge]{name: "edges", topic: topics.Edges, same: sameEdges}
	s.cards = kind[map[schemas.PinID]schemas.Card]{name: "cards", topic: topics.PinCards, same: sameCards}
	s.gone = kind[map[schemas.UserID]bool]{name: "gone", topic: topics.UsersDeleted, same: sameGone}
	s.list = kind[listRead]{name: "list", topic: topics.Publications, same: listRead.same}
	var err error
	if s.metrics, err = newMetrics(reg, s); err != nil {
		return nil, fmt.Errorf("hedged feed store: %w", err)
	}
	return s, nil
}

// Close waits for the calls that nobody waits for any more. Nothing may be read any more.
func (s *Store) Close() { s.calls.Wait() }

// pageRead is what Page returns, and what was asked.
type pageRead struct {
	entries []schemas.FeedEntry
	floor   int64
	below   int64
	n       int
}

// unbroken is how many entries follow one another from the position below down.
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

// top is asked below for the newest entries, whichever they are: the position before the first cannot be told.
const top = 1<<63 - 2

// whole says whether the page has no hole: below what was asked, between two entries, and above the floor at its end.
func (p pageRead) whole() bool {
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
	return last-1 <= p.floor
}

func (p pageRead) further(q pageRead) bool { return p.unbroken() > q.unbroken() }

func (p pageRead) same(q pageRead) bool {
	return p.floor == q.floor && slices.EqualFunc(p.entries, q.entries, sameEntry)
}

// Page is as a feed.Store has it. An answer that lacks a position, below the one given, between two entries, or at its
// end above the floor, has a hole.
func (s *Store) Page(ctx context.Context, user schemas.UserID, below int64, n int) ([]schemas.FeedEntry, int64, error) {
	p, err := read(ctx, s, &s.page, func(ctx context.Context, from feed.Store) (pageRead, error) {
		entries, floor, err := from.Page(ctx, user, below, n)
		return pageRead{entries, floor, below, n}, err
	})
	return p.entries, p.floor, err
}

// Edges is as a feed.Store has it.
func (s *Store) Edges(ctx context.Context, user schemas.UserID, others []schemas.ID) ([]schemas.Edge, error) {
	return read(ctx, s, &s.edges, func(ctx context.Context, from feed.Store) ([]schemas.Edge, error) {
		return from.Edges(ctx, user, others)
	}, string(user))
}

// Cards is as a feed.Store has it.
func (s *Store) Cards(ctx context.Context, pins []schemas.PinID) (map[schemas.PinID]schemas.Card, error) {
	return read(ctx, s, &s.cards, func(ctx context.Context, from feed.Store) (map[schemas.PinID]schemas.Card, error) {
		return from.Cards(ctx, pins)
	}, texts(pins)...)
}

// Gone is as a feed.Store has it.
func (s *Store) Gone(ctx context.Context, users []schemas.UserID) (map[schemas.UserID]bool, error) {
	return read(ctx, s, &s.gone, func(ctx context.Context, from feed.Store) (map[schemas.UserID]bool, error) {
		return from.Gone(ctx, users)
	}, texts(users)...)
}

// listRead is what List returns.
type listRead struct {
	pins []schemas.PinVersion
	next string
}

func (l listRead) same(m listRead) bool {
	return l.next == m.next && slices.EqualFunc(l.pins, m.pins, samePin)
}

// List is as a feed.Store has it.
func (s *Store) List(ctx context.Context, followee schemas.Followee, from string, n int) ([]schemas.PinVersion, string, error) {
	l, err := read(ctx, s, &s.list, func(ctx context.Context, store feed.Store) (listRead, error) {
		pins, next, err := store.List(ctx, followee, from, n)
		return listRead{pins, next}, err
	}, string(followee))
	return l.pins, l.next, err
}

func texts[T ~string](ids []T) []string {
	all := make([]string, len(ids))
	for i, id := range ids {
		all[i] = string(id)
	}
	return all
}

func sameGone(a, b map[schemas.UserID]bool) bool { return maps.Equal(a, b) }

func sameFacets(a, b schemas.Facets) bool {
	return a.Author == b.Author && a.Board == b.Board && slices.Equal(a.Interests, b.Interests)
}

func sameEntry(a, b schemas.FeedEntry) bool {
	return a.Position == b.Position && a.Time == b.Time && a.Pin == b.Pin && a.Source == b.Source && a.Score == b.Score &&
		a.Created == b.Created && sameFacets(a.Facets, b.Facets)
}

func samePin(a, b schemas.PinVersion) bool {
	return a.Pin == b.Pin && a.Version == b.Version && a.Created == b.Created && a.Quality == b.Quality &&
		a.Deleted == b.Deleted && sameFacets(a.Facets, b.Facets)
}

func sameCards(a, b map[schemas.PinID]schemas.Card) bool {
	return maps.EqualFunc(a, b, func(c, d schemas.Card) bool {
		return c.Title == d.Title && c.Link == d.Link && samePin(c.PinVersion, d.PinVersion)
	})
}

// sameEdges compares in any order.
func sameEdges(a, b []schemas.Edge) bool {
	order := func(x, y schemas.Edge) int {
		return strings.Compare(string(x.Other)+"\x00"+string(x.Kind), string(y.Other)+"\x00"+string(y.Kind))
	}
	return slices.Equal(slices.SortedFunc(slices.Values(a), order), slices.SortedFunc(slices.Values(b), order))
}
