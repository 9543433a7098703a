package cassandra

import (
	"context"
	"fmt"
	"slices"

	gocql "github.com/apache/cassandra-gocql-driver/v2"
	"golang.org/x/sync/errgroup"

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
	if err != nil {
		return nil, 0, fmt.Errorf("read feed of %s in %s: %w", user, s.name, err)
	}
	return entries, trimmed, nil
}

// begin returns the session, or an error if ctx has ended or there is no session.
func (s *Store) begin(ctx context.Context) (*gocql.Session, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	return s.conn()
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
	var known *int64
	err := session.Query(getTrimPosition, user).ScanContext(ctx, &known)
	if err != nil && err != gocql.ErrNotFound { //nolint:errorlint // the driver does not wrap it
		return nil, 0, err
	}
	return nil, orZero(known), nil
}

func orZero(n *int64) int64 {
	if n == nil {
		return 0
	}
	return *n
}

func readEntries(ctx context.Context, session *gocql.Session, user schemas.UserID, below int64, n int) (entries []schemas.FeedEntry, trimmed int64, err error) {
	rows := session.Query(getPage, user, below, n).IterContext(ctx)
	for {
		e := schemas.FeedEntry{User: user}
		var names []string
		var created int64
		var written, swept, low *int64
		if !rows.Scan(&e.Position, &e.Pin, &e.Source, &e.Author, &e.Board, &names, &e.RankScore, &created, &e.Pool, &written, &swept, &low) {
			break
		}
		e.Interests, e.Created, e.Time = interestsOf(names), schemas.Micros(created), schemas.Micros(orZero(written))
		if swept != nil {
			e = schemas.FeedEntry{User: user, Position: e.Position, Time: schemas.Micros(*swept)}
		}
		trimmed = orZero(low)
		entries = append(entries, e)
	}
	return entries, trimmed, rows.Close()
}

func interestsOf(names []string) []schemas.InterestID {
	var all []schemas.InterestID
	for _, name := range names {
		all = append(all, schemas.InterestID(name))
	}
	return all
}

// Edges implements feed.Store, see feedstore.Store.
func (s *Store) Edges(ctx context.Context, user schemas.UserID, others []schemas.ID) (edges []schemas.Edge, err error) {
	session, err := s.begin(ctx)
	if err != nil || len(others) == 0 {
		return nil, err
	}
	distinct := slices.Compact(slices.Sorted(slices.Values(others)))
	rows := session.Query(getEdges, user, texts(distinct)).IterContext(ctx)
	e := schemas.Edge{User: user}
	var wins bool
	var written int64
	for rows.Scan(&e.Other, &e.Kind, &wins, &written) {
		e.Live, e.Time = feedstore.WinsTie(e.Kind, wins), schemas.Micros(written)
		edges = append(edges, e)
	}
	if err := rows.Close(); err != nil {
		return nil, fmt.Errorf("read edges of %s in %s: %w", user, s.name, err)
	}
	return edges, nil
}

func texts[S ~string](ids []S) []string {
	all := make([]string, len(ids))
	for i, id := range ids {
		all[i] = string(id)
	}
	return all
}

// Cards implements feed.Store, see feedstore.Store.
func (s *Store) Cards(ctx context.Context, pins []schemas.PinID) (map[schemas.PinID]schemas.Card, error) {
	session, err := s.begin(ctx)
	if err != nil {
		return nil, err
	}
	found, err := gather(ctx, pins, func(ctx context.Context, some []string) (all []schemas.Card, err error) {
		rows := session.Query(getCards, some).IterContext(ctx)
		for {
			var c schemas.Card
			if !scanVersion(rows, &c.PinVersion, &c.Title, &c.Link) {
				return all, rows.Close()
			}
			all = append(all, c)
		}
	})
	if err != nil {
		return nil, fmt.Errorf("read cards in %s: %w", s.name, err)
	}
	cards := make(map[schemas.PinID]schemas.Card, len(found))
	for _, c := range found {
		cards[c.Pin] = c
	}
	return cards, nil
}

// scanVersion scans a row of a version: pin, facets, created, quality, deleted, then more, then the write time.
func scanVersion(rows *gocql.Iter, p *schemas.PinVersion, more ...any) bool {
	var names []string
	var created, written int64
	into := append([]any{&p.Pin, &p.Author, &p.Board, &names, &created, &p.Quality, &p.Deleted}, more...)
	if !rows.Scan(append(into, &written)...) {
		return false
	}
	p.Interests, p.Created, p.Version = interestsOf(names), schemas.Micros(created), schemas.Version(written)
	return true
}

// gather calls read for chunks of the keys, all in parallel.
func gather[K ~string, T any](ctx context.Context, keys []K, read func(ctx context.Context, some []string) ([]T, error)) ([]T, error) {
	distinct := slices.Compact(slices.Sorted(slices.Values(keys)))
	chunks := slices.Collect(slices.Chunk(texts(distinct), maxKeys))
	found := make([][]T, len(chunks))
	group, ctx := errgroup.WithContext(ctx)
	for i, some := range chunks {
		group.Go(func() (err error) {
			found[i], err = read(ctx, some)
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	return slices.Concat(found...), nil
}

// DeletedUsers implements feed.Store, see feedstore.Store.
func (s *Store) DeletedUsers(ctx context.Context, users []schemas.UserID) (map[schemas.UserID]bool, error) {
	session, err := s.begin(ctx)
	if err != nil {
		return nil, err
	}
	found, err := gather(ctx, users, func(ctx context.Context, some []string) (all []schemas.UserID, err error) {
		rows := session.Query(getDeletedUsers, some).IterContext(ctx)
		for user := ""; rows.Scan(&user); {
			all = append(all, schemas.UserID(user))
		}
		return all, rows.Close()
	})
	if err != nil {
		return nil, fmt.Errorf("read deleted users in %s: %w", s.name, err)
	}
	deletedUsers := map[schemas.UserID]bool{}
	for _, user := range found {
		deletedUsers[user] = true
	}
	return deletedUsers, nil
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
	if err := w.run(ctx); err != nil {
		return nil, "", fmt.Errorf("read list of %s in %s: %w", followee, s.name, err)
	}
	return w.pins, w.next, nil
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
	var created int64
	var pin schemas.PinID
	for rows.Scan(&created, &pin) {
		places = append(places, feedstore.Place{Created: schemas.Micros(created), Pin: pin})
	}
	return places, rows.Close()
}

func (w *walk) listings(ctx context.Context, places []feedstore.Place) (map[schemas.PinID]schemas.PinVersion, error) {
	found := make(map[schemas.PinID]schemas.PinVersion, len(places))
	if len(places) == 0 {
		return found, nil
	}
	pins := make([]string, len(places))
	for i, p := range places {
		pins[i] = string(p.Pin)
	}
	rows := w.session.Query(getListings, w.followee, slices.Compact(slices.Sorted(slices.Values(pins)))).IterContext(ctx)
	for {
		var p schemas.PinVersion
		if !scanVersion(rows, &p) {
			return found, rows.Close()
		}
		found[p.Pin] = p
	}
}
