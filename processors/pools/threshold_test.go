package pools

import (
	"fmt"
	"maps"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/smartfeed/smartfeed/internal/testkit/deletedtest"
	"github.com/smartfeed/smartfeed/internal/testkit/expect"
	"github.com/smartfeed/smartfeed/internal/testkit/memrows"
	"github.com/smartfeed/smartfeed/internal/testkit/poolstest"
	"github.com/smartfeed/smartfeed/processors/pools/layout"
	"github.com/smartfeed/smartfeed/schemas"
)

// flooded is a pool with its thresholds, updated as in the callbacks.
type flooded struct {
	t          *rapid.T
	table      memrows.Table
	thresholds *thresholds
	deleted    *deletedtest.Users
	now        time.Time
	expiry     time.Duration
	limit      int
	put        putter
	refused    int
	shown      int64 // pins
}

func (f *flooded) view(m memrows.Table) *layout.View {
	v, err := layout.NewView(m, poolstest.Owner, f.deleted, f.now, f.expiry, new(layout.Buffers))
	if err != nil {
		f.t.Fatal(err, new(layout.Buffers))
	}
	return v
}

// trim trims a table as the callbacks do.
func (f *flooded) trim(m memrows.Table) (*layout.View, []layout.CandidateRow, *trimmed) {
	v := f.view(m)
	list, t, err := trimRows(v, schemas.Following, f.limit, sweepsNone)
	if err != nil {
		f.t.Fatal(err)
	}
	for i, reason := range t.reasons {
		if reason != "" {
			delete(m, list[i].Name)
		}
	}
	return v, list, t
}

// deliver delivers a pin to one user as the deliver callback does.
func (f *flooded) deliver(d *schemas.DeliveredPin, weight float32) {
	f.put.begin(f.thresholds, schemas.Following, f.limit)
	f.put.delivered(d)
	row := f.put.rowFor(weight)
	l := f.thresholds.of(poolstest.Owner, schemas.Following)
	if !f.put.accepts(row, l, f.now, f.expiry) {
		f.refused++
		f.checkTrimmed(row)
		return
	}
	f.table[string(row)] = append([]byte{}, f.put.value...)
	if f.put.trimDue(poolstest.Owner, l) {
		deletions := f.deleted.Len()
		v, list, t := f.trim(f.table)
		f.thresholds.trimmed(poolstest.Owner, schemas.Following, levelOf(v, schemas.Following, list, t, f.limit, deletions), f.limit)
	}
}

// checkTrimmed puts a refused row and trims: the trim must drop it and keep the same rows.
func (f *flooded) checkTrimmed(row []byte) {
	without, with := maps.Clone(f.table), maps.Clone(f.table)
	with[string(row)] = append([]byte{}, f.put.value...)
	f.trim(without)
	f.trim(with)
	expect.NoDiff(f.t, with, without, "a trim kept a refused row, or kept other rows because of it (-without +with)")
}

// register changes an edge or a block.
func (f *flooded) register(kind byte, other schemas.ID, live bool) {
	f.thresholds.discard(poolstest.Owner)
	if delete(f.table, string(layout.GraphRow(kind, other))); live {
		f.table[string(layout.GraphRow(kind, other))] = layout.AppendFollow(nil, 0, 1)
	}
}

func (f *flooded) see(pin schemas.PinID) {
	f.thresholds.discard(poolstest.Owner)
	f.shown++
	poolstest.See(f.table, pin, f.shown)
	poolstest.SetState(f.table, layout.State{Head: f.shown})
}

// After any events, a trim at the same time would drop each row that the threshold refuses.
func TestThreshold_RefusesOnlyRowsThatATrimDrops(t *testing.T) {
	refused := 0
	rapid.Check(t, func(t *rapid.T) {
		f := &flooded{t: t, table: memrows.Table{}, thresholds: newThresholds().(*thresholds), deleted: deletedtest.Of(), limit: 4, now: time.UnixMicro(100)}
		f.expiry = time.Duration(rapid.SampledFrom([]int{0, 60}).Draw(t, "expiry")) * time.Microsecond
		for _, author := range []schemas.ID{"user:a", "user:b", "user:c"} {
			f.register(layout.RegisterFollow, author, true)
		}
		versions := map[schemas.PinID]*schemas.DeliveredPin{}
		for range rapid.IntRange(30, 120).Draw(t, "steps") {
			f.step(versions)
		}
		refused += f.refused
	})
	expect.True(t, refused > 0, "rows are refused")
}

// step draws the next event, mostly a pin.
func (f *flooded) step(versions map[schemas.PinID]*schemas.DeliveredPin) {
	authors := []schemas.UserID{"user:a", "user:b", "user:c"}
	author := rapid.SampledFrom(authors).Draw(f.t, "author")
	f.now = f.now.Add(time.Duration(rapid.IntRange(0, 2).Draw(f.t, "later")) * time.Microsecond)
	switch rapid.IntRange(0, 24).Draw(f.t, "what") {
	case 0:
		f.register(layout.RegisterFollow, schemas.ID(author), rapid.Bool().Draw(f.t, "follows"))
	case 1:
		f.register(layout.RegisterBlock, schemas.ID(author), rapid.Bool().Draw(f.t, "blocks"))
	case 2:
		f.see(schemas.PinID(fmt.Sprintf("pin:%d", rapid.IntRange(0, 40).Draw(f.t, "seen"))))
	case 3:
		f.deleted.Note(schemas.UserID(fmt.Sprintf("user:%d", rapid.IntRange(0, 9).Draw(f.t, "deleted"))), 0)
		if rapid.IntRange(0, 5).Draw(f.t, "author deleted") == 0 {
			f.deleted.Note(author, 0)
		}
	default:
		pin := schemas.PinID(fmt.Sprintf("pin:%d", rapid.IntRange(0, 40).Draw(f.t, "pin")))
		f.deliver(f.version(versions, pin, author), rapid.SampledFrom([]float32{1, 1, 1, 30}).Draw(f.t, "weight"))
	}
}

// version draws the first version of a pin, a repeat, or a later version.
func (f *flooded) version(versions map[schemas.PinID]*schemas.DeliveredPin, pin schemas.PinID, author schemas.UserID) *schemas.DeliveredPin {
	d, again := versions[pin], versions[pin] != nil
	if !again {
		created := schemas.Micros(rapid.IntRange(1, 100).Draw(f.t, "created"))
		d = &schemas.DeliveredPin{
			Pin: pin, Version: schemas.Version(created), PinContent: schemas.PinContent{Created: created, Facets: schemas.Facets{Author: author}}, BaseScore: schemas.BaseScore(created),
		}
	} else if rapid.IntRange(0, 3).Draw(f.t, "changes") == 0 {
		later := *d
		later.Version++
		later.Author = author
		later.Deleted = rapid.IntRange(0, 2).Draw(f.t, "deleted") == 0
		if rapid.Bool().Draw(f.t, "created earlier") {
			later.Created--
			later.BaseScore--
		}
		d = &later
	}
	versions[pin] = d
	return d
}

// A full pool accepts pins again when the oldest of its candidates expires.
func TestThreshold_EndsWhenOldestExpires(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := &flooded{t: t, table: memrows.Table{}, thresholds: newThresholds().(*thresholds), deleted: deletedtest.Of(), limit: 4, now: time.UnixMicro(40), expiry: 60 * time.Microsecond}
		f.register(layout.RegisterFollow, "user:a", true)
		pin := func(n int, created schemas.Micros) *schemas.DeliveredPin {
			return &schemas.DeliveredPin{
				Pin: poolstest.PinID(n), Version: schemas.Version(created), PinContent: schemas.PinContent{Created: created, Facets: schemas.Facets{Author: "user:a"}}, BaseScore: schemas.BaseScore(created),
			}
		}
		oldest := schemas.Micros(30)
		for n := range 4 + slack(4) {
			created := schemas.Micros(rapid.IntRange(20, 30).Draw(t, "created"))
			f.deliver(pin(n, created), 1e30)
		}
		for i := range f.pool() {
			oldest = min(oldest, f.pool()[i].Created)
		}
		f.deliver(pin(90, 35), 1)
		expect.Equal(t, f.refused, 1, "pins refused by a full pool")
		f.now = (oldest + 60).Time()
		f.deliver(pin(91, 36), 1)
		expect.Equal(t, f.refused, 2, "pins refused by a full pool without expired pins")
		f.now = (oldest + 61).Time()
		f.deliver(pin(92, 37), 1)
		expect.Equal(t, f.refused, 2, "refused pins: a pool with an expired pin refuses none")
	})
}

func (f *flooded) pool() []layout.Candidate {
	return poolstest.Best(f.t, f.view(f.table), schemas.Following, f.limit)
}

// The memory for levels is bounded for any number of users and sources, and its weight is tracked correctly.
func TestThresholds_AreBounded(t *testing.T) {
	f := newThresholds().(*thresholds)
	for n := range 3 * maxThresholdWeight {
		user := schemas.UserID(fmt.Sprintf("user:%d", n))
		f.keep(user, level{source: schemas.Following, room: 500, threshold: &threshold{follows: n % 50}})
		if n%3 == 0 {
			f.keep(user, level{source: schemas.FromInterest, room: 500, threshold: &threshold{follows: n % 20}})
		}
		if n%7 == 0 {
			f.discard(user)
		}
	}
	weight := 0
	for _, list := range f.users {
		for i := range list {
			weight += list[i].weight()
		}
	}
	expect.Equal(t, weight, f.held, "tracked weight")
	expect.AtMost(t, f.held, maxThresholdWeight, "tracked weight")
	f.keep("user:many", level{source: schemas.Following, threshold: &threshold{follows: maxThresholdWeight}})
	expect.Equal(t, f.of("user:many", schemas.Following), nil, "level of a user with too many follows")
}
