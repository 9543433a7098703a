package ops

import (
	"bufio"
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/smartfeed/smartfeed/schemas"
	"github.com/smartfeed/smartfeed/topics"
)

// ErasedAgain is the result of Eraser.Again.
type ErasedAgain struct {
	Users    int     `json:"users"`
	Restored int     `json:"restored"` // users whose deletion was not on these brokers
	Seconds  float64 `json:"seconds"`
}

// String returns the result as one line of text.
func (a ErasedAgain) String() string {
	return fmt.Sprintf("erased %d users again in %.1f s; the deletion of %d of them was not on the brokers", a.Users, a.Seconds, a.Restored)
}

// DeletedUsers returns every user on the topic users-deleted, sorted by id.
func DeletedUsers(ctx context.Context, k topics.Kafka, s *topics.Streams) ([]schemas.DeletedUser, error) {
	l, err := topics.NewLog(k)
	if err != nil {
		return nil, err
	}
	defer l.Close()
	first := map[schemas.UserID]schemas.DeletedUser{}
	err = l.ReadAll(ctx, topics.UsersDeleted, func(r *kgo.Record) error {
		user, err := schemas.ParseUserID(string(r.Key))
		if _, known := first[user]; err != nil || known || r.Value == nil {
			return nil
		}
		d, err := s.UsersDeleted.Decode(r.Value)
		var bad *schemas.BadRecordError
		switch {
		case errors.As(err, &bad): // the key identifies the user
			d = &schemas.DeletedUser{Time: schemas.MicrosOf(r.Timestamp)}
		case err != nil:
			return err
		}
		first[user] = schemas.DeletedUser{User: user, Time: d.Time}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", topics.UsersDeleted, err)
	}
	list := make([]schemas.DeletedUser, 0, len(first))
	for _, d := range first {
		list = append(list, d)
	}
	slices.SortFunc(list, func(a, b schemas.DeletedUser) int { return cmp.Compare(a.User, b.User) })
	return list, nil
}

// WriteDeletedUsers writes one line per user, with the id and the time of the delete, in the format of ReadDeletedUsers.
func WriteDeletedUsers(w io.Writer, list []schemas.DeletedUser) error {
	out := bufio.NewWriter(w)
	for _, d := range list {
		fmt.Fprintf(out, "%s %s\n", d.User, d.Time.Time().UTC().Format(time.RFC3339Nano))
	}
	return out.Flush()
}

// ReadDeletedUsers returns the first field of each line, which must be the id of a user, sorted and without duplicates. It
// skips empty lines and lines that start with #. The error lists every bad line.
func ReadDeletedUsers(r io.Reader) ([]schemas.UserID, error) {
	var list []schemas.UserID
	var problems []error
	lines := bufio.NewScanner(r)
	for n := 1; lines.Scan(); n++ {
		fields := strings.Fields(lines.Text())
		if len(fields) == 0 || strings.HasPrefix(fields[0], "#") {
			continue
		}
		user, err := schemas.ParseUserID(fields[0])
		if err != nil {
			problems = append(problems, fmt.Errorf("line %d: %w", n, err))
			continue
		}
		list = append(list, user)
	}
	if err := errors.Join(append(problems, lines.Err())...); err != nil {
		return nil, fmt.Errorf("read deleted users: %w", err)
	}
	slices.Sort(list)
	return slices.Compact(list), nil
}

// Again erases users who were erased before, after brokers or stores have been restored from an older copy. It returns when
// all erasures have had their effect. Repeating it, or erasing a user of whom nothing was restored, changes nothing. If ctx
// is canceled while it waits, the error is a *topics.WaitError, and the erasures continue.
func (e Eraser) Again(ctx context.Context, users []schemas.UserID) (ErasedAgain, error) {
	start := time.Now()
	known, err := DeletedUsers(ctx, e.Kafka, e.Streams)
	if err != nil {
		return ErasedAgain{}, err
	}
	done := ErasedAgain{Users: len(users)}
	for _, user := range users {
		_, found := slices.BinarySearchFunc(known, user, func(d schemas.DeletedUser, id schemas.UserID) int { return cmp.Compare(d.User, id) })
		if !found {
			done.Restored++
		}
	}
	if err := e.publish(ctx, users...); err != nil {
		return done, err
	}
	err = e.wait(ctx)
	done.Seconds = time.Since(start).Seconds()
	return done, err
}

// publish deletes users, each with a new event id. A repeated delete makes every group delete remaining data of the
// user.
func (e Eraser) publish(ctx context.Context, users ...schemas.UserID) error {
	p, err := topics.NewPublisher(e.Kafka, e.Streams)
	if err != nil {
		return err
	}
	defer p.Close()
	p.Operator = e.Operator
	for some := range slices.Chunk(users, 1000) {
		lines := make([]schemas.Line, len(some))
		for i, user := range some {
			lines[i] = schemas.Line{Stream: topics.Users, Key: string(user), Event: &schemas.UserEvent{Event: schemas.Event{
				ID: "erase-" + rand.Text(), Time: schemas.MicrosOf(time.Now()), Actor: user, Verb: schemas.Delete, Object: schemas.ID(user),
			}}}
		}
		if err := p.Publish(ctx, lines); err != nil {
			return err
		}
	}
	return nil
}
