package cassandra

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"

	gocql "github.com/apache/cassandra-gocql-driver/v2"
	"golang.org/x/sync/errgroup"

	"github.com/smartfeed/smartfeed/internal/convert"
	"github.com/smartfeed/smartfeed/schemas"
	"github.com/smartfeed/smartfeed/serving/feedstore"
)

// The read statements. The write time of a row is the time or the version of its record.
const (
	getPage = `SELECT position, pin, source, author, board, interests, score, created, pool, writetime(pin), swept, trim_position
		FROM feeds WHERE user = ? AND position < ? LIMIT ?`
	getTrimPosition = `SELECT trim_position FROM feeds WHERE user = ? LIMIT 1`
	getEdges        = `SELECT other, kind, wins_tie, writetime(wins_tie) FROM edges WHERE user = ? AND other IN ?`
	getCards        = `SELECT pin, author, board, interests, created, quality, deleted, title, link, writetime(title) FROM cards WHERE pin IN ?`
	getDeletedUsers = `SELECT user FROM deleted_users WHERE user IN ?`
	getTop          = `SELECT created, pin FROM places WHERE followee = ? LIMIT ?`
	getSameTime     = `SELECT created, pin FROM places WHERE followee = ? AND created = ? AND pin > ? LIMIT ?`
	getOlder        = `SELECT created, pin FROM places WHERE followee = ? AND created < ? LIMIT ?`
	getListings     = `SELECT pin, author, board, interests, created, quality, deleted, writetime(created)
		FROM listings WHERE followee = ? AND pin IN ?`
)

// maxKeys is how many partitions one statement reads. With more, one coordinator would work for many nodes.
const maxKeys = 25

// Page implements feed.Store, see feedstore.Store. The rows and the trim position are consistent.
func (s *Store) Page(ctx context.Context, user schemas.UserID, below int64, n int) ([]schemas.FeedEntry, int64, error) {
	session, err := s.begin(ctx)
	if err != nil {
		return nil, 0, err
	}
	entries, trimmed, err := readPage(ctx, session, user, below, n)
	return entries, trimmed, s.during("read feed of "+string(user), err)
}

// begin returns the session, or an error if ctx has ended or there is no session.
func (s *Store) begin(ctx context.Context) (*gocql.Session, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	return s.conn()
}

// during adds to an error the operation and the store.
func (s *Store) during(what string, err error) error {
	if err != nil {
		err = fmt.Errorf("%s in %s: %w", what, s.name, err)
	}
	return err
}

func readPage(ctx context.Context, session *gocql.Session, user schemas.UserID, below int64, n int) ([]schemas.FeedEntry, int64, error) {
	var entries []schemas.FeedEntry
	var trimmed int64
	if n > 0 {
		var err error
		if entries, trimmed, err = readEntries(ctx, session, user, below, n); err != nil {
			return nil, 0, err
		}
	}
	if len(entries) > 0 {
		// Entries that arrived late are at the end, below the trim position.
		end := slices.IndexFunc(entries, func(e schemas.FeedEntry) bool { return e.Position <= trimmed })
		if end >= 0 {
			entries = entries[:end]
		}
		return entries, trimmed, nil
	}
	// No row contained the trim position. It is read after the rows: entries that are trimmed in between were not there before.
	err := session.Query(getTrimPosition, user).ScanContext(ctx, &trimmed) // a null is 0
	if err != nil && err != gocql.ErrNotFound {                            //nolint:errorlint // the driver does not wrap it
		return nil, 0, err
	}
	return nil, trimmed, nil
}

func readEntries(ctx context.Context, session *gocql.Session, user schemas.UserID, below int64, n int) (entries []schemas.FeedEntry, trimmed int64, err error) {
	rows := session.Query(getPage, user, below, n).IterContext(ctx)
	for {
		e := schemas.FeedEntry{User: user}
		var swept *schemas.Micros
		if !rows.Scan(&e.Position, &e.Pin, &e.Source, &e.Author, &e.Board, &e.Interests, &e.RankScore, &e.Created, &e.Pool, &e.Time, &swept, &trimmed) {
			break
		}
		if swept != nil {
			e = schemas.FeedEntry{User: user, Position: e.Position, Time: *swept}
		}
		entries = append(entries, e)
	}
	return entries, trimmed, rows.Close()
}

// Edges implements feed.Store, see feedstore.Store.
func (s *Store) Edges(ctx context.Context, user schemas.UserID, others []schemas.ID) (edges []schemas.Edge, err error) {
	session, err := s.begin(ctx)
	if err != nil || len(others) == 0 {
		return nil, err
	}
	distinct := slices.Compact(slices.Sorted(slices.Values(others)))
	rows := session.Query(getEdges, user, distinct).IterContext(ctx)
	e := schemas.Edge{User: user}
	var wins bool
	for rows.Scan(&e.Other, &e.Kind, &wins, &e.Time) {
		e.Live = feedstore.WinsTie(e.Kind, wins)
		edges = append(edges, e)
	}
	return edges, s.during("read edges of "+string(user), rows.Close())
}

// Cards implements feed.Store, see feedstore.Store.
func (s *Store) Cards(ctx context.Context, pins []schemas.PinID) (map[schemas.PinID]schemas.Card, error) {
	session, err := s.begin(ctx)
	if err != nil {
		return nil, err
	}
	cards, err := gather(ctx, pins, func(ctx context.Context, some []schemas.PinID) (map[schemas.PinID]schemas.Card, error) {
		cards, rows := map[schemas.PinID]schemas.Card{}, session.Query(getCards, some).IterContext(ctx)
		for {
			var c schemas.Card
			if !scanVersion(rows, &c.PinVersion, &c.Title, &c.Link) {
				return cards, rows.Close()
			}
			cards[c.Pin] = c
		}
	})
	return cards, s.during("read cards", err)
}

// scanVersion scans a row of a version: pin, facets, created, quality, deleted, then more, then the write time.
func scanVersion(rows *gocql.Iter, p *schemas.PinVersion, more ...any) bool {
	into := append([]any{&p.Pin, &p.Author, &p.Board, &p.Interests, &p.Created, &p.Quality, &p.Deleted}, more...)
	return rows.Scan(append(into, &p.Version)...)
}

// gather calls read for chunks of the keys, all in parallel.
func gather[K ~string, V any](ctx context.Context, keys []K, read func(ctx context.Context, some []K) (map[K]V, error)) (map[K]V, error) {
	all, mu := map[K]V{}, sync.Mutex{}
	group, ctx := errgroup.WithContext(ctx)
	for some := range slices.Chunk(slices.Compact(slices.Sorted(slices.Values(keys))), maxKeys) {
		group.Go(func() error {
			found, err := read(ctx, some)
			mu.Lock()
			defer mu.Unlock()
			maps.Copy(all, found)
			return err
		})
	}
	return all, group.Wait()
}

// DeletedUsers implements feed.Store, see feedstore.Store.
func (s *Store) DeletedUsers(ctx context.Context, users []schemas.UserID) (map[schemas.UserID]bool, error) {
	session, err := s.begin(ctx)
	if err != nil {
		return nil, err
	}
	deletedUsers, err := gather(ctx, users, func(ctx context.Context, some []schemas.UserID) (map[schemas.UserID]bool, error) {
		deletedUsers, rows := map[schemas.UserID]bool{}, session.Query(getDeletedUsers, some).IterContext(ctx)
		for user := schemas.UserID(""); rows.Scan(&user); {
			deletedUsers[user] = true
		}
		return deletedUsers, rows.Close()
	})
	return deletedUsers, s.during("read deleted users", err)
}

// List implements feed.Store, see feedstore.Store. Its rows are not read at one moment: a pin whose place changes meanwhile
// may be missing or appear twice.
func (s *Store) List(ctx context.Context, followee schemas.Followee, from string, n int) (pins []schemas.PinVersion, next string, err error) {
	var at *feedstore.Place
	if from != "" {
		p, err := feedstore.ParsePlace(from)
		if err != nil {
			return nil, "", err
		}
		at = &p
	}
	session, err := s.begin(ctx)
	if err != nil {
		return nil, "", err
	}
	w := walk{session: session, followee: followee, at: at, n: n}
	err = w.run(ctx)
	return w.pins, w.next, s.during("read list of "+string(followee), err)
}

// walk reads the places of a list in order.
type walk struct {
	session  *gocql.Session
	followee schemas.Followee
	at       *feedstore.Place // the last place passed; nil: none
	n, dead  int
	pins     []schemas.PinVersion
	next     string
}

func (w *walk) run(ctx context.Context) error {
	for {
		limit := max(w.n-len(w.pins), maxKeys) + 1 // one more, to detect whether another place follows
		places, err := w.places(ctx, limit)
		if err != nil {
			return err
		}
		told, err := w.listings(ctx, places)
		if err != nil {
			return err
		}
		if w.pass(places, told) || len(places) < limit {
			return nil
		}
	}
}

// pass collects the pins at places. It returns true when the page is full or MaxDead places were dead.
func (w *walk) pass(places []feedstore.Place, listings map[schemas.PinID]schemas.PinVersion) bool {
	for _, at := range places {
		if len(w.pins) == w.n || w.dead == feedstore.MaxDead {
			if w.at != nil {
				w.next = w.at.String()
			}
			return true
		}
		w.at = &at
		p, ok := listings[at.Pin]
		if ok && p.Created == at.Created && feedstore.Listed(w.followee, &p) {
			w.pins = append(w.pins, p)
		} else {
			w.dead++
		}
	}
	return false
}

// places returns the next places. Those with the same time as the last one precede older ones.
func (w *walk) places(ctx context.Context, limit int) ([]feedstore.Place, error) {
	if w.at == nil {
		return scanPlaces(w.session.Query(getTop, w.followee, limit).IterContext(ctx))
	}
	same, err := scanPlaces(w.session.Query(getSameTime, w.followee, int64(w.at.Created), w.at.Pin, limit).IterContext(ctx))
	if err != nil || len(same) == limit {
		return same, err
	}
	older, err := scanPlaces(w.session.Query(getOlder, w.followee, int64(w.at.Created), limit-len(same)).IterContext(ctx))
	return append(same, older...), err
}

func scanPlaces(rows *gocql.Iter) (places []feedstore.Place, err error) {
	for p := (feedstore.Place{}); rows.Scan(&p.Created, &p.Pin); {
		places = append(places, p)
	}
	return places, rows.Close()
}

func (w *walk) listings(ctx context.Context, places []feedstore.Place) (map[schemas.PinID]schemas.PinVersion, error) {
	found := make(map[schemas.PinID]schemas.PinVersion, len(places))
	if len(places) == 0 {
		return found, nil
	}
	pins := convert.All(places, func(p feedstore.Place) schemas.PinID { return p.Pin })
	rows := w.session.Query(getListings, w.followee, slices.Compact(slices.Sorted(slices.Values(pins)))).IterContext(ctx)
	for {
		var p schemas.PinVersion
		if !scanVersion(rows, &p) {
			return found, rows.Close()
		}
		found[p.Pin] = p
	}
}
