// Package feed answers what a user sees: a visit is a chunk of new items from the content generator on top of the
// frozen feed from the store; older pages are frozen items only.
//
//	visit   ask the generator for a chunk and the store for the newest frozen items, at the same time;
//	        publish what the chunk shows (served) and wait for its acknowledgement;
//	        fill up to the limit with frozen items below the position that was the newest when the chunk was built
//	older   continue below the position that the cursor names
//
// There is always an answer. What was late or failed is named in Page.Degraded, and the rest is answered:
//
//	generator   no new items
//	served      the chunk was not acknowledged in time: no new items; the generator is told the outcome
//	returning   the user was away, and not all that was published meanwhile is here yet
//	items, pulled, affinities, model, source:NAME
//	            the generator chose new items without knowing how often they were shown, what followees with many followers
//	            published, what the user cares for, what a model says, what an external source offers
//	store       the chunk, and of the frozen feed what the generator remembers and may still show; pins that are deleted
//	            may be among these two, because only the store knows that, and titles are missing
//	related     the neighbours of a pin or an interest could not be asked for: the answer is empty
//	stale       the store lacks a position that was frozen, also after Config.CatchUpTimeout: items down to the hole,
//	            Page.Next at it; or no store that has all edges, cards and deletions answers: what the generator vouches for,
//	            Page.Next at the first item below that; a list or related pins are empty
//
// Where the store lets go of entries after a time (Deps.TTL), what is lacking at the end of a feed has expired: the feed ends
// above it, and nothing is degraded.
//
// A frozen item is shown while any live edge justifies it and nothing hides it, by the edges and cards in the store at
// the moment of the answer: nothing of them is cached here, because a block or a deletion must show in every answer
// after it was worked off. (The embedded store has a block cache of its own; an answer of 25 items takes about
// 0.25 ms of CPU, see BenchmarkAnswer.) What is hidden is passed over by reading on.
//
// A deleted user gets an empty answer from every method, as soon as this process knows of the deletion, and nobody is shown
// their pins.
//
// Positions are dense, and one below the other, so pages join without a gap or a repetition whatever arrives on top.
//
// A visit shows items as new only if their Served was acknowledged within Config.Longest of the moment at which the visit asked
// for the chunk, by the clock of this process. It checks the clock when the acknowledgement has come, so it does not matter where
// the process was stopped meanwhile. The owner of the partition reads the pools after that moment, and an owner that takes the
// partition over waits for Config.Longest before it reads the end of the topic served. So it knows of everything that any visit
// shows as new on a chunk of the previous owner.
package feed

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"math"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/smartfeed/smartfeed/internal/bounds"
	"github.com/smartfeed/smartfeed/schemas"
)

// Generator makes chunks of new items.
type Generator interface {
	// Chunk returns what a visit shows. What it hands out stays reserved until its Served record has been applied, or
	// Settle says that it failed. An unconfigured feed is schemas.ErrUnknownFeed.
	Chunk(ctx context.Context, r schemas.ChunkRequest) (*schemas.Chunk, error)
	// Settle says what became of the Served record of a ChunkRequest; of one that got no chunk, that it failed. It
	// does not block, and ignores an id it does not know.
	Settle(user schemas.UserID, served string, o schemas.Outcome)
	// Waiting returns how many new items a visit could bring, at most 100.
	Waiting(ctx context.Context, user schemas.UserID) (int, error)
}

// Explainer says what has become of a pin for a user, or would at a visit now.
type Explainer interface {
	Why(ctx context.Context, r schemas.WhyRequest) (*schemas.Why, error)
}

// Frozen reads frozen feeds.
type Frozen interface {
	// Page returns at most n entries at positions below the given one, newest first, and the trim floor. Entries that
	// have not reached the store are left out.
	Page(ctx context.Context, user schemas.UserID, below int64, n int) ([]schemas.FeedEntry, int64, error)
}

// Present reads what is true now, and hides or shows frozen items.
type Present interface {
	Cards(ctx context.Context, pins []schemas.PinID) (map[schemas.PinID]schemas.Card, error)
	// Edges returns the known registers of user towards the others, live and dead.
	Edges(ctx context.Context, user schemas.UserID, others []schemas.ID) ([]schemas.Edge, error)
	// Gone returns those of the users who are deleted.
	Gone(ctx context.Context, users []schemas.UserID) (map[schemas.UserID]bool, error)
}

// Lists reads what a followee published, newest first. next is the place to continue at, "" at the end.
type Lists interface {
	List(ctx context.Context, followee schemas.Followee, from string, n int) (
		pins []schemas.PinVersion, next string, err error)
}

// ErrStale is returned with an answer that lacks records which have already had their effect elsewhere: a block or a deletion
// may be among them. What the answer hides is hidden; what it does not hide may not be shown for that.
var ErrStale = errors.New("the feed store lags")

// Store is the feed store as answers need it. Reads of Present and Lists may return a value together with ErrStale.
type Store interface {
	Frozen
	Present
	Lists
}

// ServedLog publishes what was shown.
type ServedLog interface {
	// Publish returns Acknowledged, or else Failed or Unknown with the reason.
	Publish(ctx context.Context, s *schemas.Served) (schemas.Outcome, error)
}

// ReturnLog publishes that a user is here.
type ReturnLog interface {
	// Announce returns nil once the record is acknowledged.
	Announce(ctx context.Context, r *schemas.Return) error
}

// Config bounds the time and work of an answer. See DefaultConfig.
type Config struct {
	// GeneratorTimeout is how long a visit waits for its chunk, default 150 ms; external sources have half of it at most, and a
	// model half of what is left then.
	GeneratorTimeout time.Duration `yaml:"generator_timeout"`
	// StoreTimeout is how long an answer waits for the store, all its reads together, default 150 ms.
	StoreTimeout time.Duration `yaml:"store_timeout"`
	// CatchUpTimeout is how much of StoreTimeout an answer spends waiting for frozen items that have not reached the store yet,
	// before it is stale; default 75 ms, 0 to 1 minute.
	CatchUpTimeout time.Duration `yaml:"catch_up_timeout"`
	// ServedTimeout is how long a visit waits for the acknowledgement of what it shows, default 500 ms.
	ServedTimeout time.Duration `yaml:"served_timeout"`
	// MaxSkipped is how many invisible items an answer passes over before it is short, default 500, 1 to 10,000.
	MaxSkipped int `yaml:"max_skipped"`
	// MaxCalls is how many calls to the generator, to the store and to the log may be under way, each, default 256, 1
	// to 100,000. More wait, within their deadlines: a collaborator that hangs does not gather goroutines.
	MaxCalls int `yaml:"max_calls"`
	// CursorKeyFile holds the key that signs cursors, relative to the directory of all state; it is made if it is not there.
	// Processes that serve the same users must have the same. Default cursor.key.
	CursorKeyFile string `yaml:"cursor_key_file"`
}

// DefaultConfig returns the defaults of every field.
func DefaultConfig() Config {
	return Config{
		GeneratorTimeout: 150 * time.Millisecond, StoreTimeout: 150 * time.Millisecond, CatchUpTimeout: 75 * time.Millisecond,
		ServedTimeout: 500 * time.Millisecond,
		MaxSkipped:    500, MaxCalls: 256, CursorKeyFile: "cursor.key",
	}
}

// Longest is how long after a visit has asked for its chunk what it shows as new is acknowledged at most: what is acknowledged
// later is not shown as new. It has to be the same in all processes. A partition whose pools come to another process has no
// chunks for so long. Default 800 ms.
func (c Config) Longest() time.Duration { return c.GeneratorTimeout + c.StoreTimeout + c.ServedTimeout }

// Validate reports every field that is out of its bounds; a duration is 1 ms to 1 minute.
func (c Config) Validate() error {
	problems := []error{
		bounds.Within("generator_timeout", c.GeneratorTimeout, time.Millisecond, time.Minute),
		bounds.Within("store_timeout", c.StoreTimeout, time.Millisecond, time.Minute),
		bounds.Within("served_timeout", c.ServedTimeout, time.Millisecond, time.Minute),
		bounds.Within("catch_up_timeout", c.CatchUpTimeout, 0, time.Minute),
		bounds.Within("max_skipped", c.MaxSkipped, 1, 10_000),
		bounds.Within("max_calls", c.MaxCalls, 1, 100_000),
	}
	if c.CursorKeyFile == "" {
		problems = append(problems, errors.New("cursor_key_file: is empty: a file is needed"))
	}
	return errors.Join(problems...)
}

// Deps are the collaborators of a Service.
type Deps struct {
	Generator  Generator
	Explainer  Explainer  // answers Why; nil: nobody
	Pools      Pools      // nil: Pool may not be called
	Neighbours Neighbours // nil: RelatedPins and RelatedInterests may not be called
	Store      Store
	Deleted    DeletedUsers  // answered as if they had never been there; nil: as far as Store knows them
	TTL        time.Duration // after which Store lets go of entries, by itself; 0: never
	Served     ServedLog
	Returns    ReturnLog        // nil: nobody is ever away
	CursorKey  []byte           // signs cursors, at least 16 bytes, the same in every process that serves; see LoadKey
	Now        func() time.Time // nil: time.Now
	NewID      func() string    // of Served records, unique; nil: 128 random bits
	Metrics    prometheus.Registerer
}

// MaxLimit is how many items a page has at most.
const MaxLimit = 100

// Mistakes of the caller.
var (
	ErrBadLimit  = errors.New("bad limit")  // not 1 to MaxLimit
	ErrBadCursor = errors.New("bad cursor") // not one that this service gave for this user or list
)

// Service answers visits and pages. Its methods may be called from any number of goroutines.
type Service struct {
	cfg     Config
	deps    Deps
	cursors cursors
	metrics *metrics

	calls                    sync.WaitGroup
	generator, store, served *gate
}

// New checks the configuration and registers the metrics.
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
	s.generator = newGate("generator", cfg.MaxCalls, &s.calls)
	s.store = newGate("store", cfg.MaxCalls, &s.calls)
	s.served = newGate("served", cfg.MaxCalls, &s.calls)
	var err error
	s.metrics, err = newMetrics(deps.Metrics, map[string]*gate{"generator": s.generator, "store": s.store, "served": s.served})
	if err != nil {
		return nil, fmt.Errorf("feed: register metrics: %w", err)
	}
	return s, nil
}

// Close waits for the calls that answers no longer wait for, until ctx ends. Call it when no answer is being made.
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
		return fmt.Errorf("close feed: calls still under way: %w", ctx.Err())
	}
}

// Visit answers a visit: at most limit items, new ones first. It fails with ErrBadLimit and schemas.ErrUnknownFeed only.
func (s *Service) Visit(ctx context.Context, user schemas.UserID, feed string, limit int) (Page, error) {
	if err := checkLimit(limit); err != nil {
		return Page{}, err
	}
	if len(feed) > maxFeedName {
		return Page{}, fmt.Errorf("feed of %d bytes: %w", len(feed), schemas.ErrUnknownFeed)
	}
	if s.deps.Deleted.Has(user) {
		return Page{}.full(), nil
	}
	defer s.metrics.time("visit", s.deps.Now)()
	page, err := s.visit(ctx, user, feed, limit)
	s.metrics.note(page.Degraded)
	return page, err
}

// Older answers the page that a former answer's Page.Next names. It fails with ErrBadLimit and ErrBadCursor only.
func (s *Service) Older(ctx context.Context, user schemas.UserID, cursor string, limit int) (Page, error) {
	if err := checkLimit(limit); err != nil {
		return Page{}, err
	}
	at, err := s.cursors.openFeed(cursor, user)
	if err != nil {
		return Page{}, err
	}
	if s.deps.Deleted.Has(user) {
		return Page{}.full(), nil
	}
	defer s.metrics.time("older", s.deps.Now)()
	r := s.newReading(user)
	r.next = at.below - 1
	if at.below == math.MaxInt64 {
		r.next = unknown
	}
	items := r.fill(ctx, nil, limit)
	page := r.page(at.feed, items)
	s.metrics.note(page.Degraded)
	return page, nil
}

// Waiting returns how many new items a visit could bring, at most 100. It fails when the generator does.
func (s *Service) Waiting(ctx context.Context, user schemas.UserID) (int, error) {
	if s.deps.Deleted.Has(user) {
		return 0, nil
	}
	n, err := begin(ctx, s.generator, s.cfg.GeneratorTimeout, func(ctx context.Context) (int, error) {
		return s.deps.Generator.Waiting(ctx, user)
	}, nil).wait()
	if err != nil {
		return 0, fmt.Errorf("count new items of %s: %w", user, err)
	}
	return n, nil
}

func checkLimit(limit int) error {
	if limit < 1 || limit > MaxLimit {
		return fmt.Errorf("%w: %d: want 1 to %d", ErrBadLimit, limit, MaxLimit)
	}
	return nil
}
