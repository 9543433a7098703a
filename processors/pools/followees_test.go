package pools

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/smartfeed/smartfeed/internal/testkit/expect"
	"github.com/smartfeed/smartfeed/internal/testkit/memrows"
	"github.com/smartfeed/smartfeed/internal/testkit/must"
	"github.com/smartfeed/smartfeed/processors/pools/layout"
	"github.com/smartfeed/smartfeed/processors/rows"
	"github.com/smartfeed/smartfeed/schemas"
)

// counting counts the rows that scans visit.
type counting struct {
	memrows.Table
	visited int
}

func (c *counting) Scan(s rows.Scan, visit func(row, value []byte) bool) error {
	return c.Table.Scan(s, func(row, value []byte) bool {
		c.visited++
		return visit(row, value)
	})
}

// followWorld compares follows, and the notifications of followees, with a brute-force model.
type followWorld struct {
	t        rapid.TB
	table    *counting
	limit    int
	live     map[schemas.ID]follow
	notified map[schemas.ID]bool // by followee: last notified as admitted
}

func newFollowWorld(t rapid.TB, limit int) *followWorld {
	return &followWorld{
		t: t, table: &counting{Table: memrows.Table{}}, limit: limit, live: map[schemas.ID]follow{}, notified: map[schemas.ID]bool{},
	}
}

// edit opens the follows, changes one, and closes them.
func (w *followWorld) edit(change func(f *follows) error) {
	f, err := openFollows(w.table, w.limit, func(other schemas.ID, admitted bool) error {
		w.notified[other] = admitted
		return nil
	})
	if err == nil {
		err = change(f)
	}
	if err == nil {
		err = f.close()
	}
	if err != nil {
		w.t.Fatal(err)
	}
}

func (w *followWorld) put(is follow) {
	w.live[is.other] = is
	w.edit(func(f *follows) error {
		entered, err := f.put(is)
		if entered {
			w.notified[is.other] = true
		}
		return err
	})
}

func (w *followWorld) end(other schemas.ID) {
	delete(w.live, other)
	delete(w.notified, other)
	w.edit(func(f *follows) error {
		_, err := f.end(other)
		return err
	})
}

// admitted returns the follows that a chunk reads.
func (w *followWorld) admitted() map[schemas.ID]float32 {
	g := must.Get(layout.ReadGraph(w.table, new(layout.Buffers)))(w.t)
	return g.Follows
}

// check compares the rows and the notifications with the model.
func (w *followWorld) check(when string) {
	all := slices.SortedFunc(maps.Values(w.live), follow.compare)
	want, notified := map[schemas.ID]float32{}, map[schemas.ID]bool{}
	for i, is := range all {
		if notified[is.other] = i < w.limit; i < w.limit {
			want[is.other] = is.weight
		}
	}
	expect.NoDiff(w.t, w.admitted(), want, "%s: admitted follows", when)
	expect.NoDiff(w.t, w.notified, notified, "%s: notifications", when)
	refused := 0
	for name := range w.table.Table {
		if name[0] == layout.KindRefused || name[0] == layout.KindRefusedByTime {
			refused++
		}
	}
	must.Equal(w.t, refused, 2*max(0, len(all)-w.limit), "%s: rows of refused follows", when)
}

// Follows start, move in time, change their weight and end in any order. The earliest ones are always
// admitted, and the last notification of each followee states whether its follow is admitted.
func TestFollows_AdmitEarliestInAnyOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newFollowWorld(t, rapid.IntRange(1, 6).Draw(t, "cap"))
		for step := range rapid.IntRange(1, 60).Draw(t, "steps") {
			other := schemas.ID(fmt.Sprintf("user:%d", rapid.IntRange(0, 11).Draw(t, "followee")))
			switch was, live := w.live[other]; rapid.IntRange(0, 9).Draw(t, "what") {
			case 0, 1, 2:
				w.end(other)
			case 3, 4:
				if live {
					was.weight = rapid.SampledFrom([]float32{1, 2, 3}).Draw(t, "weight")
					w.put(was)
				}
			default:
				w.put(follow{other, schemas.Micros(rapid.IntRange(-3, 8).Draw(t, "time")), 1})
			}
			w.check(fmt.Sprintf("step %d", step))
		}
	})
}

// At the cap, a follow reads a few rows, regardless of the cap, unless it is earlier than an admitted one.
func TestFollows_ReadFewRowsAtCap(t *testing.T) {
	const limit = 500
	w := newFollowWorld(t, limit)
	for n := range 2 * limit {
		w.put(follow{schemas.ID(fmt.Sprintf("user:%04d", n)), schemas.Micros(n), 1})
	}
	w.table.visited = 0
	const toggles = 50
	for n := range toggles {
		other := schemas.ID(fmt.Sprintf("user:%04d", n))
		w.end(other)
		w.put(follow{other, schemas.Micros(2*limit + n), 1})
	}
	expect.True(t, w.table.visited <= 4*toggles, "%d rows are read for %d follows and unfollows", w.table.visited, toggles)
	w.check("at the end")
}
