package objects_test

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"go.uber.org/goleak"

	"github.com/smartfeed/smartfeed/internal/convert"
	"github.com/smartfeed/smartfeed/internal/testkit/deletedtest"
	"github.com/smartfeed/smartfeed/internal/testkit/expect"
	"github.com/smartfeed/smartfeed/internal/testkit/must"
	"github.com/smartfeed/smartfeed/internal/testkit/proctest"
	"github.com/smartfeed/smartfeed/internal/testkit/topicstest"
	"github.com/smartfeed/smartfeed/processors/objects"
	"github.com/smartfeed/smartfeed/schemas"
	"github.com/smartfeed/smartfeed/topics"
)

func TestMain(m *testing.M) {
	// Sarama's metrics library has one goroutine per process, which never stops.
	goleak.VerifyTestMain(m, goleak.IgnoreTopFunction("github.com/rcrowley/go-metrics.(*meterArbiter).tick"))
}

// start starts the group with a set of deleted users, for a parallel test.
func start(t *testing.T, cfg objects.Config, deleted ...schemas.UserID) (*proctest.Wire, *proctest.Member) {
	t.Parallel()
	w := proctest.New(t)
	return w, w.Start("a", objects.Group(cfg, w.Streams, deletedtest.Of(deleted...)))
}

// now returns the time that the events of a test are relative to.
func now() time.Time { return time.Now().Truncate(time.Millisecond) }

func pinAt(verb schemas.Verb, pin schemas.PinID, at time.Time, id string, change ...func(*schemas.PinEvent)) *schemas.PinEvent {
	e := &schemas.PinEvent{
		Event: schemas.Event{ID: id, Time: schemas.MicrosOf(at), Actor: "user:ada", Verb: verb, Object: schemas.ID(pin)},
		Board: "board:a", Interests: []schemas.InterestID{"interest:x"}, Title: "title of " + id, Link: "https://example.com/" + id,
		Attributes: map[string]string{"version": id},
	}
	for _, c := range change {
		c(e)
	}
	return e
}

func actionAt(verb schemas.Verb, pin schemas.PinID, at time.Time, id string, change ...func(*schemas.ActionEvent)) *schemas.ActionEvent {
	e := &schemas.ActionEvent{
		Event:   schemas.Event{ID: id, Time: schemas.MicrosOf(at), Actor: "user:eve", Verb: verb, Object: schemas.ID(pin)},
		Surface: "home",
	}
	for _, c := range change {
		c(e)
	}
	return e
}

// joinedWith returns the attribute version that each action was joined with, by the action's id.
func joinedWith(t *testing.T, w *proctest.Wire) map[string]string {
	t.Helper()
	got := map[string]string{}
	for _, r := range proctest.Drain(w, w.Streams.ActionsJoined) {
		if _, twice := got[r.Value.ID]; twice {
			t.Errorf("action %s was forwarded twice", r.Value.ID)
		}
		expect.Equal(t, r.Key, string(r.Value.Actor), "key of action %s", r.Value.ID)
		got[r.Value.ID] = r.Value.ObjectAttributes.Attributes["version"]
	}
	return got
}

func TestPin_PublicationsCardsAndDeadLetters(t *testing.T) {
	cfg := objects.DefaultConfig()
	cfg.QualityRules = []objects.QualityRule{{Field: "title", Factor: 2}}
	w, _ := start(t, cfg, "user:deleted")
	at := now()
	moved := func(e *schemas.PinEvent) { e.Board, e.Interests = "board:b", nil }
	byDeleted := func(e *schemas.PinEvent) { e.Actor = "user:deleted" }
	proctest.Publish(w, w.Streams.Pins, "pin:1",
		pinAt(schemas.Create, "pin:1", at, "c"),
		pinAt(schemas.Update, "pin:1", at.Add(1), "ignored", byDeleted),
		pinAt(schemas.Update, "pin:1", at.Add(time.Millisecond), "u", moved),
		pinAt(schemas.Delete, "pin:1", at.Add(2*time.Millisecond), "d", byDeleted))
	proctest.Publish(w, w.Streams.Pins, "pin:2", pinAt(schemas.Create, "pin:2", at, "g", byDeleted))
	proctest.Publish(w, w.Streams.Pins, "pin:3", pinAt(schemas.Create, "pin:4", at, "k"))
	w.WaitIdle()

	type sentPublication struct {
		Followee schemas.Followee
		Board    schemas.BoardID
		Version  schemas.Version
		Quality  float64
		Deleted  bool
	}
	created := schemas.Version(at.UnixMicro())
	want := []sentPublication{
		{"board:a", "board:a", created, 2, false}, {"board:a", "board:b", created + 1000, 2, false}, {"board:a", "", created + 2000, 2, true},
		{"board:b", "board:b", created + 1000, 2, false}, {"board:b", "", created + 2000, 2, true},
		{"interest:x", "board:a", created, 2, false}, {"interest:x", "board:b", created + 1000, 2, false}, {"interest:x", "", created + 2000, 2, true},
		{"user:ada", "board:a", created, 2, false}, {"user:ada", "board:b", created + 1000, 2, false}, {"user:ada", "", created + 2000, 2, true},
	}
	var got []sentPublication
	for _, r := range proctest.Drain(w, w.Streams.Publications) {
		v := r.Value
		expect.Equal(t, r.Key, string(v.Followee), "key of a publication to %s", v.Followee)
		got = append(got, sentPublication{v.Followee, v.Board, v.Version, v.Quality, v.Deleted})
	}
	slices.SortStableFunc(got, func(a, b sentPublication) int { return cmp.Compare(a.Followee, b.Followee) })
	expect.NoDiff(t, got, want, "publications")
	checkCards(t, w)
	expect.NoDiff(t, w.DeadLetterReasons(), []string{`key "pin:3": want the record's "pin:4"`}, "dead letters")
}

func TestPin_DeletedDropsLaterRecords(t *testing.T) {
	w, _ := start(t, objects.DefaultConfig())
	at := now()
	proctest.Publish(w, w.Streams.Pins, "pin:1", pinAt(schemas.Create, "pin:1", at, "c"), pinAt(schemas.Delete, "pin:1", at, "d"))
	w.WaitIdle()
	proctest.Publish(w, w.Streams.Actions, "pin:1", actionAt(schemas.Click, "pin:1", at, "late"))
	show(w, shown(at, "pin:1"))
	proctest.Publish(w, w.Streams.Pins, "pin:1", pinAt(schemas.Update, "pin:1", at.Add(time.Second), "u"))
	w.WaitIdle()
	got := []int{
		len(proctest.Drain(w, w.Streams.ActionsJoined)), len(proctest.Drain(w, w.Streams.ItemFeatures)),
		len(proctest.Drain(w, w.Streams.PinCards)), len(w.Rows(topics.Objects, "pin:1")),
	}
	expect.NoDiff(t, got, []int{0, 0, 2, 1}, "actions joined, counts, cards, rows")
}

func checkCards(t *testing.T, w *proctest.Wire) {
	t.Helper()
	titles := convert.All(proctest.Drain(w, w.Streams.PinCards), func(r proctest.Record[schemas.Card]) string {
		return fmt.Sprintf("%s %q %q %t", r.Value.Pin, r.Value.Title, r.Value.Link, r.Value.Deleted)
	})
	want := []string{
		`pin:1 "title of c" "https://example.com/c" false`,
		`pin:1 "title of u" "https://example.com/u" false`,
		`pin:1 "" "" true`,
	}
	expect.NoDiff(t, titles, want, "cards")
}

func TestAction_JoinedOnce(t *testing.T) {
	cfg := objects.DefaultConfig()
	cfg.BotRules = append(cfg.BotRules, objects.BotRule{ActorPrefix: "user:crawler-"})
	w, m := start(t, cfg, "user:deleted")
	at := now()
	proctest.Publish(w, w.Streams.Pins, "pin:1",
		pinAt(schemas.Create, "pin:1", at, "v1"),
		pinAt(schemas.Update, "pin:1", at.Add(time.Second), "v2"))
	w.WaitIdle()
	by := func(u schemas.UserID) func(*schemas.ActionEvent) {
		return func(e *schemas.ActionEvent) { e.Actor = u }
	}
	bot := func(e *schemas.ActionEvent) { e.Attributes = map[string]string{"bot": "true"} }
	proctest.Publish(w, w.Streams.Actions, "pin:1",
		actionAt(schemas.Click, "pin:1", at.Add(-time.Hour), "before all"),
		actionAt(schemas.Click, "pin:1", at.Add(time.Second/2), "between"),
		actionAt(schemas.Save, "pin:1", at.Add(2*time.Second), "after"),
		actionAt(schemas.Save, "pin:1", at.Add(2*time.Second), "after"),
		actionAt(schemas.Click, "pin:1", at, "no actor", by("")),
		actionAt(schemas.Click, "pin:1", at, "deleted user's", by("user:deleted")),
		actionAt(schemas.Click, "pin:1", at, "bot's", bot),
		actionAt(schemas.Click, "pin:1", at, "crawler's", by("user:crawler-7")),
		actionAt("applaud", "pin:1", at, "of an unknown verb"),
		actionAt(schemas.Click, "pin:1", at.Add(time.Hour), "from the future"))
	w.WaitIdle()
	expect.NoDiff(t, joinedWith(t, w), map[string]string{"before all": "v1", "between": "v1", "after": "v2"}, "joined with")
	dropped := map[string]int64{"no_actor": 1, "deleted_user": 1, "bot": 2, "duplicate": 1}
	expect.NoDiff(t, m.Status(topics.Objects).Dropped, dropped, "dropped by reason")
	first := proctest.Drain(w, w.Streams.ActionsJoined)[0]
	want := schemas.EnrichedAction{
		ID: "before all", Timestamp: schemas.MicrosOf(at.Add(-time.Hour)), Actor: "user:eve", Verb: schemas.Click,
		VerbAttributes: schemas.VerbAttributes{Surface: "home"}, Object: "pin:1",
		ObjectAttributes: schemas.ObjectAttributes{
			Facets:     schemas.Facets{Author: "user:ada", Board: "board:a", Interests: []schemas.InterestID{"interest:x"}},
			Attributes: map[string]string{"version": "v1"},
			Version:    schemas.Version(schemas.MicrosOf(at.Add(time.Second))), // the newest, regardless of the version of the attributes
			Created:    schemas.MicrosOf(at),
			Quality:    1,
		},
	}
	expect.NoDiffBut(t, cmpopts.EquateEmpty(), *first.Value, want, "action")
	expect.Equal(t, len(proctest.Drain(w, w.Streams.DeadLetters)), 2, "dead letters of the unknown verb and of the future time")
}

func TestObjects_FutureEventsAreDeadLetters(t *testing.T) {
	w, _ := start(t, objects.DefaultConfig())
	arrival := now()
	latest := arrival.Add(schemas.MaxAhead)
	later := latest.Add(time.Microsecond)
	proctest.PublishAt(w, w.Streams.Pins, arrival, "pin:1",
		pinAt(schemas.Create, "pin:1", latest, "latest"), pinAt(schemas.Update, "pin:1", later, "later"))
	proctest.PublishAt(w, w.Streams.Actions, arrival, "pin:1",
		actionAt(schemas.Click, "pin:1", latest, "latest"), actionAt(schemas.Click, "pin:1", later, "later"))
	w.WaitIdle()
	expect.NoDiff(t, joinedWith(t, w), map[string]string{"latest": "latest"}, "joined with")
	expect.Equal(t, len(proctest.Drain(w, w.Streams.PinCards)), 1, "versions of the pin: only that of the create")
	var from []string
	for _, l := range proctest.Values(proctest.Drain(w, w.Streams.DeadLetters)) {
		from = append(from, l.Topic)
		expect.True(t, strings.HasPrefix(l.Reason, "time: "), "dead letter of %s because of its time: %q", l.Topic, l.Reason)
	}
	slices.Sort(from)
	expect.NoDiff(t, from, []string{topics.Actions, topics.Pins}, "topics of the dead letters")
}

func TestAction_HeldUntilPinArrives(t *testing.T) {
	cfg := objects.DefaultConfig()
	cfg.MaxWaitingActions, cfg.JoinTimeout = 30, 3*time.Second // more than releaseAtOnce
	w, m := start(t, cfg)
	at := now()
	want := map[string]string{}
	for i := range 31 {
		id := fmt.Sprintf("early %d", i)
		want[id] = "v1"
		proctest.Publish(w, w.Streams.Actions, "pin:1", actionAt(schemas.Click, "pin:1", at, id))
	}
	want["early 30"] = "" // over MaxHeld
	proctest.Publish(w, w.Streams.Actions, "pin:3", actionAt(schemas.Click, "pin:3", at, "of a pin that is deleted"))
	proctest.Publish(w, w.Streams.Pins, "pin:3", pinAt(schemas.Delete, "pin:3", at, "d"))
	proctest.Publish(w, w.Streams.Actions, "pin:2", actionAt(schemas.Click, "pin:2", at, "in vain"))
	want["in vain"] = ""
	w.WaitIdle()
	expect.NoDiff(t, joinedWith(t, w), map[string]string{"early 30": ""}, "forwarded before the pin")
	proctest.Publish(w, w.Streams.Pins, "pin:1", pinAt(schemas.Create, "pin:1", at, "v1"))
	w.Eventually("all held actions are forwarded", func() bool { return len(proctest.Drain(w, w.Streams.ActionsJoined)) >= len(want) })
	expect.NoDiff(t, joinedWith(t, w), want, "joined with")
	expect.Empty(t, w.RowsOfKind(topics.Objects, "", 'h'), "rows of actions that are still held")
	without := map[string]int64{"hold_limit": 1, "unknown_pin": 1, "deleted_pin": 1}
	expect.NoDiff(t, m.Status(topics.Objects).Dropped, without, "dropped or incomplete, by reason")
}

func TestCounts_PerStep(t *testing.T) {
	w, _ := start(t, objects.DefaultConfig())
	arrival := now()
	step := arrival.Add(-time.Hour).Truncate(5 * time.Minute)
	before := step.Add(-time.Microsecond)
	proctest.Publish(w, w.Streams.Actions, "pin:1",
		actionAt(schemas.Click, "pin:1", step, "1"),
		actionAt(schemas.Click, "pin:1", step.Add(5*time.Minute-time.Microsecond), "2"),
		actionAt(schemas.Click, "pin:1", step.Add(time.Minute), "2"),
		actionAt(schemas.Save, "pin:1", step.Add(time.Minute), "3"),
		actionAt(schemas.Click, "pin:1", before, "4"),
		actionAt(schemas.Click, "pin:1", arrival.Add(-97*time.Hour), "too late to be counted"))
	show(w, shown(step, "pin:1"), shown(step, "pin:1"))
	w.WaitIdle()
	last := map[schemas.Micros]map[string]int64{}
	for _, r := range proctest.Drain(w, w.Streams.ItemFeatures) {
		last[r.Value.Start] = r.Value.Counts
	}
	want := map[schemas.Micros]map[string]int64{
		schemas.MicrosOf(step):                       {"click": 2, "save": 1, "impression": 2},
		schemas.MicrosOf(step.Add(-5 * time.Minute)): {"click": 1},
	}
	expect.NoDiff(t, last, want, "counts")
	expect.Empty(t, w.DeadLetterReasons(), "dead letters")
}

func TestTimer_ExpiresRememberedActionsAndCounts(t *testing.T) {
	w, at := newSweepRig(t)
	click := actionAt(schemas.Click, sweptPin, at.Truncate(5*time.Minute).Add(-time.Second), "again and again")
	proctest.Publish(w, w.Streams.Actions, string(sweptPin), click)
	w.WaitIdle()
	expect.Equal(t, tick(w, at), 3, "rows: the action, its step of counts and their sweep")
	expect.Equal(t, tick(w, at.Add(97*time.Hour)), 0, "rows after both expired")
	proctest.PublishAt(w, w.Streams.Actions, at.Add(97*time.Hour), string(sweptPin), click)
	w.WaitIdle()
	expect.Equal(t, len(proctest.Drain(w, w.Streams.ActionsJoined)), 2, "actions forwarded: the repeat after the first expired")
	expect.Equal(t, len(proctest.Drain(w, w.Streams.ItemFeatures)), 1, "records of counts: none for the repeat, whose step has expired")
}

// Every action is forwarded once and counted once, and every pin ends with its newest version, while members are killed.
func TestObjects_ExactlyOnceThroughKills(t *testing.T) {
	t.Parallel()
	w := proctest.New(t)
	group := objects.Group(objects.DefaultConfig(), w.Streams, deletedtest.Of())
	a := w.Start("a", group)
	const pins, versions, repeats = 12, 5, 2
	random := rand.New(rand.NewPCG(1, 2))
	at := now().Add(-time.Minute)
	for round := range versions {
		for _, i := range random.Perm(pins) {
			pin := schemas.PinID(fmt.Sprintf("pin:%d", i))
			v := (round*3 + i) % versions // each pin has its own order of versions
			verb := schemas.Update
			if v == 0 {
				verb = schemas.Create
			}
			for range repeats {
				proctest.Publish(w, w.Streams.Actions, string(pin), actionAt(schemas.Save, pin, at, fmt.Sprintf("%s %d", pin, v)))
				proctest.Publish(w, w.Streams.Pins, string(pin),
					pinAt(verb, pin, at.Add(time.Duration(v)*time.Second), fmt.Sprintf("%s v%d", pin, v), func(e *schemas.PinEvent) {
						e.Board = schemas.BoardID(fmt.Sprintf("board:%d", v))
					}))
			}
		}
		switch round {
		case 1:
			a.Kill()
			w.Start("b", group)
		case 2:
			a.Restart()
		}
	}
	w.WaitIdle()
	w.Eventually("every action is forwarded", func() bool {
		return len(proctest.Drain(w, w.Streams.ActionsJoined)) >= pins*versions
	})
	expect.NoDiff(t, len(joinedWith(t, w)), pins*versions, "actions forwarded")
	checkLastBoards(t, w, versions-1)
	counts := map[schemas.PinID]int64{}
	for _, c := range proctest.Values(proctest.Drain(w, w.Streams.ItemFeatures)) {
		counts[c.Pin] = c.Counts["save"]
	}
	for pin, n := range counts {
		expect.Equal(t, n, versions, "%s: counted saves", pin)
	}
}

// checkLastBoards checks that the last publication to each followee of each pin is its version on the newest board.
func checkLastBoards(t *testing.T, w *proctest.Wire, newest int) {
	t.Helper()
	want := schemas.BoardID(fmt.Sprintf("board:%d", newest))
	type edge struct {
		pin      schemas.PinID
		followee schemas.Followee
	}
	last := map[edge]schemas.PinVersion{}
	for _, p := range proctest.Values(proctest.Drain(w, w.Streams.Publications)) {
		e := edge{p.Pin, p.Followee}
		expect.True(t, p.Version > last[e].Version, "%v: version %d after %d", e, p.Version, last[e].Version)
		last[e] = p.PinVersion
	}
	for e, v := range last {
		expect.Equal(t, v.Board, want, "last publication to %v has board", e)
	}
}

func TestPin_AttributesOfNewestVersion(t *testing.T) {
	w, _ := start(t, objects.DefaultConfig())
	at := now()
	with := func(v ...float32) func(*schemas.PinEvent) { return func(e *schemas.PinEvent) { e.Embedding = v } }
	proctest.Publish(w, w.Streams.Pins, "pin:1",
		pinAt(schemas.Update, "pin:1", at, "u", with(1)), // no version before the create
		pinAt(schemas.Create, "pin:1", at.Add(-time.Minute), "c", with(2)),
		pinAt(schemas.Update, "pin:1", at.Add(-time.Second), "old", with(3)),
		pinAt(schemas.Update, "pin:1", at.Add(time.Second), "new", with(4)),
		pinAt(schemas.Delete, "pin:1", at, "d"))
	w.WaitIdle()
	attributes := func(id string) map[string]string { return map[string]string{"version": id} }
	facets := schemas.Facets{Author: "user:ada", Board: "board:a", Interests: []schemas.InterestID{"interest:x"}}
	want := []schemas.PinAttributes{
		{Pin: "pin:1", Facets: facets, Attributes: attributes("u"), Embedding: []float32{1}},
		{Pin: "pin:1", Facets: facets, Attributes: attributes("new"), Embedding: []float32{4}},
		{Pin: "pin:1", Deleted: true},
	}
	got := proctest.Values(proctest.Drain(w, w.Streams.PinAttributes))
	ignore := cmpopts.IgnoreFields(schemas.PinAttributes{}, "Version")
	expect.NoDiffBut(t, gocmp.Options{ignore, cmpopts.EquateEmpty()}, got, want, "attributes")
	if !slices.IsSortedFunc(got, func(a, b schemas.PinAttributes) int { return cmp.Compare(a.Version, b.Version) }) {
		t.Errorf("versions do not ascend: %v", got)
	}
}

func TestCounts_ActorsAndMeanEmbedding(t *testing.T) {
	w, _ := start(t, objects.DefaultConfig())
	at := now()
	by := func(user schemas.UserID) func(*schemas.ActionEvent) {
		return func(e *schemas.ActionEvent) { e.Actor = user }
	}
	proctest.Publish(w, w.Streams.Pins, "pin:1", pinAt(schemas.Create, "pin:1", at, "c"))
	for i := range 40 {
		proctest.Publish(w, w.Streams.Actions, "pin:1",
			actionAt(schemas.Click, "pin:1", at, fmt.Sprint("a", i), by(schemas.UserID(fmt.Sprint("user:", i%20)))))
	}
	show(w, shown(at, "pin:1"))
	w.WaitIdle() // the mean is sent with the newest counts
	proctest.Publish(w, w.Streams.PinActors, "pin:1",
		&schemas.PinActor{Pin: "pin:1", Time: schemas.MicrosOf(at), Embedding: []float32{1, 0}},
		&schemas.PinActor{Pin: "pin:1", Time: schemas.MicrosOf(at), Embedding: []float32{0, 3}},
		&schemas.PinActor{Pin: "pin:1", Time: schemas.MicrosOf(at) - 1, Embedding: []float32{5}}, // another model
		&schemas.PinActor{Pin: "pin:other", Time: schemas.MicrosOf(at), Embedding: []float32{5}})
	w.WaitIdle()
	all := proctest.Values(proctest.Drain(w, w.Streams.ItemFeatures))
	last := all[len(all)-1]
	u := &schemas.Union{}
	u.Merge(last.Actors)
	expect.Between(t, u.Estimate(), 19.5, 20.5, "actors")
	expect.NoDiff(t, last.Counts, map[string]int64{"click": 40, schemas.ImpressionCount: 1}, "counts")
	expect.NoDiff(t, last.Embedding, []float32{0.5, 1.5}, "mean of actors")
	expect.NoDiff(t, w.DeadLetterReasons(), []string{`pin actor: key "pin:1": want the pin "pin:other"`}, "dead letters")
}

// hotRig is the group with a global table of hot-pins.
type hotRig struct {
	*proctest.Wire
	hot *topics.GlobalTable[schemas.HotPin]
	at  time.Time
}

// newHotRig starts the group and a global table of hot pins, for a parallel test.
func newHotRig(t *testing.T, cfg objects.Hot, pins ...schemas.PinID) *hotRig {
	t.Parallel()
	w := proctest.New(t)
	all := objects.DefaultConfig()
	all.Hot = cfg
	w.Start("a", objects.Group(all, w.Streams, deletedtest.Of()))
	log := slog.New(slog.NewTextHandler(t.Output(), nil))
	r := &hotRig{Wire: w, at: now(), hot: topics.NewGlobalTable(w.Kafka, w.Streams.HotPins, "test", log)}
	w.Hold(r.hot.Run)
	for _, pin := range pins {
		proctest.Publish(w, w.Streams.Pins, string(pin), pinAt(schemas.Create, pin, r.at, "c "+string(pin)))
	}
	w.WaitIdle() // the author is known from here
	return r
}

func (r *hotRig) show(pin schemas.PinID, n int) {
	for range n {
		show(r.Wire, shown(r.at, pin))
	}
}

func (r *hotRig) expect(pin schemas.PinID, impressions, saves int64) {
	want := schemas.HotPin{Pin: pin, Author: "user:ada", Impressions: impressions, Saves: saves}
	r.Eventually(fmt.Sprintf("%+v", want), func() bool {
		got, ok := r.hot.Get(string(pin))
		return ok && *got == want
	})
}

func (r *hotRig) cold(pin schemas.PinID) {
	r.Eventually(string(pin)+" is cold", func() bool { return !r.hot.Has(string(pin)) })
}

// A pin becomes hot after some impressions and saves, is sent again as they grow, and is removed after a while without any.
// A later impression makes it hot again, with all earlier counts.
func TestHot_AddedUpdatedAndRemoved(t *testing.T) {
	r := newHotRig(t, objects.Hot{MinEngagement: 4, Expiry: time.Second}, "pin:1", "pin:2")
	r.show("pin:2", 3)
	r.show("pin:1", 3)
	save := actionAt(schemas.Save, "pin:1", r.at, "save")
	proctest.Publish(r.Wire, r.Streams.Actions, "pin:1", save, save)
	r.expect("pin:1", 3, 1)
	r.show("pin:1", 2)
	r.expect("pin:1", 5, 1)
	r.cold("pin:1")
	r.show("pin:1", 1)
	r.expect("pin:1", 6, 1)
	r.cold("pin:1")
	expect.False(t, r.hot.Has("pin:2"), "pin:2 is hot after three impressions")
}

func TestHot_RemovesDeletedPin(t *testing.T) {
	r := newHotRig(t, objects.Hot{MinEngagement: 1, Expiry: time.Hour}, "pin:1")
	r.show("pin:1", 2)
	r.expect("pin:1", 2, 0)
	proctest.Publish(r.Wire, r.Streams.Pins, "pin:1", pinAt(schemas.Delete, "pin:1", r.at.Add(1), "d"))
	r.cold("pin:1")
}

// WaitIdle does not wait for an action that is held until its pin arrives.
func TestWaitIdle_IgnoresHeldActions(t *testing.T) {
	t.Parallel()
	w := proctest.New(t)
	cfg := objects.DefaultConfig()
	cfg.JoinTimeout = time.Hour
	group := objects.Group(cfg, w.Streams, deletedtest.Of())
	w.Start("a", group)
	proctest.Publish(w, w.Streams.Actions, "pin:1", actionAt(schemas.Click, "pin:1", now(), "in vain"))
	reader := topics.Reader{Group: topics.Objects, Topics: group.Reads()}
	ctx, cancel := context.WithTimeout(t.Context(), proctest.Patience)
	defer cancel()
	must.OK(t, topics.Wait(ctx, w.Kafka, schemas.MicrosOf(time.Now()), nil, reader))
	held, joined := len(w.RowsOfKind(topics.Objects, "pin:1", 'h')), len(proctest.Drain(w, w.Streams.ActionsJoined))
	expect.Equal(t, [2]int{held, joined}, [2]int{1, 0}, "actions held and forwarded")
}

// shown returns the impressions of a visit at some time.
func shown(at time.Time, pins ...schemas.PinID) *schemas.Impressions {
	rec := &schemas.Impressions{User: "user:eve", Time: schemas.MicrosOf(at)}
	for _, p := range pins {
		rec.Pins = append(rec.Pins, schemas.ShownPin{Pin: p, Source: schemas.Following})
	}
	return rec
}

// show publishes impressions of one partition.
func show(w *proctest.Wire, recs ...*schemas.Impressions) {
	partition := topics.Partition(string(recs[0].Pins[0].Pin), w.Kafka.Partitions)
	proctest.PublishTo(w, w.Streams.Impressions, partition, "", time.Time{}, recs...)
}

// pinsIn returns pins of a partition.
func pinsIn(w *proctest.Wire, partition int32, n int) []schemas.PinID {
	return topicstest.KeysIn[schemas.PinID]("pin:of-a-visit-", partition, w.Kafka.Partitions, n)
}

// impressionsOf returns the impressions in the newest counts of each pin.
func impressionsOf(t *testing.T, w *proctest.Wire) map[schemas.PinID]int64 {
	t.Helper()
	got := map[schemas.PinID]int64{}
	for _, r := range proctest.Drain(w, w.Streams.ItemFeatures) {
		expect.Equal(t, r.Key, string(r.Value.Pin), "key of the counts of %s", r.Value.Pin)
		got[r.Value.Pin] = r.Value.Counts[schemas.ImpressionCount]
	}
	return got
}

// Each pin of a visit counts as often as it is listed, even if it is unknown. A deleted pin does not count and is reported
// as dropped.
func TestImpressions_CountEachPin(t *testing.T) {
	w, m := start(t, objects.DefaultConfig())
	at, p := now(), pinsIn(w, 1, 4)
	for _, pin := range p[:3] {
		proctest.Publish(w, w.Streams.Pins, string(pin), pinAt(schemas.Create, pin, at, "c "+string(pin)))
	}
	proctest.Publish(w, w.Streams.Pins, string(p[2]), pinAt(schemas.Delete, p[2], at, "d"))
	w.WaitIdle()
	show(w, shown(at, p[0], p[1], p[0], p[2], p[3]), shown(at, p[1]))
	w.WaitIdle()
	expect.NoDiff(t, impressionsOf(t, w), map[schemas.PinID]int64{p[0]: 2, p[1]: 2, p[3]: 1}, "impressions")
	expect.NoDiff(t, m.Status(topics.Objects).Dropped, map[string]int64{"deleted_pin": 1}, "dropped by reason")
	expect.Empty(t, w.DeadLetterReasons(), "dead letters")
}

// Impressions with a pin of another partition go to the dead-letter topic, and none of them counts. Later ones do.
func TestImpressions_OtherPartitionIsDeadLetter(t *testing.T) {
	w, _ := start(t, objects.DefaultConfig())
	at, here, there := now(), pinsIn(w, 1, 2), pinsIn(w, 2, 1)
	show(w, shown(at, here[0], there[0], here[1]), shown(at, here[1]))
	w.WaitIdle()
	expect.NoDiff(t, impressionsOf(t, w), map[schemas.PinID]int64{here[1]: 1}, "impressions")
	want := fmt.Sprintf("access rows of %q: its partition is 2, the record's is 1", there[0])
	expect.NoDiff(t, w.DeadLetterReasons(), []string{want}, "dead letters")
}
