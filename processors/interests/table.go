package interests

import (
	"slices"

	"github.com/smartfeed/smartfeed/internal/packed"
	"github.com/smartfeed/smartfeed/processors/rows"
	"github.com/smartfeed/smartfeed/schemas"
	"github.com/smartfeed/smartfeed/topics"
)

// The kinds of rows, by the first byte of their names.
const (
	rowPin      = 'p' // of a pin → pinTerms
	rowShown    = 'h' // common: user, 0, hour (newest first) → impressions; has a timer
	rowInterest = 'i' // of a user: interest → userInterest
	rowCount    = 'e' // of an interest: day, source, 0, what → count
	rowTerm     = 't' // of a dictionary: term → term
	rowRank     = 'c' // of a dictionary: pins (fewest first), term → empty
	rowAuthor   = 'a' // of a dictionary: term, 0, author → pins
	rowTerms    = 'n' // of a dictionary → number of terms
)

// format is the version of the format of all rows. An action reads and writes eight rows or more. They are packed, because
// JSON would be most of the cost of the group.
const format = 1

// pinTerms is the state of a pin.
type pinTerms struct {
	Version   schemas.Version
	Author    schemas.UserID
	Created   schemas.Micros
	Interests []schemas.InterestID
	Terms     []string // sorted
	Deleted   bool
}

// Pack implements packed.Row.
func (s *pinTerms) Pack(p *packed.Packer) {
	p.Version(format)
	packed.Int(p, &s.Version)
	packed.String(p, &s.Author)
	packed.Int(p, &s.Created)
	packed.Items(p, &s.Interests, packed.String[schemas.InterestID])
	packed.Items(p, &s.Terms, packed.String[string])
	p.Flags(&s.Deleted)
}

func termsOf(own rows.Owner) pinTerms {
	s, _ := rows.Load[pinTerms](own, []byte{rowPin})
	return s
}

// deleteAll deletes the rows whose names start with a prefix, at most limit of them; 0: all.
func deleteAll(own rows.Owner, prefix []byte, limit int) {
	for _, name := range rows.LoadNames(own, prefix, limit) {
		own.Delete(name)
	}
}

// outbox collects marks by partition.
type outbox struct {
	tx      *rows.Tx
	streams *topics.Streams
	to      []schemas.InterestMarks
	waiting int // number of marks in to, except those of terms
}

// maxWaiting is the number of collected marks at which they are sent. The marks of one more pin are at most 64
// events. With the longest ids and sources, an event takes about 350 bytes, so all of these fit in a record.
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

// addDeleted adds a deleted user, whose impressions are in all partitions.
func (o *outbox) addDeleted(d schemas.DeletedUser) {
	for i := range o.to {
		o.to[i].Deleted = append(o.to[i].Deleted, d)
	}
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

// send sends the collected marks.
func (o *outbox) send() {
	for partition := range o.to {
		m := &o.to[partition]
		if len(m.Terms)+len(m.Likes)+len(m.Events)+len(m.Deleted) > 0 {
			rows.SendTo(o.tx, o.streams.InterestMarks, int32(partition), o.tx.Key(), m)
			*m = schemas.InterestMarks{}
		}
	}
	o.waiting = 0
}
