package interests

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/smartfeed/smartfeed/processors/rows"
	"github.com/smartfeed/smartfeed/schemas"
	"github.com/smartfeed/smartfeed/topics"
)

// The kinds of rows, by the first byte of their names.
const (
	rowPin      = 'p' // of a pin → pinTerms
	rowVisitor  = 's' // of a pin: user → visitor; has a timer
	rowVisitors = 'v' // of a pin → number of visitors
	rowInterest = 'i' // of a user: interest → userInterest
	rowCount    = 'e' // of an interest: day, source, 0, what → count
	rowTerm     = 't' // of a dictionary: term → term
	rowRank     = 'c' // of a dictionary: pins (fewest first), term → empty
	rowAuthor   = 'a' // of a dictionary: term, 0, author → pins
	rowTerms    = 'n' // of a dictionary → number of terms
)

// pinTerms is the state of a pin.
type pinTerms struct {
	Version   schemas.Version
	Author    schemas.UserID
	Created   schemas.Micros
	Interests []schemas.InterestID
	Terms     []string // sorted
	Deleted   bool
}

// visitor is a user who recently saw or liked a pin.
type visitor struct {
	Source    schemas.Source // source of the newest impression; "": none
	Time      schemas.Micros // time of the newest impression
	Acted     bool
	ExpiresAt schemas.Micros // when the row expires
}

// sourceAt returns the source that an action of the visitor counts for.
func (v visitor) sourceAt(at schemas.Micros, within time.Duration) schemas.Source {
	if v.Source == "" || at < v.Time || at.Time().Sub(v.Time.Time()) > within {
		return schemas.DirectSource
	}
	return v.Source
}

// pinRows accesses the rows of a pin.
type pinRows struct{ own rows.Owner }

func (t pinRows) terms() (pinTerms, error) {
	s, _, err := rows.Value[pinTerms](t.own, []byte{rowPin})
	return s, err
}

func visitorName(user schemas.UserID) []byte { return append([]byte{rowVisitor}, user...) }

func (t pinRows) visitor(user schemas.UserID) (visitor, error) {
	v, _, err := rows.Value[visitor](t.own, visitorName(user))
	return v, err
}

func (t pinRows) putVisitor(user schemas.UserID, v visitor) error {
	return rows.PutValue(t.own, visitorName(user), &v)
}

// visitors returns the number of visitors.
func (t pinRows) visitors() (int, error) {
	n, _, err := rows.Value[number](t.own, []byte{rowVisitors})
	return int(n), err
}

func (t pinRows) putVisitors(n int) error {
	if n == 0 {
		return t.own.Delete([]byte{rowVisitors})
	}
	row := number(n)
	return rows.PutValue(t.own, []byte{rowVisitors}, &row)
}

// deleteVisitor deletes a visitor.
func (t pinRows) deleteVisitor(name []byte) error {
	n, err := t.visitors()
	if err != nil {
		return err
	}
	return cmp.Or(t.putVisitors(max(0, n-1)), t.own.Delete(name))
}

// withdraw removes a deleted pin from the evidence of the users who liked it, and deletes its visitors.
func (t pinRows) withdraw(out *outbox, pin schemas.PinID) error {
	seen := map[string]visitor{}
	err := rows.Each(t.own, []byte{rowVisitor}, func(user string, v visitor) { seen[user] = v })
	if err != nil {
		return err
	}
	for _, user := range slices.Sorted(maps.Keys(seen)) {
		v := seen[user]
		if v.Acted {
			out.addLike(schemas.LikeMark{User: schemas.UserID(user), Pin: pin})
		}
		name := visitorName(schemas.UserID(user))
		if err := cmp.Or(t.own.DropTimer(v.ExpiresAt.Time(), name), t.own.Delete(name), out.sendIfFull()); err != nil {
			return err
		}
	}
	return t.own.Delete([]byte{rowVisitors})
}

// outbox collects marks by partition.
type outbox struct {
	tx      *rows.Tx
	streams *topics.Streams
	to      []schemas.InterestMarks
	waiting int // number of marks in to, except those of terms
}

// maxWaiting is the number of collected marks at which they are sent. The marks of one more pin are at most 64 events or one
// like. With the longest ids and sources, an event takes about 350 bytes and a removed like 530, so all of these fit in a
// record.
const maxWaiting = 1000

func (g *group) outbox(tx *rows.Tx) *outbox {
	return &outbox{tx: tx, streams: g.streams, to: make([]schemas.InterestMarks, len(g.owners))}
}

func (o *outbox) of(owner string) *schemas.InterestMarks {
	return &o.to[topics.Partition(owner, int32(len(o.to)))]
}

func (o *outbox) addLike(l schemas.LikeMark) {
	m := o.of(string(l.User))
	m.Likes = append(m.Likes, l)
	o.waiting++
}

func (o *outbox) addEvent(e schemas.EngagementMark) {
	m := o.of(string(e.Interest))
	m.Events = append(m.Events, e)
	o.waiting++
}

// addTerms adds marks for the terms that a pin gained or lost.
func (o *outbox) addTerms(was, is pinTerms) {
	mark := func(s pinTerms, other pinTerms, removed bool) {
		for _, term := range s.Terms {
			if _, both := slices.BinarySearch(other.Terms, term); both && s.Author == other.Author {
				continue
			}
			m := o.of(term)
			m.Terms = append(m.Terms, schemas.TermMark{Term: term, Author: s.Author, Time: s.Created, Removed: removed})
		}
	}
	mark(was, is, true)
	mark(is, was, false)
}

// sendIfFull sends the collected marks if there are maxWaiting or more.
func (o *outbox) sendIfFull() error {
	if o.waiting < maxWaiting {
		return nil
	}
	return o.send()
}

// send sends the collected marks.
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
