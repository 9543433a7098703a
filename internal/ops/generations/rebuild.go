package generations

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"golang.org/x/time/rate"

	"github.com/smartfeed/smartfeed/internal/command"
	"github.com/smartfeed/smartfeed/schemas"
	"github.com/smartfeed/smartfeed/topics"
)

// Rebuilt is the result of a rebuild.
type Rebuilt struct {
	Source  schemas.Source `json:"source,omitempty"` // "": every source that followees deliver
	Users   int            `json:"users"`            // number of users requested
	Before  int            `json:"before,omitempty"` // requested by the resumed run
	Seconds float64        `json:"seconds"`
}

// String returns one line for people.
func (r Rebuilt) String() string {
	of := "pools"
	if r.Source != "" {
		of = "pools of " + string(r.Source)
	}
	s := fmt.Sprintf("rebuilt the %s of %s in %.1f s", of, command.Count(r.Users-r.Before, "user"), r.Seconds)
	if r.Before > 0 {
		s += fmt.Sprintf(", %d had been before", r.Before)
	}
	return s
}

// Rebuilder rebuilds pools in place, see schemas.Rebuild.
type Rebuilder struct {
	Setup   topics.Setup // the brokers, and the progress display
	Streams *topics.Streams
	Readers []topics.Reader // readers to wait for; none: those of the catalogue
	Source  schemas.Source  // "": every source that followees deliver
	Rate    float64         // users per second, above 0
	Keep    string          // if not "", nothing is removed, and a run with this name is resumed if there is one
	Resume  bool            // continue the last run of the same source
}

// resentUsers is the number of users that a resumed run requests again: at most so many requests were in flight when it
// stopped.
const resentUsers = 100

// User rebuilds the pools of one user and returns when they are complete. It returns ErrNothingKnown for a user without
// rows.
func (r Rebuilder) User(ctx context.Context, user schemas.UserID) (Rebuilt, error) {
	start := time.Now()
	l, err := topics.NewLog(r.Setup.Kafka)
	if err != nil {
		return Rebuilt{}, err
	}
	defer l.Close()
	known, err := CountRows(ctx, l, user, topics.Pools)
	if err != nil {
		return Rebuilt{}, err
	}
	if len(known) == 0 {
		return Rebuilt{}, fmt.Errorf("rebuild %s: %w", user, ErrNothingKnown)
	}
	if err := r.ask(ctx, "user-"+rand.Text(), []schemas.UserID{user}, 1, topics.Setup{}.Start("rebuild", 1)); err != nil {
		return Rebuilt{}, err
	}
	err = r.wait(ctx)
	return Rebuilt{Source: r.Source, Users: 1, Seconds: time.Since(start).Seconds()}, err
}

// All rebuilds the pools of every user who has any, ordered by id, and returns when they are complete. If ctx is canceled
// before, the published requests still take effect.
func (r Rebuilder) All(ctx context.Context) (Rebuilt, error) {
	start := time.Now()
	done := Rebuilt{Source: r.Source}
	l, err := topics.NewLog(r.Setup.Kafka)
	if err != nil {
		return done, err
	}
	defer l.Close()
	users, err := OwnersOf(ctx, l, topics.Pools)
	if err != nil {
		return done, err
	}
	run := r.prefix() + rand.Text()
	if r.Resume || r.Keep != "" {
		former, before, err := r.former(ctx, l, users)
		if err == nil && former != "" {
			run, done.Before = former, before
		}
		if err == nil && former == "" && r.Keep == "" {
			err = errors.New("rebuild: there is no run to resume")
		}
		if err != nil {
			return done, err
		}
	}
	done.Users = len(users)
	task := r.Setup.Start("rebuild", len(users))
	defer task.Done()
	task.Add(done.Before)
	if err := r.ask(ctx, run, users[done.Before:], r.Rate, task); err != nil {
		return done, fmt.Errorf("%w: --resume goes on from there", err)
	}
	task.Say("all asked for, waiting for the answers")
	err = r.wait(ctx)
	done.Seconds = time.Since(start).Seconds()
	return done, err
}

func (r Rebuilder) wait(ctx context.Context) error {
	return topics.Wait(ctx, r.Setup.Kafka, schemas.MicrosOf(time.Now()), nil, r.Readers...)
}

// ask publishes a Rebuild for each user at the given rate.
func (r Rebuilder) ask(ctx context.Context, run string, users []schemas.UserID, perSecond float64, task topics.Progress) error {
	client, err := r.Setup.Kafka.Client()
	if err != nil {
		return err
	}
	defer client.Close()
	batch := min(resentUsers, max(1, int(perSecond/10)))
	pace := rate.NewLimiter(rate.Limit(perSecond), batch)
	asked := 0
	for some := range slices.Chunk(users, batch) {
		err := pace.WaitN(ctx, len(some))
		if err == nil {
			err = r.publish(ctx, client, run, some)
		}
		if err != nil {
			return fmt.Errorf("rebuild: %d of %d users were asked for: %w", asked, len(users), err)
		}
		asked += len(some)
		task.Add(len(some))
	}
	return nil
}

func (r Rebuilder) publish(ctx context.Context, client *kgo.Client, run string, users []schemas.UserID) error {
	records := make([]*kgo.Record, len(users))
	for i, user := range users {
		value, err := r.Streams.Rebuilds.Encode(&schemas.Rebuild{User: user, Source: r.Source, Run: run, Keep: r.Keep != ""})
		if err != nil {
			return fmt.Errorf("encode %s: %w", topics.Rebuilds, err)
		}
		records[i] = &kgo.Record{Topic: topics.Rebuilds, Key: []byte(user), Value: value}
	}
	return topics.Produce(ctx, client, records...)
}

// prefix returns the prefix of the names of runs for all users.
func (r Rebuilder) prefix() string { return r.Keep + string(r.Source) + "-all-" }

// former returns the name of the last run for all users of the source, or "" if there is none. It also returns the number
// of users that need not be requested again.
func (r Rebuilder) former(ctx context.Context, l *topics.Log, users []schemas.UserID) (run string, asked int, err error) {
	var newest time.Time
	last := map[string]schemas.UserID{} // by run
	err = l.ReadAll(ctx, topics.Rebuilds, func(rec *kgo.Record) error {
		b, err := r.Streams.Rebuilds.Decode(rec.Value)
		if err != nil || !strings.HasPrefix(b.Run, r.prefix()) {
			return nil
		}
		if last[b.Run] = max(last[b.Run], b.User); !rec.Timestamp.Before(newest) {
			newest, run = rec.Timestamp, b.Run
		}
		return nil
	})
	at, _ := slices.BinarySearch(users, last[run])
	return run, max(0, at-resentUsers), err
}
