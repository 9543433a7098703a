package interests

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/smartfeed/smartfeed/processors/rows"
	"github.com/smartfeed/smartfeed/schemas"
	"github.com/smartfeed/smartfeed/topics"
)

// The rows, by the first byte of their name.
const (
	rowSaying   = 'p' // of a pin → saying
	rowVisitor  = 's' // of a pin: user → visitor; has a timer
	rowVisitors = 'v' // of a pin → number of visitors
	rowInterest = 'i' // of a user: interest → liking
	rowCount    = 'e' // of an interest: day, source, 0, what → count
	rowTerm     = 't' // of a dictionary: term → term
	rowRank     = 'c' // of a dictionary: pins (fewest first), term → nothing
	rowAuthor   = 'a' // of a dictionary: term, 0, author → pins
	rowTerms    = 'n' // of a dictionary → number of terms
)

// getter is what a reader of rows needs; rows.Owner and rows.Snapshot are both one.
type getter interface {
	Get(row []byte) ([]byte, error)
	Scan(s rows.Scan, visit func(row, value []byte) bool) error
}

// each visits all rows of a prefix, with what follows the prefix in their names.
func each[T any, R record[T]](own getter, prefix []byte, visit func(rest string, rec T)) error {
	var bad error
	err := own.Scan(rows.Scan{Prefix: prefix}, func(name, value []byte) bool {
		rec, err := decode[T, R](value)
		if err != nil {
			bad = fmt.Errorf("read row %q: %w", name, err)
			return false
		}
		visit(string(name[len(prefix):]), rec)
		return true
	})
	return cmp.Or(err, bad)
}

// names returns the names of at most so many rows of a prefix.
func names(own getter, prefix []byte, most int) ([][]byte, error) {
	var list [][]byte
	err := own.Scan(rows.Scan{Prefix: prefix, Limit: most}, func(name, _ []byte) bool {
		list = append(list, bytes.Clone(name))
		return true
	})
	return list, err
}

// saying is what a pin says.
type saying struct {
	Version   schemas.Version
	Author    schemas.UserID
	Created   schemas.Micros
	Interests []schemas.InterestID
	Terms     []string // sorted
	Deleted   bool
}

// visitor is a user who saw or liked a pin of late.
type visitor struct {
	Source schemas.Source // of the newest impression; "": none
	Time   schemas.Micros // of that
	Liked  bool
	Forget schemas.Micros // when the row goes
}

// sourceAt returns what brought the pin to somebody who acts on it.
func (v visitor) sourceAt(at schemas.Micros, within time.Duration) schemas.Source {
	if v.Source == "" || at < v.Time || at.Time().Sub(v.Time.Time()) > within {
		return schemas.DirectSource
	}
	return v.Source
}

// pinRows are the rows of a pin.
type pinRows struct{ own rows.Owner }

func (t pinRows) saying() (saying, error) {
	s, _, err := get[saying](t.own, []byte{rowSaying})
	return s, err
}

func visitorName(user schemas.UserID) []byte { return append([]byte{rowVisitor}, user...) }

func (t pinRows) visitor(user schemas.UserID) (visitor, error) {
	v, _, err := get[visitor](t.own, visitorName(user))
	return v, err
}

func (t pinRows) putVisitor(user schemas.UserID, v visitor) error {
	return put(t.own, visitorName(user), &v)
}

// visitors returns how many there are.
func (t pinRows) visitors() (int, error) {
	n, _, err := get[number](t.own, []byte{rowVisitors})
	return int(n), err
}

func (t pinRows) putVisitors(n int) error {
	if n == 0 {
		return t.own.Delete([]byte{rowVisitors})
	}
	row := number(n)
	return put(t.own, []byte{rowVisitors}, &row)
}

// forget removes a visitor.
func (t pinRows) forget(name []byte) error {
	n, err := t.visitors()
	if err != nil {
		return err
	}
	return cmp.Or(t.putVisitors(max(0, n-1)), t.own.Delete(name))
}

// withdraw takes a pin that is gone out of the evidence of whoever liked it, and forgets who saw it.
func (t pinRows) withdraw(out *outbox, pin schemas.PinID) error {
	seen := map[string]visitor{}
	err := each(t.own, []byte{rowVisitor}, func(user string, v visitor) { seen[user] = v })
	if err != nil {
		return err
	}
	for _, user := range slices.Sorted(maps.Keys(seen)) {
		v := seen[user]
		if v.Liked {
			out.like(schemas.LikeMark{User: schemas.UserID(user), Pin: pin})
		}
		name := visitorName(schemas.UserID(user))
		if err := cmp.Or(t.own.DropTimer(v.Forget.Time(), name), t.own.Delete(name), out.sendMany()); err != nil {
			return err
		}
	}
	return t.own.Delete([]byte{rowVisitors})
}

// outbox gathers marks by the partition of whom they concern.
type outbox struct {
	tx      *rows.Tx
	streams *topics.Streams
	to      []schemas.InterestMarks
	waiting int // in to, but for terms
}

// marksAtOnce is from how many marks on they are sent: with those of one more pin, 64 events at most or one like, and with ids
// and sources of any length, about 350 bytes an event and 530 a like that is taken back, they fit into a record.
const marksAtOnce = 1000

func (g *group) outbox(tx *rows.Tx) *outbox {
	return &outbox{tx: tx, streams: g.streams, to: make([]schemas.InterestMarks, len(g.owners))}
}

func (o *outbox) of(owner string) *schemas.InterestMarks {
	return &o.to[topics.Partition(owner, int32(len(o.to)))]
}

func (o *outbox) like(l schemas.LikeMark) {
	m := o.of(string(l.User))
	m.Likes = append(m.Likes, l)
	o.waiting++
}

func (o *outbox) event(e schemas.EngagementMark) {
	m := o.of(string(e.Interest))
	m.Events = append(m.Events, e)
	o.waiting++
}

// terms says what a pin says now and did not before, and the other way round.
func (o *outbox) terms(was, is saying) {
	mark := func(s saying, other saying, gone bool) {
		for _, term := range s.Terms {
			if _, both := slices.BinarySearch(other.Terms, term); both && s.Author == other.Author {
				continue
			}
			m := o.of(term)
			m.Terms = append(m.Terms, schemas.TermMark{Term: term, Author: s.Author, Time: s.Created, Gone: gone})
		}
	}
	mark(was, is, true)
	mark(is, was, false)
}

// sendMany sends what has been gathered if it is much.
func (o *outbox) sendMany() error {
	if o.waiting < marksAtOnce {
		return nil
	}
	return o.send()
}

// send sends what has been gathered.
func (o *outbox) send() error {
	for partition := range o.to {
		m := &o.to[partition]
		if len(m.Terms)+len(m.Likes)+len(m.Events) == 0 {
			continue
		}
		if err := rows.SendTo(o.tx, o.streams.InterestMarks, int32(partition), o.tx.Key(), m); err != nil {
			return err
		}
		*m = schemas.InterestMarks{}
	}
	o.waiting = 0
	return nil
}
