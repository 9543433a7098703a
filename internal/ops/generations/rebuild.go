package generations

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/smartfeed/smartfeed/internal/command"
	"github.com/smartfeed/smartfeed/schemas"
	"github.com/smartfeed/smartfeed/topics"
)

// Rebuilt is the result of a rebuild.
type Rebuilt struct {
	Source  schemas.Source `json:"source,omitempty"` // "": every source that followees deliver
	Users   int            `json:"users"`            // all users, including Before
	Before  int            `json:"before,omitempty"` // users whose rebuild the resumed run had requested
	Seconds float64        `json:"seconds"`
}

// String returns the result as one line of text.
func (r Rebuilt) String() string {
	of := "pools"
	if r.Source != "" {
		of = "pools of " + string(r.Source)
	}
	s := fmt.Sprintf("rebuilt the %s of %s in %.1f s", of, command.Count(r.Users-r.Before, "user"), r.Seconds)
	if r.Before > 0 {
		s += fmt.Sprintf(", %d of an earlier run", r.Before)
	}
	return s
}

// rebuilder rebuilds pools in place, see schemas.Rebuild.
type rebuilder struct {
	*access
	source schemas.Source // "": every source that followees deliver
	rate   float64        // users per second, above 0
	keep   string         // if not "", nothing is removed, and a run with this name is resumed if there is one
	resume bool           // continue the last run of the same source
}

// resentUsers is the number of users that a resumed run requests again. It is the maximum number of requests in flight
// when the previous run stopped.
const resentUsers = 100

// user rebuilds the pools of one user and returns when they are complete. It returns ErrNoData for a user without rows.
func (r rebuilder) user(ctx context.Context, user schemas.UserID) (Rebuilt, error) {
	start := time.Now()
	known, err := CountRows(ctx, r.log, user, topics.Pools)
	if err != nil {
		return Rebuilt{}, err
	}
	if len(known) == 0 {
		return Rebuilt{}, fmt.Errorf("rebuild %s: %w", user, ErrNoData)
	}
	task := topics.Setup{}.Start("rebuild", 1)
	if err := r.request(ctx, "user-"+rand.Text(), []schemas.UserID{user}, task); err != nil {
		return Rebuilt{}, err
	}
	err = r.wait(ctx, task)
	return Rebuilt{Source: r.source, Users: 1, Seconds: time.Since(start).Seconds()}, err
}

// all rebuilds the pools of every user with pools, ordered by id, and returns when they are complete. If ctx is canceled
// before, the published requests still take effect.
func (r rebuilder) all(ctx context.Context) (Rebuilt, error) {
	start := time.Now()
	done := Rebuilt{Source: r.source}
	users, err := OwnersOf(ctx, r.log, topics.Pools)
	if err != nil {
		return done, err
	}
	run := r.prefix() + rand.Text()
	if r.resume {
		last, before, err := r.lastRun(ctx, users)
		if err == nil && last != "" {
			run, done.Before = last, before
		}
		if err == nil && last == "" && r.keep == "" {
			err = errors.New("rebuild: there is no run to resume")
		}
		if err != nil {
			return done, err
		}
	}
	done.Users = len(users)
	task := r.Start("rebuild", len(users))
	defer task.Done()
	task.Add(done.Before)
	if err := r.request(ctx, run, users[done.Before:], task); err != nil {
		return done, fmt.Errorf("%w: --resume continues there", err)
	}
	task.Say("all users requested, waiting for the results")
	err = r.wait(ctx, task)
	done.Seconds = time.Since(start).Seconds()
	return done, err
}

// request publishes a Rebuild for each user.
func (r rebuilder) request(ctx context.Context, run string, users []schemas.UserID, task topics.Progress) error {
	to, requested := r.publisher(r.rate, resentUsers), 0
	for some := range slices.Chunk(users, to.batch) {
		batch, err := r.records(run, some)
		if err == nil {
			err = to.publish(ctx, batch)
		}
		if err != nil {
			return fmt.Errorf("rebuild: %d of %d users were requested: %w", requested, len(users), err)
		}
		requested += len(some)
		task.Add(len(some))
	}
	return nil
}

func (r rebuilder) records(run string, users []schemas.UserID) ([]*kgo.Record, error) {
	records := make([]*kgo.Record, len(users))
	for i, user := range users {
		value, err := r.streams.Rebuilds.Encode(&schemas.Rebuild{User: user, Source: r.source, Run: run, Keep: r.keep != ""})
		if err != nil {
			return nil, fmt.Errorf("encode %s: %w", topics.Rebuilds, err)
		}
		records[i] = &kgo.Record{Topic: topics.Rebuilds, Key: []byte(user), Value: value}
	}
	return records, nil
}

// prefix returns the prefix of the names of runs for all users.
func (r rebuilder) prefix() string { return r.keep + string(r.source) + "-all-" }

// lastRun returns the name of the last run for all users of the source, or "" if there is none. It also returns the number
// of users that need not be requested again.
func (r rebuilder) lastRun(ctx context.Context, users []schemas.UserID) (run string, requested int, err error) {
	last := map[string]schemas.UserID{} // by run
	runOf := func(b *schemas.Rebuild) string { return b.Run }
	run, err = newestRun(ctx, r.log, r.streams.Rebuilds, r.prefix(), runOf, func(b *schemas.Rebuild, _ *kgo.Record) {
		last[b.Run] = max(last[b.Run], b.User)
	})
	at, _ := slices.BinarySearch(users, last[run])
	return run, max(0, at-resentUsers), err
}
