package cassandra

import (
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	gocql "github.com/apache/cassandra-gocql-driver/v2"
	"github.com/cenkalti/backoff/v5"
	"golang.org/x/sync/errgroup"

	"github.com/smartfeed/smartfeed/schemas"
	"github.com/smartfeed/smartfeed/serving/feedstore"
)

// The write statements. Each sets its write time.
const (
	putEntry = `INSERT INTO feeds (user, position, pin, source, author, board, interests, score, created, pool)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?) USING TIMESTAMP ?`
	putSwept        = `INSERT INTO feeds (user, position, swept) VALUES (?, ?, ?) USING TIMESTAMP ?`
	putTrimPosition = `UPDATE feeds USING TIMESTAMP ? AND TTL 0 SET trim_position = ? WHERE user = ?`
	trimFeed        = `DELETE FROM feeds USING TIMESTAMP ? WHERE user = ? AND position <= ?`
	putEdge         = `INSERT INTO edges (user, other, kind, wins_tie) VALUES (?, ?, ?, ?) USING TIMESTAMP ?`
	putPlace        = `INSERT INTO places (followee, created, pin) VALUES (?, ?, ?) USING TIMESTAMP ?`
	putListing      = `INSERT INTO listings (followee, pin, author, board, interests, created, quality, deleted)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?) USING TIMESTAMP ?`
	putCard = `INSERT INTO cards (pin, author, board, interests, created, quality, deleted, title, link)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?) USING TIMESTAMP ?`
	dropFeed       = `DELETE FROM feeds USING TIMESTAMP ? WHERE user = ?`
	dropEdges      = `DELETE FROM edges USING TIMESTAMP ? WHERE user = ?`
	dropEdge       = `DELETE FROM edges USING TIMESTAMP ? WHERE user = ? AND other = ? AND kind = ?`
	dropPlaces     = `DELETE FROM places USING TIMESTAMP ? WHERE followee = ?`
	dropListings   = `DELETE FROM listings USING TIMESTAMP ? WHERE followee = ?`
	putDeletedUser = `INSERT INTO deleted_users (user, time) VALUES (?, ?) USING TIMESTAMP ?`
)

// maxTogether is how many statements one mutation holds. A statement has at most 66 KiB (256 interests of 256 bytes), and a
// mutation may take half a segment of the commit log, 16 MiB by default.
const maxTogether = 50

// statement is one write.
type statement struct {
	text string
	args []any
}

// lane is a sequence of mutations that are written in order, each to one partition of one table.
type lane [][]statement

// Write stores the batch and returns when a quorum has it. After an error, a part of the batch may be stored; repeating the
// Write is safe. If a record fails feedstore.Check, Write returns an error and stores nothing.
func (s *Store) Write(ctx context.Context, b feedstore.Batch) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := feedstore.Check(b); err != nil {
		return fmt.Errorf("write feed store %s: %w", s.name, err)
	}
	session, err := s.conn()
	if err != nil {
		return err
	}
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(s.cfg.MaxConcurrentWrites)
	for _, l := range lanes(b, s.trim) {
		group.Go(func() error { return l.write(ctx, session) })
	}
	if err := group.Wait(); err != nil {
		return fmt.Errorf("write feed store %s: %w", s.name, err)
	}
	return nil
}

// RetryingWriter is a Store whose Write retries until it succeeds, for a writer that has nothing else to do.
type RetryingWriter struct{ *Store }

// Write retries until the store has the whole batch or ctx ends. It returns an error at once if feedstore.Check fails. The
// delay between two attempts grows from 50 ms to a second.
func (s RetryingWriter) Write(ctx context.Context, b feedstore.Batch) error {
	if err := feedstore.Check(b); err != nil {
		return fmt.Errorf("write feed store %s: %w", s.name, err)
	}
	delays := &backoff.ExponentialBackOff{InitialInterval: 50 * time.Millisecond, Multiplier: 2, MaxInterval: time.Second}
	warned := false
	_, err := backoff.Retry(ctx, func() (struct{}, error) { return struct{}{}, s.Store.Write(ctx, b) },
		backoff.WithBackOff(delays), backoff.WithMaxElapsedTime(0), backoff.WithNotify(func(err error, _ time.Duration) {
			if !warned {
				s.log.WarnContext(ctx, "write to the feed store failed and is retried", "error", err)
			}
			warned = true
		}))
	return err
}

func (l lane) write(ctx context.Context, session *gocql.Session) error {
	for _, mutation := range l {
		if err := mutate(ctx, session, mutation); err != nil {
			return err
		}
	}
	return nil
}

func mutate(ctx context.Context, session *gocql.Session, mutation []statement) error {
	if len(mutation) == 1 {
		return session.Query(mutation[0].text, mutation[0].args...).ExecContext(ctx)
	}
	batch := session.Batch(gocql.UnloggedBatch) // in one partition a batch is one mutation and needs no log
	for _, st := range mutation {
		batch.Query(st.text, st.args...)
	}
	return batch.ExecContext(ctx)
}

// lanes returns the writes of a batch by partition. The lane of a user's feed ends with the trim position and the trimmed
// range, so that the trim position never precedes the entries above it. A listing is written before its place.
func lanes(b feedstore.Batch, trim feedstore.Trimming) (all []lane) {
	cuts := trim.Cuts(b.Entries)
	for user, entries := range by(b.Entries, func(e *schemas.FeedEntry) schemas.UserID { return e.User }, entryStatement) {
		if cut, ok := cuts[user]; ok {
			entries = append(entries, cutStatements(user, cut)...)
		}
		all = append(all, mutations(entries))
	}
	for _, edges := range by(b.Edges, func(e *schemas.Edge) schemas.UserID { return e.User }, edgeStatement) {
		all = append(all, mutations(edges))
	}
	listings := by(b.Publications, followeeOf, listingStatement)
	places := by(slices.DeleteFunc(slices.Clone(b.Publications), unlisted), followeeOf, placeStatement)
	for followee, told := range listings {
		all = append(all, append(mutations(told), mutations(places[followee])...))
	}
	for i := range b.Cards {
		all = append(all, lane{{cardStatement(&b.Cards[i])}})
	}
	for _, d := range b.Deleted {
		all = append(all, lane{{{putDeletedUser, []any{d.User, int64(d.Time), writeTime(d.Time)}}}})
	}
	for _, d := range b.Erased {
		for _, text := range []string{dropFeed, dropEdges, dropPlaces, dropListings} {
			all = append(all, lane{{{text, []any{writeTime(d.Time), string(d.User)}}}})
		}
	}
	return all
}

// by returns a statement for each record, grouped by partition.
func by[K comparable, T any](records []T, key func(*T) K, make func(*T) statement) map[K][]statement {
	all := map[K][]statement{}
	for i := range records {
		k := key(&records[i])
		all[k] = append(all[k], make(&records[i]))
	}
	return all
}

// mutations splits the statements of one partition into mutations. The last two statements, a trim position and its range, stay
// together.
func mutations(statements []statement) (l lane) {
	for len(statements) > maxTogether {
		n := maxTogether - 2
		l = append(l, statements[:n])
		statements = statements[n:]
	}
	if len(statements) > 0 {
		l = append(l, statements)
	}
	return l
}

func followeeOf(p *schemas.Publication) schemas.Followee { return p.Followee }

func unlisted(p schemas.Publication) bool { return !feedstore.Listed(p.Followee, &p.PinVersion) }

// writeTime returns the write time for a record's time. Cassandra rejects the minimum int64, which a producer may send.
func writeTime(t schemas.Micros) int64 { return max(int64(t), math.MinInt64+1) }

func entryStatement(e *schemas.FeedEntry) statement {
	if e.Pin == "" {
		return statement{putSwept, []any{e.User, e.Position, int64(e.Time), writeTime(e.Time)}}
	}
	return statement{putEntry, []any{e.User, e.Position, e.Pin, e.Source, e.Author, e.Board, interests(&e.Facets), e.RankScore,
		int64(e.Created), e.Pool, writeTime(e.Time)}}
}

// cutStatements raise the trim position and delete the entries below it, up to the time of the entry that caused the cut. The
// write time of the trim position is the trim position itself, so that the highest trim position remains.
func cutStatements(user schemas.UserID, c feedstore.Cut) []statement {
	return []statement{
		{putTrimPosition, []any{c.Position, c.Position, user}},
		{trimFeed, []any{writeTime(c.Time), user, c.Position}},
	}
}

// edgeStatement writes whether the state wins a tie. At the same write time the greater value remains, and true is greater.
func edgeStatement(e *schemas.Edge) statement {
	if e.Erased {
		return statement{dropEdge, []any{writeTime(e.Time), e.User, e.Other, string(e.Kind)}}
	}
	return statement{putEdge, []any{e.User, e.Other, string(e.Kind), feedstore.WinsTie(e.Kind, e.Live), writeTime(e.Time)}}
}

func placeStatement(p *schemas.Publication) statement {
	return statement{putPlace, []any{p.Followee, int64(p.Created), p.Pin, int64(p.Version)}}
}

func listingStatement(p *schemas.Publication) statement {
	return statement{putListing, []any{p.Followee, p.Pin, p.Author, p.Board, interests(&p.Facets), int64(p.Created), p.Quality,
		p.Deleted, int64(p.Version)}}
}

func cardStatement(c *schemas.Card) statement {
	return statement{putCard, []any{c.Pin, c.Author, c.Board, interests(&c.Facets), int64(c.Created), c.Quality, c.Deleted,
		c.Title, c.Link, int64(c.Version)}}
}

// interests never returns nil, because nil would write a tombstone.
func interests(f *schemas.Facets) []schemas.InterestID {
	return append([]schemas.InterestID{}, f.Interests...)
}
