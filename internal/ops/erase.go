package ops

import (
	"bufio"
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/smartfeed/smartfeed/internal/convert"
	"github.com/smartfeed/smartfeed/internal/ops/generations"
	"github.com/smartfeed/smartfeed/schemas"
	"github.com/smartfeed/smartfeed/topics"
)

// Erased is the result of Eraser.Erase.
type Erased struct {
	User    schemas.UserID `json:"user"`
	Before  *time.Time     `json:"deleted_before,omitempty"` // time of an earlier deletion; nil: none
	Had     map[string]int `json:"rows_before"`              // number of rows of the user, by group
	Has     map[string]int `json:"rows_after"`               // the same after the erasure; these rows record the deletion
	Remains []Remain       `json:"remains"`
}

// Remain is data of an erased user that is still stored, though no response contains it.
type Remain struct {
	Where string     `json:"where"`
	What  string     `json:"what"`
	Until *time.Time `json:"until"` // nil: forever, or as Note says
	Note  string     `json:"note,omitempty"`
}

// Eraser erases users.
type Eraser struct {
	Setup   topics.Setup
	Streams *topics.Streams
	Unknown bool // also erase a user without data
	// Operator is recorded in the delete, see topics.OperatorHeader. "": unknown.
	Operator string
}

// Erase deletes a user permanently. It returns when rows, stores and responses no longer contain the user. If no data of
// the user exists, it changes nothing and returns generations.ErrNoData. If ctx is canceled while it waits, it returns a
// *WaitError; the published delete still takes effect. A second Erase verifies that no data remains.
func (e Eraser) Erase(ctx context.Context, user schemas.UserID) (Erased, error) {
	l, err := topics.NewLog(e.Setup.Kafka)
	if err != nil {
		return Erased{}, err
	}
	defer l.Close()
	task := e.Setup.Start("erase "+string(user), -1)
	defer task.Done()
	done := Erased{User: user}
	if done.Before, err = e.deletedAt(ctx, l, user); err != nil {
		return done, err
	}
	if done.Had, err = e.countRows(ctx, l, task, user); err != nil {
		return done, err
	}
	if !e.Unknown && done.Before == nil && len(done.Had) == 0 {
		return done, fmt.Errorf("erase %s: %w", user, generations.ErrNoData)
	}
	if err := e.publish(ctx, user); err != nil {
		return done, err
	}
	if err := e.wait(ctx, task); err != nil {
		return done, err
	}
	if done.Has, err = generations.CountRows(ctx, l, user, topics.RowGroups()...); err != nil {
		return done, err
	}
	done.Remains, err = remainsOfRetired(ctx, l, e.Setup.Kafka, user)
	return done, err
}

// remainsOfRetired returns the rows of a user in the changelogs of retired generations: erasures write no tombstones
// there.
func remainsOfRetired(ctx context.Context, l *topics.Log, k topics.Kafka, user schemas.UserID) ([]Remain, error) {
	retired, err := generations.ListRetired(ctx, k, l)
	if err != nil {
		return nil, err
	}
	var list []Remain
	for _, f := range retired {
		rows, err := generations.RowsIn(ctx, l, f.Topics[0], user)
		if err != nil {
			return nil, err
		}
		list = append(list, Remain{
			Where: f.Topics[0], Note: `until "smartfeed topics prune" deletes the topic`,
			What: fmt.Sprintf("%d rows of the user, and the user's pins in rows of other users; no process reads this retired generation", len(rows)),
		})
	}
	return list, nil
}

// countRows returns the number of rows of a user, by group. If there are none, it waits and counts again, because the
// events of a new user may not have been processed.
func (e Eraser) countRows(ctx context.Context, l *topics.Log, task topics.Progress, user schemas.UserID) (map[string]int, error) {
	had, err := generations.CountRows(ctx, l, user, topics.RowGroups()...)
	if err != nil || len(had) > 0 || e.Unknown {
		return had, err
	}
	if err := e.wait(ctx, task); err != nil {
		return nil, err
	}
	return generations.CountRows(ctx, l, user, topics.RowGroups()...)
}

func (e Eraser) wait(ctx context.Context, task topics.Progress) error {
	say := func(s topics.WaitState) { task.Say(s.String()) }
	return topics.Wait(ctx, e.Setup.Kafka, schemas.MicrosOf(time.Now()), say, e.Setup.Readers()...)
}

// deletedAt returns the time of a user's deletion, or nil if the user is not deleted.
func (e Eraser) deletedAt(ctx context.Context, l *topics.Log, user schemas.UserID) (*time.Time, error) {
	var at *time.Time
	read := topics.Decoded(e.Streams.UsersDeleted, func(d *schemas.DeletedUser, _ *kgo.Record) error {
		if at == nil {
			at = new(d.Time.Time())
		}
		return nil
	})
	err := l.ReadKey(ctx, topics.UsersDeleted, string(user), func(r *kgo.Record) error {
		if string(r.Key) != string(user) {
			return nil
		}
		return read(r)
	})
	return at, err
}

// Remains returns the records of an erased user that the brokers retain, and until when. Their retention counts from now,
// the time of the erasure.
func Remains(ctx context.Context, k topics.Kafka, now time.Time) ([]Remain, error) {
	profile, err := topics.ProfileOf(ctx, k)
	if err != nil {
		return nil, err
	}
	adm, err := k.Admin()
	if err != nil {
		return nil, err
	}
	defer adm.Close()
	var list []Remain
	catalogue := slices.DeleteFunc(topics.Catalogue(profile), func(t topics.Topic) bool { return t.Personal == "" })
	configs, err := adm.DescribeTopicConfigs(ctx, topics.Names(catalogue)...)
	if err != nil {
		return nil, fmt.Errorf("describe topics: %w", err)
	}
	for _, t := range catalogue {
		rc, err := configs.On(t.Name, nil)
		if err = errors.Join(err, rc.Err); err != nil {
			return nil, fmt.Errorf("describe topic %s: %w", t.Name, err)
		}
		list = append(list, remainOf(t, rc.Configs, now))
	}
	note := compactedNote
	if profile.Embedded {
		note = embeddedNote
	}
	return append(list, Remain{
		Where: "changelogs of the groups", What: "deleted rows", Note: note,
	}), nil
}

const (
	embeddedNote  = "forever: the embedded broker deletes nothing"
	compactedNote = "until the brokers compact the topics"
)

// remainOf returns the retained data of a topic with the brokers' settings.
func remainOf(t topics.Topic, configs []kadm.Config, now time.Time) Remain {
	r := Remain{Where: t.Name, What: t.Personal}
	if t.Embedded {
		if t.Retention != 0 || t.Compact {
			r.Note = embeddedNote
		}
		return r
	}
	if t.Compact && t.Name != topics.UsersDeleted { // the erasure wrote tombstones
		r.Note = compactedNote
	}
	for _, c := range configs {
		ms, err := strconv.ParseInt(c.MaybeValue(), 10, 64)
		if c.Key == "retention.ms" && err == nil && ms >= 0 && !t.Compact {
			until := now.Add(time.Duration(ms) * time.Millisecond)
			r.Until = &until
		}
	}
	return r
}

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
	list := slices.AppendSeq([]schemas.DeletedUser{}, maps.Values(first))
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
	task := e.Setup.Start("erase reapply", -1)
	defer task.Done()
	start := time.Now()
	known, err := DeletedUsers(ctx, e.Setup.Kafka, e.Streams)
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
	err = e.wait(ctx, task)
	done.Seconds = time.Since(start).Seconds()
	return done, err
}

// publish deletes users, each with a new event id. A repeated delete makes every group delete remaining data of the
// user.
func (e Eraser) publish(ctx context.Context, users ...schemas.UserID) error {
	p, err := topics.NewPublisher(e.Setup.Kafka, e.Streams)
	if err != nil {
		return err
	}
	defer p.Close()
	p.Operator = e.Operator
	for some := range slices.Chunk(users, 1000) {
		lines := convert.All(some, func(user schemas.UserID) schemas.Line {
			return schemas.NewLine(&schemas.UserEvent{Event: schemas.Event{
				ID: "erase-" + rand.Text(), Time: schemas.MicrosOf(time.Now()), Actor: user, Verb: schemas.Delete, Object: schemas.ID(user),
			}})
		})
		if err := p.Publish(ctx, lines); err != nil {
			return err
		}
	}
	return nil
}
