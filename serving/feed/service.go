// Package feed answers requests for a user's feed. A visit shows a chunk of new items from the content generator on top of
// the materialized feed from the store. An older page contains only materialized items.
//
// # A visit
//
//  1. Service.Visit requests a chunk (answer.go) and, in parallel, the newest rows of the materialized feed (reader.go).
//  2. The generator of the process that owns the user's partition composes the chunk (packages peers and pools/generator). If
//     the user was inactive, chunk announces the visit on the topic user-activity (activity.go) and requests the chunk again.
//  3. publishServed publishes the items that the chunk shows on the topic served (publish.go, served.go).
//  4. Meanwhile, loadFacts reads the cards, edges and deleted authors that determine which items are visible (load.go).
//  5. visibleNew and fill choose the visible new items, and the materialized items below the position that was the newest
//     when the chunk was built (reader.go).
//  6. answer waits for the acknowledgement. Without it, materialized items take the places of the new ones (publish.go).
//  7. page adds the cursor of the next page (page.go, cursor.go).
//
// Package pools describes what its Served does next. Service.Older starts at step 5, below the position of its cursor.
// Service.Peek omits step 3 and the acknowledgement: its page, with the cursor, is that of the next visit.
//
// # Degraded answers
//
// Every request gets an answer. Page.Degraded names each part that was late or failed, and the answer contains the rest:
//
//	generator   there are no new items
//	served      the chunk was not acknowledged in time: there are no new items, and the generator is notified of the outcome
//	reactivating
//	            the user was inactive, and the backfill of the publications since then is not complete
//	items, pulled, popular, embeddings, affinities, model, source:NAME
//	            the generator chose new items without the item counters, the publications of pulled followees, the popular
//	            pins, the pins' embeddings, the user's affinities, the external model, or the candidates of an external source
//	store       the answer contains the chunk, and of the materialized feed only the items that the generator remembers and
//	            that may still be shown; either may include deleted pins, because only the store has the deletions;
//	            titles are missing
//	related     the neighbors of a pin or an interest were unavailable: the answer is empty
//	stale       the store lacks a materialized position, even after Config.CatchUpTimeout: the answer has the items down to
//	            the hole, and Page.Next points at it; or no available store has all edges, cards and deletions: the answer has
//	            the items that the generator confirms, and Page.Next points at the first item below them; a list or
//	            related pins are empty
//
// If the store expires entries (Deps.TTL), entries that are missing at the end of a feed have expired. The feed ends above
// them, and the answer is not degraded.
//
// # Visibility
//
// A materialized item is shown while any live edge justifies it and nothing hides it. The edges and cards come from the
// store at the time of the answer. This package does not cache them: a block or a deletion must apply to every answer after
// it is processed. (The embedded store has its own block cache. An answer of 25 items takes about 0.25 ms of CPU, see
// BenchmarkAnswer.) The reader skips hidden items and reads further.
//
// A deleted user gets an empty answer from every method, as soon as this process knows of the deletion. No answer contains
// the pins of a deleted user.
//
// # Consistency
//
// Positions are dense and descending. Therefore pages join without a gap or a duplicate, whatever arrives on top.
//
// A visit shows items as new only if their Served is acknowledged within Config.Longest of the moment at which the visit
// requested the chunk, by the clock of this process. The visit checks the clock after the acknowledgement, so it does not
// matter where the process was paused in the meantime. The owner of the partition reads the pools after that moment. A new
// owner waits for Config.Longest before it reads the end of the topic served. It therefore knows every item that a visit
// shows as new from a chunk of the previous owner.
package feed

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/smartfeed/smartfeed/internal/settings"
	"github.com/smartfeed/smartfeed/schemas"
)

// Generator builds chunks of new items.
type Generator interface {
	// Chunk returns the items for a visit. They stay reserved until their Served record is applied, or Settle reports that
	// it failed. If the feed is not configured, Chunk returns schemas.ErrUnknownFeed.
	Chunk(ctx context.Context, r schemas.ChunkRequest) (*schemas.Chunk, error)
	// Settle reports the outcome of the Served record of a ChunkRequest. The outcome of a request that got no chunk is
	// Failed. Settle does not block, and ignores an unknown id.
	Settle(user schemas.UserID, served string, o schemas.Outcome)
	// Waiting returns how many new items a visit could show, at most 100.
	Waiting(ctx context.Context, user schemas.UserID) (int, error)
}

// Explainer reports the state of a pin for a user, or how a visit now would handle it.
type Explainer interface {
	Why(ctx context.Context, r schemas.WhyRequest) (*schemas.Why, error)
}

// ErrStale is returned together with a value when the store lacks records that other parts of the system have already
// applied. A block or a deletion may be among them. The caller may hide items because of the value, but must not show items
// because the value does not hide them.
var ErrStale = errors.New("the feed store lags")

// Store is the feed store that answers read. Methods other than Page may return a value together with ErrStale.
type Store interface {
	// Page returns at most n entries at positions below the given one, newest first, and the trim position. It omits
	// entries that have not reached the store.
	Page(ctx context.Context, user schemas.UserID, below int64, n int) ([]schemas.FeedEntry, int64, error)
	// Cards returns the newest cards of pins.
	Cards(ctx context.Context, pins []schemas.PinID) (map[schemas.PinID]schemas.Card, error)
	// Edges returns the known registers of user toward others, live and dead.
	Edges(ctx context.Context, user schemas.UserID, others []schemas.ID) ([]schemas.Edge, error)
	// DeletedUsers returns the deleted users among users.
	DeletedUsers(ctx context.Context, users []schemas.UserID) (map[schemas.UserID]bool, error)
	// List returns the publications of a followee, newest first. next is the place to continue at, or "" at the end.
	List(ctx context.Context, followee schemas.Followee, from string, n int) (
		pins []schemas.PinVersion, next string, err error)
}

// ServedLog publishes the items shown by visits.
type ServedLog interface {
	// Publish returns Acknowledged, or Failed or Unknown with an error that states the reason.
	Publish(ctx context.Context, s *schemas.Served) (schemas.Outcome, error)
}

// ActivityLog announces visits of users.
type ActivityLog interface {
	// Announce returns nil after the record is acknowledged.
	Announce(ctx context.Context, r *schemas.UserActivity) error
}

// Config limits the time and the work of an answer. See DefaultConfig.
type Config struct {
	// External sources get at most half of GeneratorTimeout, and a model at most half of the rest.
	GeneratorTimeout time.Duration `yaml:"generator_timeout" default:"150ms" range:"1ms..1m" help:"timeout for the chunk of a visit"`
	ReadTimeout      time.Duration `yaml:"read_timeout" default:"150ms" range:"1ms..1m" help:"timeout of an answer for all its reads of the feed store"`
	// After CatchUpTimeout, the answer is stale.
	CatchUpTimeout  time.Duration `yaml:"catch_up_timeout" default:"75ms" range:"0s..1m" help:"part of read_timeout that an answer waits for materialized items that have not reached the store yet"`
	AckTimeout      time.Duration `yaml:"ack_timeout" default:"500ms" range:"1ms..1m" help:"timeout of a visit for the broker's acknowledgement of the items that it shows"`
	MaxSkippedItems int           `yaml:"max_skipped_items" default:"500" range:"1..10000" help:"maximum number of invisible items that an answer skips before it returns a short page"`
	// Further calls wait within their deadlines, so a dependency that hangs does not accumulate goroutines without limit.
	MaxConcurrentCalls int `yaml:"max_concurrent_calls" default:"256" range:"1..100000" help:"maximum number of calls in flight to each of the generator, the store and the log"`
	// The file is created if it does not exist. All processes that serve the same users need the same key.
	CursorKeyFile string `yaml:"cursor_key_file" default:"cursor.key" help:"file with the key that signs cursors, relative to the state directory"`
}

// DefaultConfig returns the default configuration.
func DefaultConfig() Config { return settings.Defaults[Config]() }

// Longest returns the maximum time between a visit's request for a chunk and the acknowledgement of its new items. Items
// that are acknowledged later are not shown as new. It must be the same in all processes. When the pools of a partition
// move to another process, the partition builds no chunks for this time. Default 800 ms.
func (c Config) Longest() time.Duration { return c.GeneratorTimeout + c.ReadTimeout + c.AckTimeout }

// Validate reports every field that is out of bounds. Durations are 1 ms to 1 minute.
func (c Config) Validate() error {
	problems := settings.Problems{settings.Validate(c)}
	problems.Want(c.CursorKeyFile != "", "cursor_key_file: is empty: a file is needed")
	return problems.Err()
}

// Deps are the dependencies of a Service.
type Deps struct {
	Generator Generator
	Explainer Explainer // for Why; nil: Why returns an error
	Pools     Pools     // nil: Pool must not be called
	Neighbors Neighbors // nil: RelatedPins and RelatedInterests must not be called
	Store     Store
	Deleted   DeletedUsers  // answered as if they had never existed; nil: only the deletions in Store count
	TTL       time.Duration // after which Store expires entries; 0: never
	Served    ServedLog
	Activity  ActivityLog      // nil: no user is ever treated as inactive
	CursorKey []byte           // signs cursors; at least 16 bytes, the same in every process that serves; see LoadKey
	Now       func() time.Time // nil: time.Now
	NewID     func() string    // for Served records, unique; nil: 128 random bits
	Metrics   prometheus.Registerer
}

// MaxLimit is the maximum number of items on a page.
const MaxLimit = 100

// Errors for invalid arguments of the caller.
var (
	ErrBadLimit  = errors.New("bad limit")  // not 1 to MaxLimit
	ErrBadCursor = errors.New("bad cursor") // not issued by this service for this user or list
)

// Service answers visits and pages. Its methods are safe for concurrent use.
type Service struct {
	cfg     Config
	deps    Deps
	cursors cursors
	metrics *measures

	calls                    sync.WaitGroup
	generator, store, served *gate
}

// New validates the configuration and registers the metrics.
func New(cfg Config, deps Deps) (*Service, error) {
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("feed: %w", err)
	}
	if len(deps.CursorKey) < minKey {
		return nil, fmt.Errorf("feed: cursor key of %d bytes: want at least %d", len(deps.CursorKey), minKey)
	}
	if deps.Deleted == nil {
		deps.Deleted = unreadUsers{}
	}
	if deps.Now == nil {
		deps.Now = time.Now
	}
	if deps.NewID == nil {
		deps.NewID = rand.Text
	}
	s := &Service{cfg: cfg, deps: deps, cursors: cursors{key: deps.CursorKey}}
	s.generator = newGate("generator", cfg.MaxConcurrentCalls, &s.calls)
	s.store = newGate("store", cfg.MaxConcurrentCalls, &s.calls)
	s.served = newGate("served", cfg.MaxConcurrentCalls, &s.calls)
	var err error
	if s.metrics, err = newMeasures(deps.Metrics, s.generator, s.store, s.served); err != nil {
		return nil, fmt.Errorf("feed: %w", err)
	}
	return s, nil
}

// Close waits until ctx ends for calls that no answer waits for any more. Call it when no answer is in flight.
func (s *Service) Close(ctx context.Context) error {
	done := make(chan struct{})
	go func() {
		s.calls.Wait()
		close(done)
	}()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("close feed: calls in flight: %w", ctx.Err())
	}
}

func checkLimit(limit int) error {
	if limit < 1 || limit > MaxLimit {
		return fmt.Errorf("%w: %d: want 1 to %d", ErrBadLimit, limit, MaxLimit)
	}
	return nil
}
