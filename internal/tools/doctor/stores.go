package doctor

import (
	"context"
	"errors"
	"math"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/smartfeed/smartfeed/schemas"
	"github.com/smartfeed/smartfeed/topics"
)

// Names of the checks on stores.
const (
	PrimaryCheck = "feed store"
	StandbyCheck = "standby"
	DriftCheck   = "drift"
	PinotCheck   = "pinot"
)

// FeedStore returns the check on one cluster of a feed store. verify returns an error for each difference from the
// expected schema, or an error if the cluster is unreachable.
func FeedStore(name string, verify func(context.Context) error) Check {
	return Check{Name: name, Examine: func(ctx context.Context, found *Findings) error {
		err := verify(ctx)
		if err == nil {
			found.OK("reachable, keyspace and tables as configured")
			return nil
		}
		for line := range strings.Lines(reason(ctx, err).Error()) {
			found.Problem(`if the cluster runs, "smartfeed feed-store apply" creates missing tables; otherwise start it; reads use the other store until then`, "%s", strings.TrimSpace(line))
		}
		return nil
	}}
}

// Heads reads the top of a materialized feed. The feed stores implement it.
type Heads interface {
	Page(ctx context.Context, user schemas.UserID, below int64, n int) ([]schemas.FeedEntry, int64, error)
}

// Drift compares two feed stores by the feeds of recent visitors.
type Drift struct {
	Kafka topics.Kafka
	// With calls use with both stores connected. It returns an error if a store is unreachable.
	With func(ctx context.Context, use func(primary, standby Heads)) error
}

// driftUsers is the number of compared feeds: enough to detect a lagging store, and cheap to read.
const driftUsers = 50

// Check returns the check.
func (d Drift) Check() Check {
	return Check{Name: DriftCheck, After: TopicsCheck, Examine: func(ctx context.Context, found *Findings) error {
		users, err := d.visitors(ctx)
		if err != nil {
			return err
		}
		err = d.With(ctx, func(primary, standby Heads) { compare(ctx, primary, standby, users, found) })
		if err != nil {
			found.Warn(seeStores, "not compared: %v", reason(ctx, err))
		}
		return nil
	}, Advice: "see the check kafka"}
}

const seeStores = "see the checks feed store and standby"

func compare(ctx context.Context, primary, standby Heads, users []schemas.UserID, found *Findings) {
	var behind [2]int
	for _, user := range users {
		a, errA := head(ctx, primary, user)
		b, errB := head(ctx, standby, user)
		if err := errors.Join(errA, errB); err != nil {
			found.Warn(seeStores, "not compared: %v", reason(ctx, err))
			return
		}
		switch {
		case a < b:
			behind[0]++
		case b < a:
			behind[1]++
		}
	}
	report(behind, len(users), found)
}

func report(behind [2]int, users int, found *Findings) {
	const advice = `see the lag of its consumer group in the check groups: "smartfeed materialize" fills the store from the topics; if rows were lost, run "smartfeed feed-store refill"`
	for i, name := range []string{"primary", "standby"} {
		if behind[i] > 0 {
			found.Warn(advice, "the %s lags in %d of the %d last visited feeds", name, behind[i], users)
		}
	}
	if len(*found) == 0 {
		found.OK("both stores have the same newest items of the %d last visited feeds", users)
	}
}

// head returns the position of the newest item of a feed, -1 for an empty one.
func head(ctx context.Context, store Heads, user schemas.UserID) (int64, error) {
	entries, _, err := store.Page(ctx, user, math.MaxInt64, 1)
	if err != nil || len(entries) == 0 {
		return -1, err
	}
	return entries[0].Position, nil
}

// visitors returns the users of the most recent visits: the keys at the end of feed-entries.
func (d Drift) visitors(ctx context.Context) ([]schemas.UserID, error) {
	l, err := topics.NewLog(d.Kafka)
	if err != nil {
		return nil, err
	}
	defer l.Close()
	ends, err := l.Ends(ctx, topics.FeedEntries)
	if err != nil {
		return nil, err
	}
	seen, users := map[schemas.UserID]bool{}, []schemas.UserID{}
	const back = 200 // offsets per partition: a hundred visits, each with a transaction marker
	for p, end := range ends[topics.FeedEntries] {
		err := l.ReadTo(ctx, topics.FeedEntries, p, max(0, end-back), end, func(r *kgo.Record) error {
			if user := schemas.UserID(r.Key); !seen[user] && len(users) < driftUsers {
				seen[user], users = true, append(users, user)
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	return users, nil
}

// Pinot configures the check on Pinot.
type Pinot struct {
	Answers func(context.Context) (int, []error)     // returns the number of brokers that answer queries, and the errors of the others
	Verify  func(context.Context) ([]string, error)  // returns the differences of schema and table
	Oldest  func(context.Context) (time.Time, error) // returns the arrival of the oldest action that Pinot has not ingested; zero: none
}

// largePinotLag is the lag above which Pinot gets a warning. Normally an action is visible within a second.
const largePinotLag = 30 * time.Second

// Check returns the check, which examines table, controller, brokers and lag.
func (p Pinot) Check() Check {
	return Check{Name: PinotCheck, Examine: func(ctx context.Context, found *Findings) error {
		differ, errController := p.Verify(ctx)
		if errController != nil {
			found.Warn(`check pinot.controller: queries work without it, but "smartfeed wait" waits for it, and the alert FeaturesLagging fires`,
				"the controller does not respond: %v", reason(ctx, errController))
		}
		for _, d := range differ {
			found.Problem(`run "smartfeed pinot apply"`, "%s", d)
		}
		if p.answers(ctx, found) && errController == nil {
			p.lag(ctx, found)
		}
		return nil
	}}
}

// answers reports whether at least one broker answers queries.
func (p Pinot) answers(ctx context.Context, found *Findings) bool {
	available, failed := p.Answers(ctx)
	for _, err := range failed {
		if available > 0 {
			found.Warn("check pinot.brokers: queries use the other brokers until then", "a broker does not answer queries: %v", reason(ctx, err))
			continue
		}
		found.Problem("check pinot.brokers, and Pinot's servers: responses are degraded and omit features", "no broker answers queries: %v", reason(ctx, err))
	}
	return available > 0
}

// lag compares Pinot's data with its topics.
func (p Pinot) lag(ctx context.Context, found *Findings) {
	const advice = "see the check kafka, and the ingestion state of Pinot's tables, such as stopped segments or too few servers"
	oldest, err := p.Oldest(ctx)
	switch behind := time.Since(oldest); {
	case err != nil && len(*found) > 0: // for example, a table is missing
	case err != nil:
		found.Warn(advice, "the lag is unknown: %v", reason(ctx, err))
	case !oldest.IsZero() && behind > largePinotLag:
		found.Warn(advice, "records are missing, the oldest of which arrived %s ago", behind.Round(time.Second))
	case len(*found) == 0:
		found.OK("answers queries, tables as configured, a lag of less than %s", largePinotLag)
	}
}
