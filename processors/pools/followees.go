package pools

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/smartfeed/smartfeed/internal/packed"
	"github.com/smartfeed/smartfeed/processors/pools/layout"
	"github.com/smartfeed/smartfeed/processors/ranked"
	"github.com/smartfeed/smartfeed/processors/rows"
	"github.com/smartfeed/smartfeed/schemas"
)

// Cap of followees. Chunks and trims read all follows of a user. Therefore a user has at most Config.MaxFollowees admitted
// follows: the earliest by event time, ties by id. A live follow beyond the cap is refused:
//
//   - its rows are separate and are read only when an edge is processed;
//   - pins that only this follow justifies are hidden;
//   - its followee is notified that the user is inactive, so it delivers nothing new.
//
// When an admitted follow ends, the earliest refused one is admitted, and its followee delivers a backfill. Therefore the
// admitted follows depend only on the set of live follows, not on their order of arrival. An edge reads and writes a few
// rows. It reads all of them only if the user is at the cap and its event time is before that of the newest admitted follow.

// followTable gives follows read and write access to the rows of an owner.
type followTable interface {
	layout.Table
	Put(row, value []byte)
	Delete(row []byte)
}

// follow is a live follow.
type follow struct {
	other  schemas.ID
	time   schemas.Micros // event time of the follow
	weight float32
}

// compare orders the follows of a user; the first is admitted first.
func (f follow) compare(other follow) int {
	return cmp.Or(cmp.Compare(f.time, other.time), cmp.Compare(f.other, other.other))
}

// followCounts holds the counts of a user's follows, in one row.
type followCounts struct {
	admitted, refused int
	newest            schemas.Micros // upper bound of the event times of the admitted follows
}

// follows holds a user's follows while a record is processed.
type follows struct {
	followTable
	followCounts
	stored followCounts
	limit  int // maximum number of admitted follows
	// moved is called for each admitted follow that becomes refused and for each refused one that is admitted.
	moved func(other schemas.ID, admitted bool) error
}

// openFollows reads the counts of a user's follows.
func openFollows(t followTable, limit int, moved func(other schemas.ID, admitted bool) error) (*follows, error) {
	counts, found, err := rows.Value[followCounts](t, []byte{layout.KindFollowCounts})
	if !found {
		counts.newest = math.MinInt64
	}
	return &follows{followTable: t, limit: limit, followCounts: counts, stored: counts, moved: moved}, err
}

// close balances the follows, and writes their counts if they have changed.
func (f *follows) close() error {
	if err := f.balance(); err != nil {
		return err
	}
	if f.followCounts != f.stored {
		f.Put([]byte{layout.KindFollowCounts}, packed.Encode(&f.followCounts))
	}
	return nil
}

// find returns a live follow, and reports whether it exists and whether it is admitted.
func (f *follows) find(other schemas.ID) (is follow, live, admitted bool, err error) {
	value, err := f.Get(layout.GraphRow(layout.RegisterFollow, other))
	admitted = value != nil
	if err == nil && !admitted && f.refused > 0 {
		value, err = f.Get(rows.Name(layout.KindRefused, other))
	}
	if err != nil || value == nil {
		return follow{}, false, false, err
	}
	is, err = parseFollow(other, value)
	return is, true, admitted, err
}

// put makes a follow live, or changes the time or weight of a live one. It reports whether the follow is new and admitted.
func (f *follows) put(is follow) (entered bool, err error) {
	was, live, admitted, err := f.find(is.other)
	switch {
	case err != nil:
		return false, err
	case live && was.time == is.time:
		f.write(is, admitted)
		return false, nil
	case live:
		f.remove(was, admitted)
	}
	enters, err := f.enters(is)
	if err != nil {
		return false, err
	}
	entered = enters && !live
	if f.insert(is, enters); entered || live && enters == admitted {
		return entered, nil
	}
	return false, f.moved(is.other, enters)
}

// end ends a follow and reports whether it was refused.
func (f *follows) end(other schemas.ID) (wasRefused bool, err error) {
	was, live, admitted, err := f.find(other)
	if err != nil || !live {
		return false, err
	}
	f.remove(was, admitted)
	return !admitted, nil
}

// enters reports whether a follow is admitted for now, until close balances the follows.
func (f *follows) enters(is follow) (bool, error) {
	if f.refused == 0 {
		return f.admitted < f.limit || is.time <= f.newest, nil
	}
	if f.admitted >= f.limit && is.time > f.newest {
		return false, nil
	}
	first, err := f.firstRefused()
	return is.compare(first) < 0, err
}

func (f *follows) insert(is follow, admitted bool) {
	if admitted {
		f.admitted++
		f.newest = max(f.newest, is.time)
		f.write(is, true)
		return
	}
	f.refused++
	f.Put(refusedRow(is), []byte{})
	f.write(is, false)
}

func (f *follows) write(is follow, admitted bool) {
	row := rows.Name(layout.KindRefused, is.other)
	if admitted {
		row = layout.GraphRow(layout.RegisterFollow, is.other)
	}
	f.Put(row, layout.AppendFollow(nil, is.time, is.weight))
}

func (f *follows) remove(is follow, admitted bool) {
	if admitted {
		f.admitted--
		f.Delete(layout.GraphRow(layout.RegisterFollow, is.other))
		return
	}
	f.refused--
	f.Delete(refusedRow(is))
	f.Delete(rows.Name(layout.KindRefused, is.other))
}

// balance admits the earliest refused follow below the cap, or refuses the latest admitted one above it. A record changes one
// follow, so at most one other follow moves.
func (f *follows) balance() error {
	switch {
	case f.admitted < f.limit && f.refused > 0:
		first, err := f.firstRefused()
		if err != nil {
			return err
		}
		return f.move(first, true)
	case f.admitted > f.limit:
		return f.refuseLast()
	}
	return nil
}

// refuseLast refuses the latest admitted follow.
func (f *follows) refuseLast() error {
	var all []follow
	prefix := layout.GraphRow(layout.RegisterFollow, "")
	err := rows.ForEach(f, rows.Scan{Prefix: prefix}, func(row, value []byte) (bool, error) {
		is, err := parseFollow(schemas.ID(row[len(prefix):]), value)
		all = append(all, is)
		return true, err
	})
	if err != nil {
		return err
	}
	slices.SortFunc(all, follow.compare)
	last := len(all) - 1
	f.newest = all[last-1].time
	return f.move(all[last], false)
}

// move admits a refused follow, or refuses an admitted one.
func (f *follows) move(is follow, admitted bool) error {
	f.remove(is, !admitted)
	f.insert(is, admitted)
	return f.moved(is.other, admitted)
}

var errRefused = errors.New("read refused follows: the rows do not match their number")

// firstRefused returns the earliest refused follow. There must be one.
func (f *follows) firstRefused() (first follow, err error) {
	var other schemas.ID
	err = f.Scan(rows.Scan{Prefix: []byte{layout.KindRefusedByTime}, Limit: 1}, func(row, _ []byte) bool {
		other = schemas.ID(row[1+8:])
		return false
	})
	if err != nil {
		return follow{}, err
	}
	value, err := f.Get(rows.Name(layout.KindRefused, other))
	if err == nil && value == nil {
		err = errRefused
	}
	if err != nil {
		return follow{}, err
	}
	return parseFollow(other, value)
}

// refusedRow returns the row that orders a refused follow for admission.
func refusedRow(is follow) []byte {
	row := ranked.AppendVersion([]byte{layout.KindRefusedByTime}, schemas.Version(is.time))
	return append(row, is.other...)
}

// parseFollow parses the value of a live follow.
func parseFollow(other schemas.ID, value []byte) (is follow, err error) {
	is.other = other
	if is.time, is.weight, err = layout.ParseFollow(value); err != nil {
		err = fmt.Errorf("read follow of %s: %w", other, err)
	}
	return is, err
}

// Pack implements packed.Row.
func (c *followCounts) Pack(p *packed.Packer) {
	p.Version(2)
	packed.Int(p, &c.newest)
	packed.Int(p, &c.admitted)
	packed.Int(p, &c.refused)
}
