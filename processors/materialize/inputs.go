package materialize

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/smartfeed/smartfeed/schemas"
	"github.com/smartfeed/smartfeed/schemas/visibility"
	"github.com/smartfeed/smartfeed/topics"
	"github.com/smartfeed/smartfeed/topics/generation"
)

// input decodes one record of a topic into a batch. It returns a *schemas.BadRecordError if the record can never be
// decoded.
type input func(b *Batch, r *kgo.Record) error

// inputs is the topology: for each topic, the rows that it adds to the batch, and the records of deleted users to skip.
func inputs(s *topics.Streams, deleted visibility.GrowingDeletedUsers) map[string]input {
	return map[string]input{
		s.FeedEntries.Name: topics.Into(s.FeedEntries, checkEntries, func(b *Batch, f *schemas.FeedEntries, _ *kgo.Record) {
			if !deleted.Has(f.User) {
				b.Entries = slices.AppendSeq(b.Entries, f.All())
			}
		}),
		s.Edges.Name: topics.Into(s.Edges, checkEdge, func(b *Batch, e *schemas.Edge, _ *kgo.Record) {
			if !deleted.Has(e.User) && (e.Erased || !deleted.Has(schemas.UserID(e.Other))) {
				b.Edges = append(b.Edges, *e)
			}
		}),
		s.Publications.Name: topics.Into(s.Publications, checkPublication, func(b *Batch, p *schemas.Publication, _ *kgo.Record) {
			// A replayed publication changed only its order among others, not its content.
			if !p.Replayed && !deleted.Has(schemas.UserID(p.Followee)) {
				b.Publications = append(b.Publications, *p)
			}
		}),
		s.PinCards.Name: topics.Into(s.PinCards, checkCard, func(b *Batch, c *schemas.Card, _ *kgo.Record) {
			b.Cards = append(b.Cards, *c)
		}),
		s.UsersDeleted.Name: topics.Into(s.UsersDeleted, checkDeleted, func(b *Batch, d *schemas.DeletedUser, r *kgo.Record) {
			deleted.Note(d.User, d.Time)
			b.Deleted = append(b.Deleted, *d)
			b.Erased = append(b.Erased, schemas.DeletedUser{User: d.User, Time: latestRowTime(r)})
		}),
	}
}

// latestRowTime returns the latest time that a row of the deleted user can have when the record of the deletion arrives.
// Events with a later time are rejected.
func latestRowTime(r *kgo.Record) schemas.Micros {
	return schemas.MicrosOf(r.Timestamp.Add(schemas.MaxAhead))
}

func checkEntries(f *schemas.FeedEntries) (string, error) {
	_, err := schemas.ParseUserID(string(f.User))
	if f.First < 1 || f.First > math.MaxInt64-int64(len(f.Items)) || len(f.Items) == 0 {
		return string(f.User), errors.Join(err, fmt.Errorf("position %d of %d: want at least 1", f.First, len(f.Items)))
	}
	for e := range f.All() {
		err = errors.Join(err, checkItem(&e.ServedItem))
	}
	return string(f.User), err
}

func checkItem(i *schemas.ServedItem) (err error) {
	if i.Pin != "" { // an empty entry has no pin
		_, err = schemas.ParsePinID(string(i.Pin))
	}
	if math.IsNaN(float64(i.RankScore)) || math.IsInf(float64(i.RankScore), 0) { // JSON cannot represent it
		err = errors.Join(err, fmt.Errorf("score %v: want a number", i.RankScore))
	}
	return err
}

func checkEdge(e *schemas.Edge) (string, error) {
	_, err := schemas.ParseUserID(string(e.User))
	_, errOther := schemas.ParseFollowee(string(e.Other))
	switch e.Kind {
	case schemas.FollowEdge, schemas.BlockEdge, schemas.BlockedEdge:
	default:
		err = errors.Join(err, fmt.Errorf("kind %.64q: want follow, block or blocked", e.Kind))
	}
	return string(e.User), errors.Join(err, errOther)
}

func checkPublication(p *schemas.Publication) (string, error) {
	_, err := schemas.ParseFollowee(string(p.Followee))
	_, errPin := schemas.ParsePinID(string(p.Pin))
	return string(p.Followee), errors.Join(err, errPin)
}

func checkCard(c *schemas.Card) (string, error) {
	_, err := schemas.ParsePinID(string(c.Pin))
	return string(c.Pin), err
}

func checkDeleted(d *schemas.DeletedUser) (string, error) {
	_, err := schemas.ParseUserID(string(d.User))
	return string(d.User), err
}

// decode decodes records into a batch. It sends bad records to the dead-letter topic before their offsets are committed; a
// crash in between repeats the dead letters. It returns an error if the registry or the brokers are unavailable.
func (s *Sink) decode(ctx context.Context, publisher *topics.Publisher, records []*kgo.Record) (b Batch, err error) {
	for _, r := range records {
		if generation.IsMark(r) { // marker of a group that also reads the topic
			continue
		}
		err := s.inputs[r.Topic](&b, r)
		if bad, ok := errors.AsType[*schemas.BadRecordError](err); ok {
			s.deadLetters.WithLabelValues(r.Topic).Inc()
			err = publisher.SendDeadLetter(ctx, s.group, r, bad.Reason)
		}
		if err != nil {
			return Batch{}, fmt.Errorf("read %s/%d at %d: %w", r.Topic, r.Partition, r.Offset, err)
		}
	}
	return b, nil
}
