package actors_test

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp/cmpopts"
	"go.uber.org/goleak"

	"github.com/smartfeed/smartfeed/internal/convert"
	"github.com/smartfeed/smartfeed/internal/testkit/deletedtest"
	"github.com/smartfeed/smartfeed/internal/testkit/expect"
	"github.com/smartfeed/smartfeed/internal/testkit/proctest"
	"github.com/smartfeed/smartfeed/processors/actors"
	"github.com/smartfeed/smartfeed/processors/rows"
	"github.com/smartfeed/smartfeed/schemas"
	"github.com/smartfeed/smartfeed/topics"
)

func TestMain(m *testing.M) {
	// Sarama's metrics library starts one goroutine per process, which never stops.
	goleak.VerifyTestMain(m, goleak.IgnoreTopFunction("github.com/rcrowley/go-metrics.(*meterArbiter).tick"))
}

// start starts the group with a set of deleted users, for a parallel test.
func start(t *testing.T, cfg actors.Config, deleted ...schemas.UserID) *proctest.Wire {
	t.Parallel()
	w := proctest.New(t)
	w.Start("a", actors.Group(cfg, w.Streams, deletedtest.Of(deleted...)))
	return w
}

func now() time.Time { return time.Now().Truncate(time.Millisecond) }

func profile(user schemas.UserID, verb schemas.Verb, at time.Time, id string) *schemas.UserEvent {
	return &schemas.UserEvent{
		Event:      schemas.Event{ID: id, Time: schemas.MicrosOf(at), Actor: user, Verb: verb, Object: schemas.ID(user)},
		Interests:  []schemas.InterestID{"interest:x"},
		Attributes: map[string]string{"profile": id},
		Embedding:  []float32{1, 2},
	}
}

func action(user schemas.UserID, verb schemas.Verb, at time.Time, id string, f schemas.Facets) *schemas.EnrichedAction {
	return &schemas.EnrichedAction{
		ID: id, Timestamp: schemas.MicrosOf(at), Actor: user, Verb: verb, Object: "pin:1",
		ObjectAttributes: schemas.ObjectAttributes{Facets: f},
	}
}

func TestAction_JoinedWithNewestProfile(t *testing.T) {
	w := start(t, actors.DefaultConfig())
	at := now()
	send := func(id string) {
		t.Helper()
		proctest.Publish(w, w.Streams.ActionsJoined, "user:eve", action("user:eve", schemas.Click, at, id, schemas.Facets{Author: "user:ada"}))
		w.WaitIdle()
	}
	update := func(at time.Time, id string) {
		t.Helper()
		proctest.Publish(w, w.Streams.Users, "user:eve", profile("user:eve", schemas.Update, at, id))
		w.WaitIdle()
	}
	send("unknown")
	update(at, "second")
	update(at.Add(-time.Second), "first")
	update(at.Add(time.Second), "second")
	send("known")
	proctest.Publish(w, w.Streams.ActionsJoined, "user:other", action("user:eve", schemas.Click, at, "wrong-key", schemas.Facets{}))
	w.WaitIdle()

	want := []schemas.EnrichedAction{
		*action("user:eve", schemas.Click, at, "unknown", schemas.Facets{Author: "user:ada"}),
		*action("user:eve", schemas.Click, at, "known", schemas.Facets{Author: "user:ada"}),
	}
	want[0].Number, want[1].Number = 1, 2
	want[1].ActorAttributes = schemas.ActorAttributes{
		Interests: []schemas.InterestID{"interest:x"}, Embedding: []float32{1, 2}, Attributes: map[string]string{"profile": "second"},
	}
	expect.NoDiffBut(t, cmpopts.EquateEmpty(), proctest.Values(proctest.Drain(w, w.Streams.ActionsEnriched)), want, "actions")
	wantDeadLetters := []string{`action: key "user:other": want the actor "user:eve"`}
	expect.NoDiff(t, w.DeadLetterReasons(), wantDeadLetters, "dead letters: only the action under another key")
}

func TestUser_FutureProfileIsDeadLetter(t *testing.T) {
	w := start(t, actors.DefaultConfig())
	arrival := now()
	latest := arrival.Add(schemas.MaxAhead)
	proctest.PublishAt(w, w.Streams.Users, arrival, "user:eve",
		profile("user:eve", schemas.Update, latest, "latest"), profile("user:eve", schemas.Update, latest.Add(time.Microsecond), "later"))
	w.WaitIdle()
	proctest.Publish(w, w.Streams.ActionsJoined, "user:eve", action("user:eve", schemas.Click, arrival, "1", schemas.Facets{}))
	w.WaitIdle()
	known := proctest.Values(proctest.Drain(w, w.Streams.ActionsEnriched))
	if len(known) != 1 || known[0].ActorAttributes.Attributes["profile"] != "latest" {
		t.Errorf("got %+v, want the profile with the latest valid time", known)
	}
	deadLetters := proctest.Values(proctest.Drain(w, w.Streams.DeadLetters))
	if len(deadLetters) != 1 || deadLetters[0].Topic != topics.Users || !strings.HasPrefix(deadLetters[0].Reason, "time: ") {
		t.Errorf("dead letters: got %v, want only the profile with a future time", deadLetters)
	}
}

func TestUser_DeleteDropsLaterRecords(t *testing.T) {
	w := start(t, actors.DefaultConfig(), "user:zoe")
	at := now()
	liked := schemas.Facets{Author: "user:ada", Board: "board:a"}
	proctest.Publish(w, w.Streams.Users, "user:eve", profile("user:eve", schemas.Update, at, "u"))
	for i := range 3 { // the first sends affinities, the others set a timer
		proctest.Publish(w, w.Streams.ActionsJoined, "user:eve", action("user:eve", schemas.Save, at, fmt.Sprint(i), liked))
	}
	w.WaitIdle()
	proctest.Publish(w, w.Streams.Users, "user:eve",
		profile("user:eve", schemas.Delete, at.Add(-time.Hour), "d"),
		profile("user:eve", schemas.Delete, at.Add(-time.Hour), "d"),
		profile("user:eve", schemas.Update, at.Add(time.Second), "late"))
	w.WaitIdle()
	proctest.Publish(w, w.Streams.ActionsJoined, "user:eve", action("user:eve", schemas.Save, at, "late", liked))
	proctest.Publish(w, w.Streams.ActionsJoined, "user:zoe", action("user:zoe", schemas.Save, at, "of a user in the table of deleted users", liked))
	w.WaitIdle()

	want := []schemas.DeletedUser{{User: "user:eve", Time: schemas.MicrosOf(at.Add(-time.Hour))}}
	expect.NoDiff(t, proctest.Values(proctest.Drain(w, w.Streams.UsersDeleted)), want, "deleted users")
	expect.Equal(t, len(proctest.Drain(w, w.Streams.ActionsEnriched)), 3, "actions forwarded: the 3 before the delete")
	rows := w.Rows(topics.Actors, "")
	if len(rows) != 1 || rows[0].Owner != "user:eve" || bytes.Contains(rows[0].Value, []byte("interest:x")) {
		t.Errorf("rows: got %v, want only the delete", rows)
	}
	sentOf := func(user schemas.UserID) (n int) {
		for _, a := range proctest.Values(proctest.Drain(w, w.Streams.Affinities)) {
			if a.User == user {
				n++
			}
		}
		return n
	}
	before := sentOf("user:eve")
	// A later timer of another user shows that the deleted user's timer would have fired.
	for i := range 2 {
		proctest.Publish(w, w.Streams.ActionsJoined, "user:bob", action("user:bob", schemas.Save, at, fmt.Sprint("b", i), liked))
	}
	w.Eventually("the affinities of the other user are sent twice", func() bool { return sentOf("user:bob") == 2 })
	expect.Equal(t, sentOf("user:eve"), before, "number of sent affinities after the delete")
}

func TestAffinities_SentAtMostOncePerInterval(t *testing.T) {
	cfg := actors.DefaultConfig()
	cfg.EmitInterval, cfg.TopAffinities = 700*time.Millisecond, 3
	w := start(t, cfg)
	at := now()
	const n, bursts = 20, 3
	last := func() schemas.Affinities {
		all := proctest.Values(proctest.Drain(w, w.Streams.Affinities))
		return all[len(all)-1]
	}
	for b := range bursts {
		for i := range n {
			f := schemas.Facets{Author: "user:ada", Board: "board:a", Interests: []schemas.InterestID{"interest:x", schemas.InterestID(fmt.Sprintf("interest:%d", i))}}
			proctest.Publish(w, w.Streams.ActionsJoined, "user:eve",
				action("user:eve", schemas.Click, at, fmt.Sprint("c", b, i), f),
				action("user:eve", schemas.Hide, at, fmt.Sprint("h", b, i), schemas.Facets{Board: "board:a"}))
		}
		w.WaitIdle()
		w.Eventually("the affinities of the burst are sent", func() bool {
			return math.Abs(last().Top[0].Value-float64(n*(b+1))) < 0.1
		})
	}
	// Both are clicked each time; the others tie and follow in the order of their ids.
	want := []schemas.ID{"interest:x", "user:ada", "interest:0"}
	all := proctest.Values(proctest.Drain(w, w.Streams.Affinities))
	got := convert.All(last().Top, func(a schemas.Affinity) schemas.ID { return a.Facet })
	expect.NoDiff(t, got, want, "top")
	checkApart(t, all, cfg.EmitInterval)
}

// checkApart checks that the affinities of one user were sent at most once per interval.
func checkApart(t *testing.T, all []schemas.Affinities, every time.Duration) {
	t.Helper()
	for i := range all[1:] {
		expect.AtLeast(t, all[i+1].Time.Time().Sub(all[i].Time.Time()), every, "time until it is sent again")
	}
}

// An action that exceeds the limits of a record is undone, and later affinities must not contain it.
func TestAffinities_WithoutUndoneActions(t *testing.T) {
	t.Parallel()
	w := proctest.New(t)
	cfg := actors.DefaultConfig()
	w.StartWith("a", func(c *rows.Config) { c.MaxRecordWrites = 1000 }, actors.Group(cfg, w.Streams, deletedtest.Of()))
	begin := now().Add(time.Minute)
	act := func(after time.Duration, f schemas.Facets) {
		t.Helper()
		proctest.PublishAt(w, w.Streams.ActionsJoined, begin.Add(after), "user:eve", action("user:eve", schemas.Click, begin, after.String(), f))
		w.WaitIdle()
	}
	few, many := schemas.Facets{Author: "user:ada"}, schemas.Facets{Author: "user:ada"}
	for i := range 1000 {
		many.Interests = append(many.Interests, schemas.InterestID(fmt.Sprintf("interest:%d", i)))
	}
	act(0, few) // reads the ranking into memory
	act(2*cfg.EmitInterval, many)
	act(4*cfg.EmitInterval, few)

	all := proctest.Values(proctest.Drain(w, w.Streams.Affinities))
	if len(all) != 2 || len(all[1].Top) != 1 || math.Round(all[1].Top[0].Value) != 2 {
		t.Errorf("sent %+v, want twice the affinity for the author, last after two actions", all)
	}
}

// A tick may come up to 100 ms after its timer is due. The test sets the clock, a minute ahead of the scheduler's.
func TestAffinities_SentOnceIfActionPrecedesTick(t *testing.T) {
	cfg := actors.DefaultConfig()
	w := start(t, cfg)
	begin := now().Add(time.Minute)
	act := func(after time.Duration) {
		t.Helper()
		at := begin.Add(after)
		proctest.PublishAt(w, w.Streams.ActionsJoined, at, "user:eve",
			action("user:eve", schemas.Click, begin, after.String(), schemas.Facets{Author: "user:ada"}))
		w.WaitIdle()
	}
	tick := func(after time.Duration) {
		t.Helper()
		w.Tick(topics.Actors, "user:eve", begin.Add(after))
		w.WaitIdle()
	}
	act(0)
	act(cfg.EmitInterval / 2)                    // sets the timer for Every
	act(cfg.EmitInterval + 5*time.Millisecond)   // before the tick
	tick(cfg.EmitInterval + 50*time.Millisecond) // sends both
	act(cfg.EmitInterval + 60*time.Millisecond)  // sets the timer again
	tick(2 * cfg.EmitInterval)                   // too early for the timer
	tick(2*cfg.EmitInterval + 50*time.Millisecond)
	tick(4 * cfg.EmitInterval) // no change to send
	act(5 * cfg.EmitInterval)

	all := proctest.Values(proctest.Drain(w, w.Streams.Affinities))
	checkApart(t, all, cfg.EmitInterval)
	var sent []time.Duration
	var sums []float64
	for _, a := range all {
		sent = append(sent, a.Time.Time().Sub(begin))
		sums = append(sums, math.Round(a.Top[0].Value))
	}
	want := []time.Duration{0, cfg.EmitInterval + 50*time.Millisecond, 2*cfg.EmitInterval + 50*time.Millisecond, 5 * cfg.EmitInterval}
	expect.NoDiff(t, sent, want, "times of sending after the first action")
	expect.NoDiff(t, sums, []float64{1, 3, 4, 5}, "clicks in the sent affinities")
}

func TestEdgeWeight_ChangesInStepsAndDecays(t *testing.T) {
	cfg := actors.DefaultConfig()
	cfg.AffinityHalfLife = 2 * time.Second // decays from 6 to below 2.4 in 2.6 s
	w := start(t, cfg)
	at := now()
	liked := schemas.Facets{Author: "user:ada"}
	proctest.Publish(w, w.Streams.ActionsJoined, "user:eve",
		action("user:eve", schemas.Click, at, "1", liked),
		action("user:eve", schemas.Save, at, "2", liked),
		action("user:eve", schemas.Save, at, "3", liked))
	moves := func() (list []float32) {
		for _, r := range proctest.Drain(w, w.Streams.EdgeWeights) {
			if r.Key != "user:ada" || r.Value.User != "user:eve" || r.Value.Followee != "user:ada" {
				t.Errorf("got %+v under key %q, want an edge from user:eve to user:ada", r.Value, r.Key)
			}
			list = append(list, r.Value.Weight)
		}
		return list
	}
	w.Eventually("the weight has decayed to 1", func() bool { m := moves(); return len(m) > 0 && m[len(m)-1] == 1 })
	expect.NoDiff(t, moves(), []float32{1.5, 1}, "weights")
	all := proctest.Values(proctest.Drain(w, w.Streams.EdgeWeights))
	faded := all[1].Time.Time().Sub(at)
	expect.AtLeast(t, faded, time.Duration(math.Log2(7/2.4)*float64(cfg.AffinityHalfLife)), "time until the decay")
}

func TestTrim_RemovesWeakFacets(t *testing.T) {
	cfg := actors.DefaultConfig()
	cfg.TopAffinities, cfg.MaxAffinities = 1, 8
	cfg.EdgeWeightSteps = actors.Steps{{MinAffinity: math.Inf(-1), Weight: 1}, {MinAffinity: 0.05, Weight: 2}}
	w := start(t, cfg)
	at := now()
	for i := range 11 { // ten are kept, the eleventh trims them to eight
		verb := schemas.Save
		if i < 3 {
			verb = schemas.View
		}
		proctest.Publish(w, w.Streams.ActionsJoined, "user:eve",
			action("user:eve", verb, at, fmt.Sprint(i), schemas.Facets{Board: schemas.BoardID(fmt.Sprintf("board:%02d", i))}))
	}
	w.WaitIdle()
	weights := map[schemas.Followee]float32{}
	for _, e := range proctest.Values(proctest.Drain(w, w.Streams.EdgeWeights)) {
		weights[e.Followee] = e.Weight
	}
	expect.Equal(t, len(w.RowsOfKind(topics.Actors, "user:eve", 'f')), 8, "affinities")
	for board, weight := range weights {
		want := float32(2)
		if board < "board:03" {
			want = 1
		}
		expect.Equal(t, weight, want, "%s: weight", board)
	}
}

// Every action is emitted exactly once and counted exactly once, in any order and while members are killed.
func TestActors_ExactlyOnceThroughKills(t *testing.T) {
	t.Parallel()
	w := proctest.New(t)
	cfg := actors.DefaultConfig()
	cfg.EmitInterval = 100 * time.Millisecond
	group := actors.Group(cfg, w.Streams, deletedtest.Of())
	a := w.Start("a", group)
	const users, perUser, rounds = 8, 6, 5
	random := rand.New(rand.NewPCG(3, 4))
	base := now().Add(-time.Hour)
	want := map[schemas.UserID]float64{}
	for round := range rounds {
		for u := range users {
			user := schemas.UserID(fmt.Sprintf("user:%d", u))
			for i := range perUser {
				at := base.Add(-time.Duration(random.IntN(1000)) * time.Hour)
				want[user] += math.Exp2(-base.Sub(at).Hours() / cfg.AffinityHalfLife.Hours())
				proctest.Publish(w, w.Streams.ActionsJoined, string(user),
					action(user, schemas.Click, at, fmt.Sprint(user, round, i), schemas.Facets{Board: "board:a"}))
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
	seen := map[string]bool{}
	for _, e := range proctest.Values(proctest.Drain(w, w.Streams.ActionsEnriched)) {
		expect.False(t, seen[e.ID], "action %s was forwarded twice", e.ID)
		seen[e.ID] = true
	}
	expect.NoDiff(t, len(seen), users*perUser*rounds, "actions forwarded")
	last := map[schemas.UserID]float64{}
	w.Eventually("the affinities include all actions", func() bool {
		for _, a := range proctest.Values(proctest.Drain(w, w.Streams.Affinities)) {
			since := a.Time.Time().Sub(base).Hours()
			last[a.User] = a.Top[0].Value * math.Exp2(since/cfg.AffinityHalfLife.Hours())
		}
		for user, sum := range want {
			if math.Abs(last[user]-sum) > 1e-6 {
				return false
			}
		}
		return true
	})
}

func TestAction_JoinsAndEmbeddings(t *testing.T) {
	cfg := actors.DefaultConfig()
	cfg.JoinedAttributes = actors.Joins{schemas.Click: {Object: []string{"board"}, Actor: []string{"profile"}}}
	w := start(t, cfg)
	at := now()
	proctest.Publish(w, w.Streams.Users, "user:eve", profile("user:eve", schemas.Update, at, "p"))
	w.WaitIdle()
	both := schemas.Facets{Author: "user:ada", Board: "board:a"}
	for _, verb := range []schemas.Verb{schemas.Click, schemas.Save, schemas.View} {
		proctest.Publish(w, w.Streams.ActionsJoined, "user:eve", action("user:eve", verb, at, string(verb), both))
	}
	proctest.Publish(w, w.Streams.ActionsJoined, "user:bob", action("user:bob", schemas.Save, at, "without embedding", both))
	w.WaitIdle()

	got := map[string]schemas.EnrichedAction{}
	for _, a := range proctest.Values(proctest.Drain(w, w.Streams.ActionsEnriched)) {
		got[a.ID] = a
	}
	if a := got["click"]; a.ObjectAttributes.Author != "" || a.ObjectAttributes.Board != "board:a" ||
		len(a.ActorAttributes.Interests)+len(a.ActorAttributes.Embedding) > 0 || a.ActorAttributes.Attributes["profile"] != "p" {
		t.Errorf("click: got %+v, want only the board and the profile", a)
	}
	if a := got["save"]; a.ObjectAttributes.Author != "user:ada" || len(a.ActorAttributes.Embedding) != 2 {
		t.Errorf("save: got %+v, want all attributes", a)
	}
	want := []schemas.PinActor{ // views send no embedding
		{Pin: "pin:1", Time: schemas.MicrosOf(at), Embedding: []float32{1, 2}},
		{Pin: "pin:1", Time: schemas.MicrosOf(at), Embedding: []float32{1, 2}},
	}
	records := proctest.Drain(w, w.Streams.PinActors)
	expect.NoDiff(t, proctest.Values(records), want, "embeddings of actors")
	// Affinities count attributes that are not joined: 4.1 for the author, of which 1 is from the click.
	w.Eventually("the affinity for the author includes the click", func() bool {
		for _, a := range proctest.Values(proctest.Drain(w, w.Streams.Affinities)) {
			for _, top := range a.Top {
				if a.User == "user:eve" && top.Facet == "user:ada" && top.Value > 4 {
					return true
				}
			}
		}
		return false
	})
}
