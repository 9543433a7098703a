package interests

import (
	"slices"

	"github.com/smartfeed/smartfeed/internal/packed"
	"github.com/smartfeed/smartfeed/processors/rows"
	"github.com/smartfeed/smartfeed/schemas"
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

// maxMarks bounds the marks of a record. With the longest ids, a mark takes about 800 bytes, so they fit.
const maxMarks = 500

// marksOf returns the records of marks.
func marksOf(marks []any) (recs []*schemas.InterestMarks) {
	for part := range slices.Chunk(marks, maxMarks) {
		m := &schemas.InterestMarks{}
		for _, mark := range part {
			switch mark := mark.(type) {
			case schemas.TermMark:
				m.Terms = append(m.Terms, mark)
			case schemas.LikeMark:
				m.Likes = append(m.Likes, mark)
			case schemas.EngagementMark:
				m.Events = append(m.Events, mark)
			case schemas.DeletedUser:
				m.Deleted = append(m.Deleted, mark)
			}
		}
		recs = append(recs, m)
	}
	return recs
}

const numbers = 20 // bytes of a mark's numbers and lengths

func (g *group) addLike(tx *rows.Tx, l schemas.LikeMark) {
	bytes := len(l.User) + len(l.Interest) + len(l.Pin) + len(l.Verb) + numbers
	g.out.Add(tx, tx.PartitionOf(string(l.User)), l, bytes)
}

func (g *group) addEvent(tx *rows.Tx, e schemas.EngagementMark) {
	bytes := len(e.Interest) + len(e.Source) + len(e.What) + numbers
	g.out.Add(tx, tx.PartitionOf(string(e.Interest)), e, bytes)
}

// addTerms adds marks for the terms that a pin gained or lost.
func (g *group) addTerms(tx *rows.Tx, was, is pinTerms) {
	mark := func(s pinTerms, other pinTerms, removed bool) {
		for _, term := range s.Terms {
			if _, both := slices.BinarySearch(other.Terms, term); both && s.Author == other.Author {
				continue
			}
			m := schemas.TermMark{Term: term, Author: s.Author, Time: s.Created, Removed: removed}
			g.out.Add(tx, tx.PartitionOf(term), m, len(m.Term)+len(m.Author)+numbers)
		}
	}
	mark(was, is, true)
	mark(is, was, false)
}
