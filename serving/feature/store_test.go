package feature

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2"

	"github.com/smartfeed/smartfeed/internal/packed"
	"github.com/smartfeed/smartfeed/internal/testkit/child"
	"github.com/smartfeed/smartfeed/internal/testkit/expect"
	"github.com/smartfeed/smartfeed/internal/testkit/must"
	"github.com/smartfeed/smartfeed/schemas"
)

func saves(user schemas.UserID, n int, from schemas.Micros) Batch {
	var b Batch
	for i := range n {
		b.Actions = append(b.Actions, &schemas.EnrichedAction{
			ID: fmt.Sprint(i), Actor: user, Verb: "save", Object: schemas.ID(fmt.Sprint("pin:", i)), Timestamp: from - schemas.Micros(i)*1000,
		})
	}
	return b
}

// openTest opens an embedded store with the tests' now.
func openTest(t testing.TB, dir string, cfg Config) *EmbeddedStore {
	t.Helper()
	s := must.Get(OpenEmbedded(dir, cfg, slog.New(slog.DiscardHandler), func() time.Time { return now.Time() }))(t)
	t.Cleanup(func() {
		expect.Error(t, s.Close(), "", "close")
	})
	return s
}

func mustWrite(t testing.TB, s *EmbeddedStore, b Batch) {
	t.Helper()
	must.OK(t, s.Write(b))
}

func one(t testing.TB, s Store, user schemas.UserID, d Definition) Result {
	t.Helper()
	got, _, err := s.Actions(t.Context(), user, Span{AsOf: now, Now: now}, []Definition{d})
	must.OK(t, err)
	return got[0]
}

func TestActions_ReadsNewestAboveMaxActions(t *testing.T) {
	cfg := DefaultConfig()
	cfg.MaxActions = 10
	s := openTest(t, t.TempDir(), cfg)
	mustWrite(t, s, saves("user:1", 11, now))
	tests := map[string]struct {
		def  Definition
		want Result
	}{
		"wide":             {define(t, "entity: user", "aggregate: count"), Result{Number(10), []Reason{Cap}}},
		"wide, last":       {define(t, "entity: user", "aggregate: last", "n: 1"), Result{Last{{"pin:0", "save", nowMS.Time()}}, []Reason{Cap}}},
		"all in window":    {define(t, "entity: user", "aggregate: count", "window: 10ms"), Result{Value: Number(10)}},
		"one more in it":   {define(t, "entity: user", "aggregate: count", "window: 11ms"), Result{Number(10), []Reason{Cap}}},
		"narrow, no limit": {define(t, "entity: user", "aggregate: count", "window: 3ms"), Result{Value: Number(3)}},
	}
	for name, tt := range tests {
		same(t, name, tt.want, one(t, s, "user:1", tt.def))
	}
	// In a scan with a wider window as well, the first skipped row is just outside the narrow window.
	both, _, err := s.Actions(t.Context(), "user:1", Span{AsOf: now, Now: now}, []Definition{tests["wide"].def, tests["all in window"].def})
	must.OK(t, err)
	same(t, "in one scan", []Result{tests["wide"].want, tests["all in window"].want}, both)
	mustWrite(t, s, saves("user:2", 10, now))
	same(t, "as many as allowed", Result{Value: Number(10)}, one(t, s, "user:2", tests["wide"].def))
}

func TestActions_CountsNewestAboveMaxGroups(t *testing.T) {
	cfg := DefaultConfig()
	cfg.MaxGroups = 2
	s := openTest(t, t.TempDir(), cfg)
	b := saves("user:1", 3, now)
	b.Actions = append(b.Actions, &schemas.EnrichedAction{ID: "again", Actor: "user:1", Verb: "click", Object: "pin:0", Timestamp: now - hour})
	mustWrite(t, s, b)
	capped := []Reason{Cap}
	tests := map[string]struct {
		lines []string
		want  Result
	}{
		"groups":          {[]string{"aggregate: count", "group_by: object"}, Result{Groups{"pin:0": 2, "pin:1": 1}, capped}},
		"distinct":        {[]string{"aggregate: distinct"}, Result{Value: Number(3)}},
		"distinct groups": {[]string{"aggregate: distinct", "group_by: object"}, Result{Groups{"pin:0": 1, "pin:1": 1}, capped}},
		"combinations":    {[]string{"aggregate: count", "group_by: [verb, object]"}, Result{Groups{"save|pin:0": 1, "save|pin:1": 1}, capped}},
		"most of them":    {[]string{"aggregate: count", "group_by: object", "n: 1"}, Result{Groups{"pin:0": 2}, capped}},
		"top":             {[]string{"aggregate: top"}, Result{Top{{"pin:0", 2}, {"pin:1", 1}}, capped}},
		"fits":            {[]string{"aggregate: count", "group_by: verb"}, Result{Value: Groups{"save": 3, "click": 1}}},
	}
	for name, tt := range tests {
		d := define(t, append([]string{"entity: user"}, tt.lines...)...)
		same(t, name, tt.want, one(t, s, "user:1", d))
	}
}

// rowsOf counts the rows on disk.
func rowsOf(t *testing.T, s *EmbeddedStore, table byte) int {
	t.Helper()
	n := 0
	must.OK(t, s.db.Use(func(db *pebble.DB) error {
		return scanTable(t.Context(), db, table, func(it *pebble.Iterator) error {
			for it.First(); it.Valid(); it.Next() {
				n++
			}
			return it.Error()
		})
	}))
	return n
}

func TestSweep_DeletesExpiredDays(t *testing.T) {
	var clock atomic.Int64
	clock.Store(int64(now))
	s, err := OpenEmbedded(t.TempDir(), DefaultConfig(), slog.New(slog.DiscardHandler), func() time.Time { return schemas.Micros(clock.Load()).Time() })
	must.OK(t, err)
	defer s.Close()
	b := saves("user:1", 1, now)
	b.Actions = append(b.Actions, saves("user:2", 1, now-24*hour).Actions...)
	b.Counts = []*schemas.ItemCounts{
		{Pin: "pin:1", Start: now / schemas.ItemStep * schemas.ItemStep, Counts: map[string]int64{"save": 1}},
		{Pin: "pin:1", Start: (now - 24*hour) / schemas.ItemStep * schemas.ItemStep, Counts: map[string]int64{"save": 1}},
	}
	mustWrite(t, s, b)
	day := 24 * hour
	midnight := now/day*day + day // the end of the day of now
	steps := []struct {
		name    string
		now     schemas.Micros
		actions int
	}{
		{"nothing has expired", now, 2},
		{"the earlier day has a millisecond to go", midnight - day + 4*day - 1000, 2},
		{"the earlier day has expired", midnight - day + 4*day, 1},
		{"again", midnight - day + 4*day, 1},
		{"both days have", midnight + 4*day, 0},
	}
	for _, step := range steps {
		clock.Store(int64(step.now))
		must.OK(t, s.Sweep(deleted{}.Has))
		expect.Equal(t, rowsOf(t, s, actionTable), step.actions, "%s: actions", step.name)
	}
	clock.Store(int64(midnight + 4*day + schemas.ItemStep))
	must.OK(t, s.Sweep(deleted{}.Has))
	expect.Equal(t, rowsOf(t, s, itemTable), 0, "days")
}

// The store keeps the last MaxSequence actions of a user, however many there were, until they expire or the user is deleted.
func TestSweep_KeepsSequencesByCount(t *testing.T) {
	var clock atomic.Int64
	clock.Store(int64(now))
	s := must.Get(OpenEmbedded(t.TempDir(), DefaultConfig(), slog.New(slog.DiscardHandler), func() time.Time { return schemas.Micros(clock.Load()).Time() }))(t)
	defer s.Close()
	newest := schemas.Micros(0)
	for _, user := range []schemas.UserID{"user:1", "user:2"} {
		b := saves(user, MaxSequence+50, now)
		for i := range b.Actions {
			b.Actions[i].Number = int64(i + 1)
			newest = max(newest, b.Actions[i].Timestamp)
		}
		mustWrite(t, s, b)
		slices.Reverse(b.Actions)
		mustWrite(t, s, b) // a repeat changes nothing
	}
	read := func(user schemas.UserID) int {
		t.Helper()
		sequence := Definition{Entity: User, Aggregate: TakeSequence, N: MaxSequence, Columns: []Path{{part: objectPart}}}
		at := schemas.Micros(clock.Load())
		results, _, err := s.Actions(t.Context(), user, Span{Now: at, AsOf: at}, []Definition{sequence})
		must.OK(t, err)
		return len(results[0].Value.(Sequence).Times)
	}
	retention := schemas.Micros(DefaultConfig().SequenceRetention.Microseconds())
	for _, step := range []struct {
		name             string
		after            schemas.Micros
		deleted          deleted
		first, sum, rows int // actions in the sequence of user:1, in both, and rows
	}{
		{"sequences outlive actions", 10 * 24 * hour, nil, MaxSequence, 2 * MaxSequence, 2 * MaxSequence},
		{"the actions of a deleted user are deleted", 10 * 24 * hour, deleted{"user:1": true}, 0, MaxSequence, MaxSequence},
		{"expired actions are not read", newest - now + retention, nil, 0, 0, MaxSequence},
		{"their period expires", retention + 11*24*hour, nil, 0, 0, 0},
	} {
		clock.Store(int64(now + step.after))
		must.OK(t, s.Sweep(step.deleted.Has))
		first := read("user:1")
		if sum, rows := first+read("user:2"), rowsOf(t, s, sequenceTable); first != step.first || sum != step.sum || rows != step.rows {
			t.Errorf("%s: got %d of %d actions, %d rows; want %d, %d, %d", step.name, first, sum, rows, step.first, step.sum, step.rows)
		}
	}
	expect.Equal(t, rowsOf(t, s, actionTable), 0, "actions that remain")
}

// The process may have started its sweeps at any time of the hour.
func TestKeptUntil_IsTheLatestSweep(t *testing.T) {
	cfg := DefaultConfig()
	for _, clock := range []string{"00:00:00", "00:10:00", "12:00:00", "23:54:59.999", "23:55:00", "23:59:59.999"} {
		t.Run(clock, func(t *testing.T) {
			t.Parallel()
			arrived := must.Get(time.Parse("2006-01-02 15:04:05", "2026-02-28 "+clock))(t)
			until := cfg.KeptUntil(arrived)
			var last time.Time
			for _, first := range []time.Duration{0, time.Millisecond, cfg.SweepInterval / 2, cfg.SweepInterval - time.Millisecond} {
				swept := sweptAt(t, cfg, arrived, arrived.Truncate(time.Hour).Add(cfg.SweepInterval+first))
				expect.False(t, swept.After(until), "deleted at %s, though kept until %s", swept, until)
				if swept.After(last) {
					last = swept
				}
			}
			expect.AtMost(t, until.Sub(last), time.Millisecond, "time from the last sweep until %s", until)
		})
	}
}

// sweptAt returns the time of the sweep that deletes the newest action that can have arrived at the given time. Sweeps
// run every SweepInterval, starting at first.
func sweptAt(t *testing.T, cfg Config, arrived, first time.Time) time.Time {
	t.Helper()
	clock := arrived
	s := must.Get(OpenEmbedded(t.TempDir(), cfg, slog.New(slog.DiscardHandler), func() time.Time { return clock }))(t)
	defer s.Close()
	mustWrite(t, s, saves("user:1", 1, schemas.MicrosOf(arrived.Add(schemas.MaxAhead))))
	for clock = first; ; clock = clock.Add(cfg.SweepInterval) {
		must.OK(t, s.Sweep(deleted{}.Has))
		if rowsOf(t, s, actionTable) == 0 {
			return clock
		}
		if clock.Sub(arrived) > 10*Kept {
			t.Fatal("no sweep deletes it")
		}
	}
}

// The topics of pins and of counts are read concurrently, so counts from before a deletion may arrive after it.
func TestWrite_DeletedPinHasNoMeanOfActors(t *testing.T) {
	s := openTest(t, t.TempDir(), DefaultConfig())
	counts := func(pin schemas.PinID) Batch {
		return Batch{Counts: []*schemas.ItemCounts{{Pin: pin, Start: now, Counts: map[string]int64{}, Embedding: []float32{1, 2}}}}
	}
	deletion := func(pin schemas.PinID) Batch {
		return Batch{Pins: []*schemas.PinAttributes{{Pin: pin, Version: 2, Deleted: true}}}
	}
	mustWrite(t, s, counts("pin:kept"))
	mustWrite(t, s, counts("pin:1"))
	mustWrite(t, s, deletion("pin:1"))
	mustWrite(t, s, counts("pin:1"))
	together := counts("pin:2")
	together.Pins = deletion("pin:2").Pins
	mustWrite(t, s, together)
	for pin, want := range map[schemas.PinID]bool{"pin:kept": true, "pin:1": false, "pin:2": false} {
		err := s.db.Use(func(db *pebble.DB) error {
			_, closer, err := db.Get(pinKey(nil, pin, actorsRow))
			expect.Equal(t, err == nil, want, "%s has a mean", pin)
			if err != nil {
				return nil
			}
			return closer.Close()
		})
		must.OK(t, err)
	}
}

func TestWrite_OmitsExpiredData(t *testing.T) {
	s := openTest(t, t.TempDir(), DefaultConfig())
	b := saves("user:1", 2, now-96*hour+1000)                           // the first is kept, the second expires now
	straddling := (now - 96*hour) / schemas.ItemStep * schemas.ItemStep // its end is kept
	b.Counts = []*schemas.ItemCounts{
		{Pin: "pin:1", Start: straddling, Counts: map[string]int64{"save": 2}},
		{Pin: "pin:1", Start: straddling - schemas.ItemStep, Counts: map[string]int64{"save": 1}},
	}
	mustWrite(t, s, b)
	expect.Equal(t, rowsOf(t, s, actionTable), 1, "actions")
	c := define(t, "entity: pin", "aggregate: count")
	got, _, err := s.Items(t.Context(), []schemas.PinID{"pin:1"}, now, []Definition{c})
	must.OK(t, err)
	expect.NoDiff(t, got, [][]Result{{{Value: Number(2)}}}, "results of the step whose end is kept")
}

func TestOpenEmbedded_RejectsSecondProcess(t *testing.T) {
	dir := t.TempDir()
	openTest(t, dir, DefaultConfig())
	expect.Error(t, expect.ErrorOf(OpenEmbedded(dir, DefaultConfig(), slog.New(slog.DiscardHandler), time.Now)), dir, "a second process")
}

func TestStore_ClosedReturnsErrClosed(t *testing.T) {
	s := openTest(t, t.TempDir(), DefaultConfig())
	must.OK(t, s.Close())
	expectErrors(t.Context(), t, s, ErrClosed)
	for name, err := range map[string]error{"Write": s.Write(Batch{}), "Sweep": s.Sweep(deleted{}.Has)} {
		expect.Is(t, err, ErrClosed, "%s", name)
	}
}

// expectErrors calls each read, and expects the error want.
func expectErrors(ctx context.Context, t *testing.T, s *EmbeddedStore, want error) {
	t.Helper()
	_, _, errActions := s.Actions(ctx, "user:1", Span{AsOf: now, Now: now}, []Definition{{Entity: User, Aggregate: Count, Window: time.Hour}})
	_, _, errItems := s.Items(ctx, []schemas.PinID{"pin:1"}, now, []Definition{{Entity: User, Aggregate: Count, Window: time.Hour}})
	_, _, errPins := s.Pins(ctx, []schemas.PinID{"pin:1"}, true)
	for name, err := range map[string]error{"Actions": errActions, "Items": errItems, "Pins": errPins} {
		expect.Is(t, err, want, "%s", name)
	}
}

func TestRead_RejectsDamagedRow(t *testing.T) {
	s := openTest(t, t.TempDir(), DefaultConfig())
	must.OK(t, s.db.Use(func(db *pebble.DB) error {
		return errors.Join(
			db.Set(actionKey(nil, "user:1", floor(now), "x"), []byte{rowVersion, 200}, pebble.Sync),
			db.Set(itemKey(nil, "pin:1", dayOf(floor(now))), []byte{rowVersion, 9}, pebble.Sync),
			db.Merge(pinKey(nil, "pin:1", facetsRow), []byte("short"), pebble.Sync),
		)
	}))
	expectErrors(t.Context(), t, s, packed.ErrTorn)
}

func TestRead_RejectsOtherVersion(t *testing.T) {
	s := openTest(t, t.TempDir(), DefaultConfig())
	must.OK(t, s.db.Use(func(db *pebble.DB) error {
		return db.Set(actionKey(nil, "user:1", floor(now), "x"), []byte{rowVersion - 1}, pebble.Sync)
	}))
	_, _, err := s.Actions(t.Context(), "user:1", Span{AsOf: now, Now: now}, []Definition{{Aggregate: Count, Window: time.Hour}})
	expect.Equal(t, *must.As[*packed.VersionError](t, err), packed.VersionError{Got: rowVersion - 1, Want: rowVersion}, "versions")
}

func TestScan_EndsWithContext(t *testing.T) {
	s := openTest(t, t.TempDir(), DefaultConfig())
	mustWrite(t, s, saves("user:1", 1, now))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	expectErrors(ctx, t, s, context.Canceled)
}

func TestMain(m *testing.M) {
	child.Run(map[string]child.Role{"writer": writeForever})
	m.Run()
}

// writeForever writes actions to the store in the directory args[0] one by one, and prints their number after each write.
func writeForever(_ context.Context, args []string) error {
	s, err := OpenEmbedded(args[0], DefaultConfig(), slog.New(slog.DiscardHandler), func() time.Time { return now.Time() })
	for n := 1; err == nil; n++ {
		fmt.Println(n - 1)
		err = s.Write(Batch{Actions: saves("user:1", n, now).Actions[n-1:]})
	}
	return err
}

func TestWrite_SurvivesKill(t *testing.T) {
	dir := t.TempDir()
	const written = 20
	for round := range 3 {
		p := child.Start(t, "writer", dir)
		for p.Line() != fmt.Sprint(written) {
		}
		p.Kill()
		s := openTest(t, dir, DefaultConfig())
		got := one(t, s, "user:1", define(t, "entity: user", "aggregate: count")).Value
		expect.AtLeast(t, got.(Number), written, "round %d: written actions", round)
		must.OK(t, s.Close())
	}
}
