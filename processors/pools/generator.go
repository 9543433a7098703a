package pools

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/smartfeed/smartfeed/processors/outside"
	"github.com/smartfeed/smartfeed/processors/rows"
	"github.com/smartfeed/smartfeed/processors/rules"
	"github.com/smartfeed/smartfeed/schemas"
	"github.com/smartfeed/smartfeed/topics"
)

// Rows reads the committed rows of the partitions that are here. *rows.View does.
type Rows interface {
	Read(ctx context.Context, owner string, f func(rows.Snapshot) error) error
	Changed(owner string) <-chan struct{}
}

// Deps are what a generator reads from.
type Deps struct {
	Rows    Rows
	End     LogEnd // of the topic served
	Streams *topics.Streams
	Deleted DeletedUsers
	Pulled  *Pulled               // nil: nobody is pulled
	Hot     *Hot                  // nil: counts are not known
	Dial    outside.Dial          // connects to external sources and the model; nil: wherever they are
	Own     Own                   // sources, scores and rules of the program around
	Metrics prometheus.Registerer // nil: none
	Now     func() time.Time      // nil: time.Now
}

// Generator makes chunks of the candidates of users whose partition is here. It writes nothing: what it must remember
// travels in the Served, whose effect it waits for before it makes the user's next chunk. It is safe for concurrent use.
type Generator struct {
	pools   Config
	cfg     GeneratorConfig
	deps    Deps
	metrics generatorMetrics
	book    book
	scratch sync.Pool // of *scratch

	external *external

	mu       sync.Mutex
	sessions map[int32]session // by partition
}

// session is a stretch of time for which a partition is here without a break.
type session struct {
	partition int32
	number    uint64
	alone     time.Time // when what was given elsewhere before it is in the topic served, or is never shown as new
	asked     bool      // end is known
	end       int64     // of the topic served, read after alone
	ready     bool      // the partition has applied up to the end
}

// WaitingMost is where Waiting stops counting.
const WaitingMost = 100

// NewGenerator returns a generator on the pools of a group with the configuration pools. Both must be valid. It fails
// when its metrics cannot be registered. Close it.
func NewGenerator(pools Config, cfg GeneratorConfig, deps Deps) (*Generator, error) {
	if deps.Now == nil {
		deps.Now = time.Now
	}
	if err := deps.Own.validate(cfg); err != nil {
		return nil, fmt.Errorf("generator: own %w", err)
	}
	metrics, err := newGeneratorMetrics(deps.Metrics)
	if err != nil {
		return nil, fmt.Errorf("generator: register metrics: %w", err)
	}
	cfg.Feeds = cfg.withShares(deps.Own)
	return &Generator{
		external: newExternal(cfg, deps.Own, deps.Dial, metrics, deps.Now),
		pools:    pools, cfg: cfg, deps: deps, metrics: metrics, sessions: map[int32]session{},
		book:    book{users: map[schemas.UserID]*reservation{}},
		scratch: sync.Pool{New: func() any { return new(scratch) }},
	}, nil
}

// Close gives connections up. Call it when no call is under way.
func (g *Generator) Close() { g.external.close() }

// Chunk chooses and arranges what a visit shows. While an earlier chunk of the user is under way it waits, until ctx
// ends, for its Served to be applied or to have failed. So it does while the user's partition has come from another process,
// until all that was handed out there is applied or can be new to nobody any more, see GeneratorConfig.Elsewhere.
//
// Who gets a chunk with items must begin to publish its Served within ten seconds, or not at all, and say with Settle
// what became of it; who says nothing holds the user's next chunk up for the producer's delivery time-out. A chunk
// without items needs neither.
//
// It fails with an error that wraps schemas.ErrUnknownFeed, with a *rows.NotHereError when the user's partition is not
// here, with ctx's error, and with the errors of reading.
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
		err = ctx.Err() // nobody may be waiting any more
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

// Settle says what became of the Served of a chunk. What is said of another one than the one under way is ignored.
func (g *Generator) Settle(user schemas.UserID, served string, o schemas.Outcome) {
	g.book.settle(user, served, o, g.deps.Now())
}

// errUnread is that what is pulled is not known: what the rows say of a pool would look like all of it.
var errUnread = fmt.Errorf("%s is still being read: ask again", topics.RecentsPulled)

// unread fails as long as it is not known what is pulled.
func (g *Generator) unread() error {
	if g.deps.Pulled != nil && !g.deps.Pulled.Ready() {
		return errUnread
	}
	return nil
}

// readAll is read, once all is known that belongs to the pools.
func (g *Generator) readAll(ctx context.Context, user schemas.UserID, f func(*view, rows.Snapshot) error) error {
	if err := g.unread(); err != nil {
		return err
	}
	return g.read(ctx, user, f)
}

// Pool returns the best candidates of a user and source: limit of them, and how many there are up to the cap. It changes
// nothing. A source that nobody has heard of has none.
func (g *Generator) Pool(ctx context.Context, user schemas.UserID, source schemas.Source, limit int) (*schemas.Pool, error) {
	p := &schemas.Pool{Source: source, Items: []schemas.PoolItem{}}
	err := g.readAll(ctx, user, func(v *view, _ rows.Snapshot) error {
		all, err := v.pool(source, g.pools.Cap)
		if err != nil {
			return err
		}
		p.Total = len(all)
		for i := range all[:min(len(all), max(limit, 0))] {
			c := &all[i]
			p.Items = append(p.Items, schemas.PoolItem{Pin: c.pin, Score: c.score, Time: c.created, Facets: c.Facets})
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("pool %s of %s: %w", source, user, err)
	}
	return p, nil
}

// Sources returns the sources that a user has or had candidates of, by name.
func (g *Generator) Sources(ctx context.Context, user schemas.UserID) ([]schemas.Source, error) {
	var list []schemas.Source
	err := g.readAll(ctx, user, func(v *view, _ rows.Snapshot) (err error) {
		list, err = v.sources()
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("sources of %s: %w", user, err)
	}
	return list, nil
}

// Waiting counts the pins that a visit of feed home could bring, up to WaitingMost. What a visit would hold back, or may not
// show now, is not among them. External sources and a model are not asked: it is called often.
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
		return feed.Waiting(visit, g.deps.Own.admitted(user, rules.Home, m.pools), m.known)
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

// roughly gathers what a user's pools have, but for what was shown lately.
func (g *Generator) roughly(ctx context.Context, user schemas.UserID, feed rules.Feed) (m *material, err error) {
	err = g.readAll(ctx, user, func(v *view, _ rows.Snapshot) (err error) {
		if err = v.remember(g.pools.Frozen); err == nil {
			m, err = g.gather(v, feed, offers{})
		}
		return err
	})
	return m, err
}

// exactly leaves what was seen out of the material's pools.
func (g *Generator) exactly(ctx context.Context, user schemas.UserID, feed rules.Feed, o offers, m *material) error {
	return g.read(ctx, user, func(v *view, _ rows.Snapshot) error {
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

// read calls f with what the user's rows say.
func (g *Generator) read(ctx context.Context, user schemas.UserID, f func(*view, rows.Snapshot) error) error {
	return g.deps.Rows.Read(ctx, string(user), func(s rows.Snapshot) error {
		m := g.scratch.Get().(*scratch)
		defer g.scratch.Put(m)
		v, err := viewOf(s, user, g.deps.Deleted, g.deps.Now(), g.pools.Expiry, m)
		if err != nil {
			return err
		}
		v.pulled = g.deps.Pulled
		return f(v, s)
	})
}

// reserve makes the user's next Served the one under way, when there is none before it.
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

// await returns when a channel is closed, or at a moment (zero: never) if that is to come.
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

// over says whether a reservation is settled. When its time has come it asks where the log ends: nothing of the Served
// can come behind that.
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

// end returns where a partition of served ends.
func (g *Generator) end(ctx context.Context, partition int32) (int64, error) {
	end, err := g.deps.End.End(ctx, topics.Served, partition)
	if err != nil {
		return 0, fmt.Errorf("read the end of %s: %w", topics.Served, err)
	}
	return end, nil
}

// sweep releases some reservations of users who have not come again. Their partition may have gone: then a chunk of
// theirs waits for all that was served before the partition came back, which is more than the reservation asks for.
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

// session returns how the partition of a snapshot stands: ready when all is applied that was in served when nothing of
// another process could come there any more whose answer shows it as new.
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

// begin notes where served ends, once what was given elsewhere is in it. A visit that another process gave a chunk to just
// before the partition came may publish its Served still, behind an end that is read at once.
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
