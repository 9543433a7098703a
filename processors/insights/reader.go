package insights

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"slices"

	"golang.org/x/sync/semaphore"

	"github.com/smartfeed/smartfeed/internal/experiment"
	"github.com/smartfeed/smartfeed/internal/packed"
	"github.com/smartfeed/smartfeed/processors/rows"
	"github.com/smartfeed/smartfeed/schemas"
	"github.com/smartfeed/smartfeed/schemas/visibility"
)

// Reader reads the partitions that this process owns.
type Reader struct {
	view       rows.Reader
	partitions int32
	deleted    visibility.DeletedUsers
	scans      *semaphore.Weighted
}

// NewReader returns a reader of the group's rows. No answer includes the users in deleted.
func NewReader(view rows.Reader, partitions int32, deleted visibility.DeletedUsers) *Reader {
	return &Reader{view: view, partitions: partitions, deleted: deleted, scans: semaphore.NewWeighted(1)}
}

// Insight returns a partition's part of an insight. For a partition of another process, the error is a
// *rows.NotOwnerError. One scan runs at a time: insights are for people, who can wait, and the machine has other work.
func (r *Reader) Insight(ctx context.Context, q schemas.InsightRequest) (*schemas.InsightPart, error) {
	err := r.scans.Acquire(ctx, 1)
	var part schemas.InsightPart
	if err == nil {
		part, err = r.part(&scan{ctx, r.view, rows.CommonOwner(q.Partition, r.partitions), r.deleted}, q)
		r.scans.Release(1)
	}
	if err != nil {
		return nil, fmt.Errorf("read insights of partition %d: %w", q.Partition, err)
	}
	return &part, nil
}

func (r *Reader) part(s *scan, q schemas.InsightRequest) (part schemas.InsightPart, err error) {
	today := day(q.Today)
	switch {
	case q.Growth > 0:
		g := newGrowth(today, q.Growth)
		part.Growth, err = g.days, s.eachUser(g.add)
	case q.Xd28s:
		part.Xd28s, err = s.xd28s(today)
	case q.Retention > 0:
		c := newRetention(today, q.Retention)
		part.Cohorts, err = c.cohorts, s.eachUser(c.add)
	case q.Funnel != nil:
		f := newFunnel(q.Funnel.Steps, q.Funnel.Within)
		part.Steps, err = f.steps, s.eachSequence(today-day(q.Funnel.Days)+1, today+1, f.add)
	case q.Totals != nil:
		part.Totals, err = s.totals(*q.Totals)
	case q.Experiments != nil:
		e := exposures{tallies: experiment.Tallies{Verbs: schemas.Strings(q.Experiments.Verbs), All: []experiment.Tally{}}}
		err = s.eachSequence(today-day(q.Experiments.Days)+1, today+1, e.add)
		part.Experiments = e.tallies.All
	default:
		part.Hours, err = s.hours(q.Hours)
	}
	return part, err
}

// scan reads the rows of a partition.
type scan struct {
	ctx     context.Context
	view    rows.Reader
	common  string
	deleted visibility.DeletedUsers
}

// stepRows is the number of rows of one snapshot. The partition cannot be handed over while a snapshot is open.
const stepRows = 1000

// each visits the rows of a kind from a name on, until visit returns false.
func (s *scan) each(kind byte, from []byte, visit func(name, value []byte) (bool, error)) error {
	for done := false; !done; {
		n, last := 0, []byte(nil)
		err := s.view.Read(s.ctx, s.common, func(at rows.Snapshot) error {
			return rows.ForEach(at, rows.Scan{Prefix: []byte{kind}, From: from, Limit: stepRows}, func(name, value []byte) (bool, error) {
				n++
				last = append(last[:0], name...)
				more, err := visit(name, value)
				done = !more
				return more, err
			})
		})
		if err != nil {
			return err
		}
		done = done || n < stepRows
		from = append(last, 0) // the next name
	}
	return nil
}

// eachUser visits the activity of every user.
func (s *scan) eachUser(visit func(*activity)) error {
	return s.each(rowUser, nil, func(name, value []byte) (bool, error) {
		if s.deleted.Has(schemas.UserID(name[1:])) {
			return true, nil
		}
		a, err := packed.Decode[activity](value)
		if err != nil {
			return false, rows.Unreadable(name, err)
		}
		visit(&a)
		return true, nil
	})
}

// xd28s returns, for each number of days, how many users acted on that many of the last 28 days.
func (s *scan) xd28s(today day) ([]schemas.Xd28, error) {
	all := make([]schemas.Xd28, dormantAfter)
	for i := range all {
		all[i].Days = i + 1
	}
	return all, s.eachUser(func(a *activity) {
		if n := a.within(today, dormantAfter); n > 0 {
			all[n-1].Users++
		}
	})
}

// entry is an entry of a sequence.
type entry struct {
	at   schemas.Micros
	what string // a verb, or a visit as visitEntry returns it
}

// eachSequence visits the entries of each user from one day to another, in ascending time. Requests include tomorrow, because
// clocks differ.
func (s *scan) eachSequence(from, to day, visit func([]entry)) error {
	var user []byte
	var entries []entry
	end := func() {
		slices.SortStableFunc(entries, func(a, b entry) int { return cmp.Compare(a.at, b.at) })
		if len(entries) > 0 {
			visit(entries)
		}
		entries = entries[:0]
	}
	err := s.each(rowSequence, nil, func(name, row []byte) (more bool, err error) {
		of, d := sequenceOf(name)
		if !bytes.Equal(of, user) {
			end()
			user = append(user[:0], of...)
		}
		if d < from || d > to || s.deleted.Has(schemas.UserID(of)) {
			return true, nil
		}
		if entries, err = appendEntries(entries, d, row); err != nil {
			return false, rows.Unreadable(name, err)
		}
		return true, nil
	})
	end()
	return err
}

// appendEntries appends the entries of a block.
func appendEntries(to []entry, d day, row []byte) ([]entry, error) {
	r := packed.NewVersionReader(row, format)
	for r.More() {
		at := d.start() + schemas.Micros(r.Varint())
		to = append(to, entry{at, string(r.Bytes())})
	}
	return to, r.End()
}

// totals returns a page of the interests.
func (s *scan) totals(q schemas.TotalsRequest) (page []schemas.InterestTotal, err error) {
	err = s.each(rowHours, rows.Name(rowHours, q.From), func(name, value []byte) (bool, error) {
		h, err := packed.Decode[hours](value)
		if err != nil {
			return false, rows.Unreadable(name, err)
		}
		page = append(page, schemas.InterestTotal{Interest: schemas.InterestID(name[1:]), Actions: h.total()})
		return len(page) < q.Limit, nil
	})
	return page, err
}

// hours returns the hours of each of the interests.
func (s *scan) hours(interests []schemas.InterestID) ([]schemas.Popular, error) {
	list := make([]schemas.Popular, len(interests))
	err := s.view.Read(s.ctx, s.common, func(at rows.Snapshot) error {
		for i, interest := range interests {
			h, _, err := rows.Value[hours](at, rows.Name(rowHours, interest))
			if err != nil {
				return err
			}
			list[i] = schemas.Popular{Interest: interest, Actions: h.total(), Hours: h}
		}
		return nil
	})
	return list, err
}
