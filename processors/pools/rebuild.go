package pools

import (
	"bytes"
	"fmt"
	"math"
	"time"

	"github.com/smartfeed/smartfeed/processors/rows"
	"github.com/smartfeed/smartfeed/processors/score"
	"github.com/smartfeed/smartfeed/schemas"
)

// Rebuilding. A pool is made anew in place: its rows go, and the followees are asked as they are for one who returns. So a
// chunk waits for them, and says "returning" when it cannot wait for all. What was shown stays seen. What is on its way
// when the rows go was published before, so the followee that is asked behind it has it, too; what none of a followee's
// newest is any more does not come back. Nobody is asked for one who is away: the next visit asks everybody. Without
// AwayAfter there is nobody to stay away: whoever went away before is taken back.

// clearedRows is how many candidates go in one step at most. A silent generation takes as many as a record may, since no step
// that it asks for comes, and the answers to the active one may be next.
const (
	clearedRows       = 5000
	clearedSilentRows = 10 * clearedRows
)

// rebuild makes a user's pools anew.
func (g *group) rebuild(tx *rows.Tx, r *schemas.Rebuild) error {
	if tx.Key() != string(r.User) {
		return schemas.Bad(fmt.Sprintf("rebuild: key %q is not the user %q", tx.Key(), r.User))
	}
	if err := r.Source.CheckRebuilt(); err != nil {
		return err
	}
	if g.deleted.Has(r.User) {
		tx.Count(dropDeletedUser)
		return nil
	}
	if r.Tell {
		return g.tellOn(tx, tx.Own(), r)
	}
	own, most := tx.Own(), clearedRows
	if tx.Silent() {
		most = clearedSilentRows
	}
	for _, source := range rebuilt(r.Source) {
		if r.Keep {
			break
		}
		for _, kind := range candidateKinds() {
			more, err := dropRows(tx, own, sourcePrefix(kind, source), most)
			if err != nil {
				return err
			}
			if more {
				return rows.Send(tx, g.streams.Rebuilds, tx.Key(), r)
			}
		}
	}
	return g.askAgain(tx, own, r)
}

// rebuilt are the sources that a Rebuild names.
func rebuilt(source schemas.Source) []schemas.Source {
	if source == "" {
		return []schemas.Source{schemas.Following, schemas.FromInterest}
	}
	return []schemas.Source{source}
}

// dropRows deletes the first rows with a prefix, as many as the record has room for, and says whether there are others.
func dropRows(tx *rows.Tx, own rows.Owner, prefix []byte, most int) (more bool, err error) {
	names, more, err := someRows(own, prefix, most, keepNone)
	if err != nil {
		return false, err
	}
	for _, name := range names {
		if !roomy(tx) {
			return true, nil
		}
		if err := own.Delete(name); err != nil {
			return false, err
		}
	}
	return more, nil
}

// askAgain asks the followees of a user's rebuilt sources for back-fills; all followees, if some that were asked before have yet
// to answer. Without AwayAfter it asks all followees of a user who went away before, too.
func (g *group) askAgain(tx *rows.Tx, own rows.Owner, r *schemas.Rebuild) error {
	p, err := presenceOf(own)
	switch {
	case err != nil:
		return err
	case p.away && g.cfg.AwayAfter == 0:
		return g.takeBack(tx, own, r.User, p)
	case p.away:
		return nil
	}
	if err := g.watch(tx, own, p); err != nil {
		return err
	}
	tx.Effect(effectRebuilt, 1)
	if r.Keep { // what waits is whole: nobody waits for the answers
		_, err := g.tell(tx, own, &schemas.Rebuild{User: r.User, Source: r.Source, Asked: greeted})
		return err
	}
	source := r.Source
	if p.returning() {
		source = ""
	}
	p.asked, p.came = max(schemas.MicrosOf(tx.Time()), p.asked+1), 0
	if p.want, err = g.tell(tx, own, &schemas.Rebuild{User: r.User, Source: source, Asked: p.asked}); err != nil {
		return err
	}
	return putPresence(own, p)
}

// Carry decides which rows of the pools a new generation takes over: all but the candidates that followees are asked for
// again, and those of related whose score is of another half-life, which nothing could put among others.
type Carry struct {
	Source   schemas.Source // whose candidates the followees are asked for; "": of both sources that they bring
	HalfLife time.Duration  // of write-time scores; 0: candidates of related are taken over whatever their scores are

	left map[string]struct{} // rows of related that were left behind
}

// Keep is the decision on one record of the changelog, in its order.
func (c *Carry) Keep(owner, row, value []byte) bool {
	if row[0] != rowCandidate && row[0] != rowChanged {
		return true
	}
	for _, source := range rebuilt(c.Source) {
		if bytes.HasPrefix(row, sourcePrefix(row[0], source)) {
			return false
		}
	}
	if c.HalfLife == 0 || !bytes.HasPrefix(row, sourcePrefix(row[0], schemas.Related)) {
		return true
	}
	name := string(owner) + "\x00" + string(row)
	if value == nil {
		delete(c.left, name)
		return true
	}
	if ofHalfLife(row, value, c.HalfLife) {
		return true
	}
	if c.left == nil {
		c.left = map[string]struct{}{}
	}
	c.left[name] = struct{}{}
	return false
}

// Left is how many candidates of related were left behind.
func (c *Carry) Left() int { return len(c.left) }

// mostWithoutAge bounds what a score has beside the age of the pin: logarithms of quality, strength and weight. Another
// half-life moves a score much further: an hour more than a day moves it by 800.
const mostWithoutAge = 100

// ofHalfLife says whether the score of a candidate of related is of a half-life. What cannot be read is taken for one.
func ofHalfLife(row, value []byte, halfLife time.Duration) bool {
	r, err := parseCandidate(len(sourcePrefix(row[0], schemas.Related)), string(row), string(value))
	return err != nil || math.Abs(r.score-score.Base(1, r.created, halfLife)) <= mostWithoutAge
}
