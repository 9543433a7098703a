// Package generator composes the chunks that visits show. It reads the rows of the group pools and writes none.
package generator

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/smartfeed/smartfeed/processors/outside"
	"github.com/smartfeed/smartfeed/processors/pools/layout"
	"github.com/smartfeed/smartfeed/processors/rows"
	"github.com/smartfeed/smartfeed/processors/rules"
	"github.com/smartfeed/smartfeed/schemas"
	"github.com/smartfeed/smartfeed/topics"
)

// Rows reads the committed rows of the partitions that this process owns. *rows.View implements it.
type Rows interface {
	Read(ctx context.Context, owner string, f func(rows.Snapshot) error) error
	Changed(owner string) <-chan struct{}
}

// Deps are the dependencies of a generator.
type Deps struct {
	Rows       Rows
	End        LogEnd // end of the topic served
	Streams    *topics.Streams
	Deleted    layout.DeletedUsers
	Pulled     *Pulled               // nil: no followee is pulled
	Hot        *Hot                  // nil: no counts
	Dial       outside.Dial          // connects to external sources and the model; nil: any address
	Extensions Extensions            // sources, scores and rules of the embedding program
	Metrics    prometheus.Registerer // nil: not registered
	Now        func() time.Time      // nil: time.Now
}

// Generator composes chunks from the candidates of users whose partition this process owns. It writes nothing: everything
// that it must remember is in the Served, which must be applied before the generator makes the user's next chunk. It is safe
// for concurrent use.
type Generator struct {
	pools   layout.Config
	cfg     Config
	deps    Deps
	metrics generatorMetrics
	book    book
	scratch sync.Pool // of *scratch

	external *external

	mu       sync.Mutex
	sessions map[int32]session // by partition
}

// session is a period during which this process owns a partition without interruption.
type session struct {
	partition int32
	number    uint64
	// alone is a time from which each chunk of a previous owner is in the topic served or can no longer be shown as new.
	alone time.Time
	asked bool  // end is known
	end   int64 // end offset of the topic served, read after alone
	ready bool  // the partition has applied served up to end
}

// WaitingMost is the maximum that Waiting returns.
const WaitingMost = 100

// New returns a generator that reads the pools of a group with the configuration pools. Both configurations must be
// valid. It returns an error if deps.Own is invalid or if a metric cannot be registered. The caller must call Close.
func New(pools layout.Config, cfg Config, deps Deps) (*Generator, error) {
	if deps.Now == nil {
		deps.Now = time.Now
	}
	if err := deps.Extensions.validate(cfg); err != nil {
		return nil, fmt.Errorf("generator: own %w", err)
	}
	metrics, err := newGeneratorMetrics(deps.Metrics)
	if err != nil {
		return nil, fmt.Errorf("generator: register metrics: %w", err)
	}
	cfg.Feeds = cfg.withShares(deps.Extensions)
	return &Generator{
		external: newExternal(cfg, deps.Extensions, deps.Dial, metrics, deps.Now),
		pools:    pools, cfg: cfg, deps: deps, metrics: metrics, sessions: map[int32]session{},
		book:    book{users: map[schemas.UserID]*reservation{}},
		scratch: sync.Pool{New: func() any { return new(layout.Buffers) }},
	}, nil
}

// Close closes the connections. No other call may be in flight.
func (g *Generator) Close() { g.external.close() }

// Chunk selects and arranges the items of a visit. If the user has an earlier chunk in flight, Chunk waits until its Served
// is applied or has failed, or until ctx ends. After the user's partition moved from another process, Chunk waits for the
// chunks of that process: until each is applied or can no longer be shown as new. See GeneratorConfig.Elsewhere.
//
// A caller that gets a chunk with items must start to publish its Served within ten seconds, or not publish it at all. It
// must report the outcome with Settle. Without that, the user's next chunk waits for the delivery timeout of the producer. A
// chunk without items needs neither.
//
// Chunk returns a *rows.NotHereError if this process does not own the user's partition. It may also return an error that
// wraps schemas.ErrUnknownFeed, the error of ctx, or a read error.
func (g *Generator) Chunk(ctx context.Context, req schemas.ChunkRequest) (*schemas.Chunk, error) {
	feed, arm, ok := g.cfg.Feeds.For(req.Feed, req.User)
	if !ok {
		return nil, fmt.Errorf("chunk for %s: feed %q: %w", req.User, req.Feed, schemas.ErrUnknownFeed)
	}
	if err := check(req); err != nil {
		return nil, err
	}
	began := time.Now()
	defer func() { g.metrics.seconds.Observe(time.Since(began).Seconds()) }()
	if err := g.reserve(ctx, req.User, req.Served); err != nil {
		return nil, fmt.Errorf("chunk for %s: wait for the visit before: %w", req.User, err)
	}
	g.sweep(ctx, req.User)
	chunk, err := g.compose(ctx, order{ChunkRequest: req, feed: feed, arm: arm})
	if err == nil {
		err = ctx.Err() // the caller may have stopped waiting
	}
	if err != nil {
		g.book.release(req.User, req.Served)
		return nil, fmt.Errorf("chunk for %s: %w", req.User, err)
	}
	if len(chunk.Served.Items) == 0 {
		g.book.release(req.User, req.Served)
		return chunk, nil
	}
	g.book.handOut(req.User, req.Served, pinsIn(chunk.Served.Items), g.deps.Now())
	return chunk, nil
}

// Settle reports the outcome of the Served of a chunk. It ignores any other Served than the one in flight.
func (g *Generator) Settle(user schemas.UserID, served string, o schemas.Outcome) {
	g.book.settle(user, served, o, g.deps.Now())
}

// errUnread is returned while the pulled pins are not loaded. Without them a pool would look complete but would not be.
var errUnread = fmt.Errorf("%s is still being read: ask again", topics.RecentsPulled)

// unread returns errUnread while the pulled pins are not loaded.
func (g *Generator) unread() error {
	if g.deps.Pulled != nil && !g.deps.Pulled.Ready() {
		return errUnread
	}
	return nil
}

// readAll is like read, but returns errUnread while the pulled pins are not loaded.
func (g *Generator) readAll(ctx context.Context, user schemas.UserID, f func(*reader, rows.Snapshot) error) error {
	if err := g.unread(); err != nil {
		return err
	}
	return g.read(ctx, user, f)
}

// Pool returns the limit best candidates of a user and source, and the number of candidates up to the cap. It changes
// nothing. An unknown source has no candidates.
func (g *Generator) Pool(ctx context.Context, user schemas.UserID, source schemas.Source, limit int) (*schemas.Pool, error) {
	p := &schemas.Pool{Source: source, Items: []schemas.PoolItem{}}
	err := g.readAll(ctx, user, func(v *reader, _ rows.Snapshot) error {
		all, err := v.pool(source, g.pools.Cap)
		if err != nil {
			return err
		}
		p.Total = len(all)
		for i := range all[:min(len(all), max(limit, 0))] {
			c := &all[i]
			p.Items = append(p.Items, schemas.PoolItem{Pin: c.Pin, Score: c.Score, Time: c.Created, Facets: c.Facets})
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("pool %s of %s: %w", source, user, err)
	}
	return p, nil
}

// Sources returns the sources that the user has or had candidates of, by name.
func (g *Generator) Sources(ctx context.Context, user schemas.UserID) ([]schemas.Source, error) {
	var list []schemas.Source
	err := g.readAll(ctx, user, func(v *reader, _ rows.Snapshot) (err error) {
		list, err = v.sources()
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("sources of %s: %w", user, err)
	}
	return list, nil
}

// Waiting returns the number of pins that a visit of the feed home could show, up to WaitingMost. It does not count pins that
// a visit would hold back or may not show now. It does not ask external sources and the model, because it is called often.
func (g *Generator) Waiting(ctx context.Context, user schemas.UserID) (int, error) {
	feed, _, ok := g.cfg.Feeds.For(rules.Home, user)
	if !ok {
		feed = rules.Feed{Others: 1}
	}
	m, err := g.roughly(ctx, user, feed)
	if err != nil {
		return 0, fmt.Errorf("count candidates of %s: %w", user, err)
	}
	visit := rules.Visit{User: user, Time: schemas.MicrosOf(g.deps.Now()), Limit: WaitingMost, Memory: m.memory}
	bring := func() []schemas.PinID {
		return feed.Waiting(visit, g.deps.Extensions.admitted(user, rules.Home, m.pools), m.known)
	}
	pins := bring()
	pins = pins[:min(len(pins), WaitingMost)]
	seen, err := g.seen(ctx, user, append(m.tops(), pins...))
	if err == nil && len(seen) > 0 {
		err = g.exactly(ctx, user, feed, offers{}, m)
		pins = bring()
	}
	if err != nil {
		return 0, fmt.Errorf("count candidates of %s: %w", user, err)
	}
	return min(len(pins), WaitingMost), nil
}

// roughly gathers the contents of a user's pools, filtered only by the recently shown pins.
func (g *Generator) roughly(ctx context.Context, user schemas.UserID, feed rules.Feed) (m *material, err error) {
	err = g.readAll(ctx, user, func(v *reader, _ rows.Snapshot) (err error) {
		if err = v.LoadRecentlySeen(g.pools.Frozen); err == nil {
			m, err = g.gather(v, feed, offers{})
		}
		return err
	})
	return m, err
}

// exactly removes all seen pins from the pools of m.
func (g *Generator) exactly(ctx context.Context, user schemas.UserID, feed rules.Feed, o offers, m *material) error {
	return g.read(ctx, user, func(v *reader, _ rows.Snapshot) error {
		exact, err := g.gather(v, feed, o)
		if err == nil {
			m.pools = exact.pools
		}
		return err
	})
}

func check(req schemas.ChunkRequest) error {
	if req.Served == "" || len(req.Served) > schemas.MaxEventIDBytes {
		return fmt.Errorf("chunk for %s: served %q: from 1 to %d bytes", req.User, req.Served, schemas.MaxEventIDBytes)
	}
	return checkLimit(&req)
}

func checkLimit(req *schemas.ChunkRequest) error {
	const most = 100
	if req.Limit < 1 || req.Limit > most {
		return fmt.Errorf("chunk for %s: limit %d: from 1 to %d", req.User, req.Limit, most)
	}
	return nil
}

func pinsIn(items []schemas.ServedItem) []schemas.PinID {
	pins := make([]schemas.PinID, len(items))
	for i := range items {
		pins[i] = items[i].Pin
	}
	return pins
}

// read calls f with a view of the user's rows.
func (g *Generator) read(ctx context.Context, user schemas.UserID, f func(*reader, rows.Snapshot) error) error {
	return g.deps.Rows.Read(ctx, string(user), func(s rows.Snapshot) error {
		m := g.scratch.Get().(*layout.Buffers)
		defer g.scratch.Put(m)
		v, err := layout.NewView(s, user, g.deps.Deleted, g.deps.Now(), g.pools.Expiry, m)
		if err != nil {
			return err
		}
		return f(&reader{v, g.deps.Pulled}, s)
	})
}

// reserve reserves the user's next Served when no other one is in flight.
func (g *Generator) reserve(ctx context.Context, user schemas.UserID, served string) error {
	for {
		changed := g.deps.Rows.Changed(string(user))
		former, wake, ok := g.book.reserve(user, served)
		if ok {
			return nil
		}
		over, err := g.over(ctx, user, &former)
		if err != nil {
			return err
		}
		if over {
			g.book.release(user, former.served)
			continue
		}
		if err := g.await(ctx, former.ask, changed, wake); err != nil {
			return err
		}
	}
}

// await returns when one of the channels is closed, when ctx ends, or at the given time. It ignores a time that is zero or in
// the past.
func (g *Generator) await(ctx context.Context, at time.Time, changed, wake <-chan struct{}) error {
	var due <-chan time.Time
	if left := at.Sub(g.deps.Now()); !at.IsZero() && left > 0 {
		timer := time.NewTimer(left)
		defer timer.Stop()
		due = timer.C
	}
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-changed:
	case <-wake:
	case <-due:
	}
	return nil
}

// over reports whether a reservation is settled. From r.ask on it reads the end of the log: the Served cannot be appended
// after that end.
func (g *Generator) over(ctx context.Context, user schemas.UserID, r *reservation) (bool, error) {
	if r.ask.IsZero() {
		return false, nil
	}
	var at progress
	err := g.deps.Rows.Read(ctx, string(user), func(s rows.Snapshot) (err error) {
		at, err = progressOf(s)
		return err
	})
	if err != nil {
		return false, err
	}
	if r.over(&at) || r.asked || g.deps.Now().Before(r.ask) {
		return r.over(&at), nil
	}
	if r.end, err = g.end(ctx, at.partition); err != nil {
		return false, err
	}
	r.asked = true
	g.book.ends(user, r.served, r.end)
	return r.over(&at), nil
}

// end returns the end offset of a partition of served.
func (g *Generator) end(ctx context.Context, partition int32) (int64, error) {
	end, err := g.deps.End.End(ctx, topics.Served, partition)
	if err != nil {
		return 0, fmt.Errorf("read the end of %s: %w", topics.Served, err)
	}
	return end, nil
}

// sweep releases some reservations of users who have not visited again. From r.ask on, it also releases those whose partition
// has moved to another process: if the partition comes back, a chunk waits for everything in served by then, which includes
// the reservation.
func (g *Generator) sweep(ctx context.Context, user schemas.UserID) {
	const some = 2
	for other, r := range g.book.others(user, some) {
		over, err := g.over(ctx, other, &r)
		var gone *rows.NotHereError
		if over || errors.As(err, &gone) && !g.deps.Now().Before(r.ask) {
			g.book.release(other, r.served)
		}
	}
}

// session returns the session of the partition of a snapshot. It is ready when the partition has applied everything that was
// in served at a time after session.alone.
func (g *Generator) session(s rows.Snapshot) session {
	g.mu.Lock()
	defer g.mu.Unlock()
	at := g.sessions[s.Partition()]
	if at.number != s.Session() {
		at = session{partition: s.Partition(), number: s.Session(), alone: s.Since().Add(g.cfg.Elsewhere)}
	}
	if at.asked && s.Applied(topics.Served) >= at.end-1 {
		at.ready = true
	}
	g.sessions[s.Partition()] = at
	return at
}

// begin reads the end of served once session.alone has passed. Before that, a visit with a chunk of the previous owner may
// still publish its Served, behind the end that would be read.
func (g *Generator) begin(ctx context.Context, at session) error {
	if g.deps.Now().Before(at.alone) {
		return g.await(ctx, at.alone, nil, nil)
	}
	end, err := g.end(ctx, at.partition)
	if err != nil {
		return err
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if known := g.sessions[at.partition]; known.number == at.number && !known.asked {
		known.asked, known.end = true, end
		g.sessions[at.partition] = known
	}
	return nil
}
