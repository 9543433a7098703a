package export

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/parquet-go/parquet-go"
	"github.com/twmb/franz-go/pkg/kgo"
	"go.uber.org/goleak"

	"github.com/smartfeed/smartfeed/internal/testkit/expect"
	"github.com/smartfeed/smartfeed/internal/testkit/must"
	"github.com/smartfeed/smartfeed/internal/testkit/topicstest"
	"github.com/smartfeed/smartfeed/schemas"
	"github.com/smartfeed/smartfeed/topics"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// exported has the columns of a row that the tests compare.
type exported struct {
	Visit     string   `parquet:"visit"`
	User      string   `parquet:"user"`
	Time      int64    `parquet:"time"`
	Position  int32    `parquet:"position"`
	Pin       string   `parquet:"pin"`
	Save      bool     `parquet:"label_save"`
	SaveAfter *float64 `parquet:"label_save_after,optional"`
	Hide      bool     `parquet:"label_hide"`
	HideAfter *float64 `parquet:"label_hide_after,optional"`
}

// labels are those of the tests.
func labels() Labels { return Labels{schemas.Hide: 30 * time.Hour, schemas.Save: 10 * time.Hour} }

// history is a random log. Each round is 20 hours long.
type history struct {
	*topicstest.Cluster
	t       *testing.T
	random  *rand.Rand
	now     schemas.Micros
	visits  []*schemas.LoggedVisit
	actions []*schemas.EnrichedAction
}

const hour = schemas.Micros(3600 * 1e6)

func newHistory(t *testing.T, seed uint64) *history {
	t.Helper()
	start := schemas.MicrosOf(time.Date(2026, 11, 20, 0, 0, 0, 0, time.UTC))
	return &history{Cluster: topicstest.Start(t, 2), t: t, random: rand.New(rand.NewPCG(seed, 0)), now: start}
}

// round appends visits and actions of the next 20 hours, in the order of their arrival. Some actions arrive hours late, some are
// a few minutes ahead, and some arrive twice.
func (h *history) round() {
	h.t.Helper()
	from := h.now
	h.now += 20 * hour
	at := func() schemas.Micros { return from + 1 + schemas.Micros(h.random.Int64N(int64(h.now-from))) }
	var visits []*schemas.LoggedVisit
	for range 60 {
		visits = append(visits, h.visit(at()))
	}
	slices.SortFunc(visits, func(a, b *schemas.LoggedVisit) int { return cmp.Compare(a.Time, b.Time) })
	var records []*kgo.Record
	for _, v := range visits {
		value := must.Get(h.Streams.VisitLog.Encode(v))(h.t)
		records = append(records, &kgo.Record{Topic: topics.VisitLog, Key: []byte(v.User), Value: value, Timestamp: v.Time.Time()})
	}
	h.visits = append(h.visits, visits...)
	for range 400 {
		records = append(records, h.action(at())...)
	}
	slices.SortStableFunc(records, func(a, b *kgo.Record) int { return a.Timestamp.Compare(b.Timestamp) })
	client := h.Client(kgo.RecordDeliveryTimeout(0)) // which counts from the timestamp of a record
	must.OK(h.t, client.ProduceSync(h.t.Context(), records...).FirstErr())
}

func (h *history) visit(at schemas.Micros) *schemas.LoggedVisit {
	v := &schemas.LoggedVisit{
		ID: fmt.Sprintf("v-%d", h.random.Uint64()), User: schemas.UserID(fmt.Sprint("user:", h.random.IntN(12))), Time: at,
		Feed: "home", ArmShare: 1, UserShare: 1, Policy: schemas.PolicyDeterministic,
	}
	for range 1 + h.random.IntN(3) {
		v.Items = append(v.Items, schemas.LoggedItem{Pin: schemas.PinID(fmt.Sprint("pin:", h.random.IntN(6))), Choice: -1})
	}
	return v
}

func (h *history) action(at schemas.Micros) []*kgo.Record {
	a := &schemas.EnrichedAction{
		ID: fmt.Sprint("a-", h.random.Uint64()), Actor: schemas.UserID(fmt.Sprint("user:", h.random.IntN(12))), Timestamp: at,
		Verb:   []schemas.Verb{schemas.Save, schemas.Hide, schemas.Click}[h.random.IntN(3)],
		Object: schemas.ID(fmt.Sprint("pin:", h.random.IntN(6))),
	}
	if h.random.IntN(4) == 0 && len(h.visits) > 0 { // at a bound of a window
		v := h.visits[h.random.IntN(len(h.visits))]
		bound := v.Time + []schemas.Micros{-1, 0, 10 * hour, 10*hour + 1, 30 * hour, 30*hour + 1}[h.random.IntN(6)]
		if bound > h.now-20*hour && bound <= h.now {
			a.Actor, a.Object, a.Timestamp = v.User, schemas.ID(v.Items[0].Pin), bound
		}
	}
	h.actions = append(h.actions, a)
	arrival := a.Timestamp.Time().Add([]time.Duration{-schemas.MaxAhead, 0, time.Second, 15 * time.Hour}[h.random.IntN(4)])
	record := &kgo.Record{Topic: topics.ActionsEnriched, Key: []byte(a.Actor), Value: must.Get(h.Streams.ActionsEnriched.Encode(a))(h.t), Timestamp: arrival}
	twice := *record
	return []*kgo.Record{record, &twice}[:1+h.random.IntN(2)]
}

// brute returns the rows that the files must have, in order: those of the visits whose windows have ended.
func (h *history) brute() []exported {
	var rows []exported
	for _, v := range h.visits {
		if v.Time >= h.now-30*hour {
			continue
		}
		for i, item := range v.Items {
			r := exported{Visit: v.ID, User: string(v.User), Time: int64(v.Time), Position: int32(i), Pin: string(item.Pin)}
			r.Save, r.SaveAfter = h.label(v, item.Pin, schemas.Save)
			r.Hide, r.HideAfter = h.label(v, item.Pin, schemas.Hide)
			rows = append(rows, r)
		}
	}
	return sorted(rows)
}

func (h *history) label(v *schemas.LoggedVisit, pin schemas.PinID, verb schemas.Verb) (acted bool, after *float64) {
	for _, a := range h.actions {
		since := a.Timestamp.Time().Sub(v.Time.Time())
		if a.Actor == v.User && a.Object == schemas.ID(pin) && a.Verb == verb && since >= 0 && since <= labels()[verb] {
			acted = true
			if seconds := float64(since.Microseconds()) / 1e6; after == nil || seconds < *after {
				after = &seconds
			}
		}
	}
	return acted, after
}

func sorted(rows []exported) []exported {
	slices.SortFunc(rows, func(a, b exported) int {
		return cmp.Or(cmp.Compare(a.Visit, b.Visit), cmp.Compare(a.Position, b.Position))
	})
	return rows
}

// rows reads all files. It checks the day of each row.
func rows(t *testing.T, dir string) (all []exported) {
	t.Helper()
	for _, path := range must.Get(filepath.Glob(filepath.Join(dir, "day=*", "*.parquet")))(t) {
		some := must.Get(parquet.ReadFile[exported](path))(t)
		for _, r := range some {
			expect.Equal(t, filepath.Base(filepath.Dir(path)), "day="+schemas.Micros(r.Time).Time().Format(time.DateOnly), "folder of a row")
		}
		all = append(all, some...)
	}
	return sorted(all)
}

// stopping cancels a context after a number of visits.
type stopping struct {
	cancel func()
	left   int
}

func (s *stopping) Add(n int) {
	if s.left -= n; s.left < 0 {
		s.cancel()
	}
}
func (s *stopping) Say(string)          {}
func (s *stopping) Done() time.Duration { return 0 }

// export exports with batches of a few visits, and stops after some of them.
func (h *history) export(dir string, stopAfter int) (Summary, error) {
	h.t.Helper()
	ctx, cancel := context.WithCancel(h.t.Context())
	defer cancel()
	setup := h.Setup()
	setup.Progress = func(string, int) topics.Progress { return &stopping{cancel, stopAfter} }
	return Run(ctx, setup, Config{Labels: labels(), Dir: dir, Now: h.now.Time(), MaxBatchBytes: 500})
}

// The files have each item once with the labels of a brute-force join, after every export in a growing log, even if exports stop
// in the middle.
func TestExport_EqualsBruteForce(t *testing.T) {
	for seed := range uint64(3) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			h, dir := newHistory(t, seed), t.TempDir()
			for range 5 {
				h.round()
				for range h.random.IntN(3) {
					_, err := h.export(dir, h.random.IntN(60))
					if err != nil && !errors.Is(err, context.Canceled) {
						t.Fatal(err)
					}
					checkUnique(t, rows(t, dir))
				}
				must.Get(h.export(dir, 1e6))(t)
				expect.NoDiff(t, rows(t, dir), h.brute(), "rows")
			}
			expect.Empty(t, must.Get(filepath.Glob(filepath.Join(dir, "*", "*.tmp")))(t), "incomplete files")
		})
	}
}

func checkUnique(t *testing.T, rows []exported) {
	t.Helper()
	seen := map[string]bool{}
	for _, r := range rows {
		key := fmt.Sprint(r.Visit, r.Position)
		expect.False(t, seen[key], "%s is in two rows", key)
		seen[key] = true
	}
}

func TestExport_RejectsOtherLabelsAndTopics(t *testing.T) {
	h, dir := newHistory(t, 1), t.TempDir()
	expect.Is(t, expect.ErrorOf(h.export(dir, 1e6)), ErrNoVisits, "export")
	h.round()
	h.round()
	must.Get(h.export(dir, 1e6))(t)
	_, err := Run(t.Context(), h.Setup(), Config{Labels: Labels{schemas.Hide: time.Hour}, Dir: dir, Now: h.now.Time(), MaxBatchBytes: 1})
	expect.Error(t, err, "has the labels", "other labels")
	other := newHistory(t, 2)
	other.round()
	expect.Error(t, expect.ErrorOf(other.export(dir, 1e6)), "choose another directory", "another topic")
}

func TestExport_BoundsAndDeletedUsers(t *testing.T) {
	h, dir := newHistory(t, 3), t.TempDir()
	h.round()
	h.round()
	h.Produce(topics.UsersDeleted, "user:1", must.Get(h.Streams.UsersDeleted.Encode(&schemas.DeletedUser{User: "user:1"}))(t))
	since, until := (h.now - 38*hour).Time(), (h.now - 32*hour).Time()
	cfg := Config{Labels: labels(), Dir: dir, Now: h.now.Time(), Since: since, Until: until, MaxBatchBytes: 500}
	summary := must.Get(Run(t.Context(), h.Setup(), cfg))(t)
	want := slices.DeleteFunc(h.brute(), func(r exported) bool {
		at := schemas.Micros(r.Time).Time()
		return at.Before(since) || !at.Before(until) || r.User == "user:1"
	})
	expect.NoDiff(t, rows(t, dir), want, "rows")
	if summary.Items != len(want) || summary.Skipped == 0 || summary.Files == 0 || !summary.Until.Equal(until) {
		t.Errorf("summary %+v, want %d items", summary, len(want))
	}
}

// If the oldest actions are deleted, the visits before are skipped.
func TestExport_SkipsVisitsBeforeOldestAction(t *testing.T) {
	h, dir := newHistory(t, 4), t.TempDir()
	h.round()
	ends := must.Get(h.Admin().ListEndOffsets(t.Context(), topics.ActionsEnriched))(t)
	must.OK(t, must.Get(h.Admin().DeleteRecords(t.Context(), ends.Offsets()))(t).Error())
	h.round()
	h.round()
	summary := must.Get(h.export(dir, 1e6))(t)
	got, early := rows(t, dir), func(r exported) bool { return schemas.Micros(r.Time) < h.now-39*hour }
	for _, r := range got {
		expect.AtLeast(t, schemas.Micros(r.Time), h.now-41*hour, "time of visit %s", r.Visit)
	}
	expect.NoDiff(t, slices.DeleteFunc(got, early), slices.DeleteFunc(h.brute(), early), "rows an hour later")
	if summary.Visits == 0 || summary.Skipped == 0 {
		t.Errorf("summary %+v, want visits before the oldest action and after it", summary)
	}
}
