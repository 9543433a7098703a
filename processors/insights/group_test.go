package insights_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/smartfeed/smartfeed/internal/experiment"
	"github.com/smartfeed/smartfeed/internal/testkit/deletedtest"
	"github.com/smartfeed/smartfeed/internal/testkit/expect"
	"github.com/smartfeed/smartfeed/internal/testkit/must"
	"github.com/smartfeed/smartfeed/internal/testkit/proctest"
	"github.com/smartfeed/smartfeed/processors/insights"
	"github.com/smartfeed/smartfeed/processors/rows"
	"github.com/smartfeed/smartfeed/schemas"
	"github.com/smartfeed/smartfeed/topics"
)

const day = 24 * time.Hour

// noon is the time of all requests. Timers fire by the broker's clock, so it is near the present.
var noon = time.Now().UTC().Truncate(day).Add(12 * time.Hour)

var today = int32(noon.Unix() / (24 * 60 * 60))

type rig struct {
	*proctest.Wire
	t       *testing.T
	deleted *deletedtest.Users
	member  *proctest.Member
}

func newRig(t *testing.T) *rig {
	t.Parallel()
	r := &rig{Wire: proctest.New(t), t: t, deleted: deletedtest.Of()}
	r.member = r.Start("a", insights.Group(insights.DefaultConfig(), r.Streams, r.deleted))
	return r
}

// did returns an action of a user, ago before noon, on a pin with the interests.
func did(user schemas.UserID, verb schemas.Verb, ago time.Duration, interests ...schemas.InterestID) *schemas.EnrichedAction {
	return &schemas.EnrichedAction{
		ID: "a", Actor: user, Verb: verb, Object: "pin:1", Timestamp: schemas.MicrosOf(noon.Add(-ago)),
		ObjectAttributes: schemas.ObjectAttributes{Facets: schemas.Facets{Interests: interests}},
	}
}

func (r *rig) act(actions ...*schemas.EnrichedAction) {
	r.t.Helper()
	for _, a := range actions {
		proctest.Publish(r.Wire, r.Streams.ActionsEnriched, string(a.Actor), a)
	}
}

// visited returns a visit of a user to the feed home, ago before noon, with the given number of new items.
func visited(user schemas.UserID, arm string, ago time.Duration, items int) *schemas.Served {
	return &schemas.Served{ID: "v", User: user, Time: schemas.MicrosOf(noon.Add(-ago)), Feed: "home", Arm: arm, Items: make([]schemas.ServedItem, items)}
}

func (r *rig) visit(visits ...*schemas.Served) {
	r.t.Helper()
	for _, v := range visits {
		proctest.Publish(r.Wire, r.Streams.Served, string(v.User), v)
	}
}

// arms returns the arms of the feed home in the last days, with the number of saves.
func (r *rig) arms(days int) map[string]experiment.Tally {
	r.t.Helper()
	all := experiment.Tallies{Verbs: []string{"save"}}
	for _, part := range r.parts(schemas.InsightRequest{Experiments: &schemas.ExperimentsRequest{Verbs: []schemas.Verb{"save"}, Days: days}}) {
		expect.True(r.t, part.Experiments != nil, "a part has experiments")
		for _, t := range part.Experiments {
			all.Of(t.Feed, t.Arm).Merge(t)
		}
	}
	arms := map[string]experiment.Tally{}
	for _, t := range all.All {
		expect.Equal(r.t, t.Feed, "home", "feed")
		arms[t.Arm] = t
	}
	return arms
}

// parts returns the parts of all partitions.
func (r *rig) parts(q schemas.InsightRequest) []*schemas.InsightPart {
	r.t.Helper()
	q.Today = today
	reader := insights.NewReader(r.member.View(topics.Insights), r.Kafka.Partitions, r.deleted)
	all := make([]*schemas.InsightPart, r.Kafka.Partitions)
	for q.Partition = range r.Kafka.Partitions {
		r.Eventually("a part", func() bool {
			part, err := reader.Insight(r.t.Context(), q)
			if !errors.Is(err, schemas.ErrNotOwner) {
				must.OK(r.t, err)
			}
			all[q.Partition] = part
			return err == nil
		})
	}
	return all
}

// xd28s returns the number of users by the number of their days.
func (r *rig) xd28s() map[int]int {
	r.t.Helper()
	users := map[int]int{}
	for _, part := range r.parts(schemas.InsightRequest{Xd28s: true}) {
		for _, x := range part.Xd28s {
			if x.Users > 0 {
				users[x.Days] += x.Users
			}
		}
	}
	return users
}

// funnel returns the number of users who reached each step.
func (r *rig) funnel(within time.Duration, days int, steps ...schemas.Verb) []int {
	r.t.Helper()
	users := make([]int, len(steps))
	request := schemas.FunnelRequest{Steps: steps, Within: schemas.Micros(within.Microseconds()), Days: days}
	for _, part := range r.parts(schemas.InsightRequest{Funnel: &request}) {
		for i, step := range part.Steps {
			users[i] += step.Users
		}
	}
	return users
}

// hours returns the actions of an interest, and those of its hour of noon.
func (r *rig) hours(interest schemas.InterestID) (all, atNoon uint64) {
	r.t.Helper()
	for _, part := range r.parts(schemas.InsightRequest{Hours: []schemas.InterestID{interest}}) {
		for _, p := range part.Hours {
			all += p.Actions
			atNoon += p.Hours[(noon.Weekday()+6)%7][12]
		}
	}
	return all, atNoon
}

// Each action counts once, although the member is killed and reads records again.
func TestInsights_CountEachActionOnce(t *testing.T) {
	r := newRig(t)
	r.act(
		did("user:1", "view", 0, "interest:a", "interest:a"), did("user:1", "save", time.Hour, "interest:b", "interest:a"),
		did("user:2", "view", 40*day), did("user:2", "save", day),
	)
	r.WaitIdle()
	r.member.Kill()
	r.member.Restart()
	r.act(did("user:1", "view", 2*time.Hour, "interest:a"), did("user:3", "view", 0, "interest:a"))
	r.WaitIdle()

	var growth [2]schemas.GrowthDay
	cohort := schemas.Cohort{Active: []int{0}}
	for _, part := range r.parts(schemas.InsightRequest{Growth: 2}) {
		for i, d := range part.Growth {
			growth[i].Day = d.Day
			growth[i].Add(d)
		}
	}
	for _, part := range r.parts(schemas.InsightRequest{Retention: 1}) {
		cohort.Add(part.Cohorts[0])
	}
	want := [2]schemas.GrowthDay{
		{Day: noon.Add(-day).Format(time.DateOnly), Daily: 1, Active: 1, Resurrected: 1},
		{Day: noon.Format(time.DateOnly), New: 2, Daily: 2, Active: 3},
	}
	expect.NoDiff(t, growth, want, "growth")
	expect.Equal(t, [2]int{cohort.Users, cohort.Active[0]}, [2]int{2, 2}, "cohort of this week: users and active users")
	expect.NoDiff(t, r.xd28s(), map[int]int{1: 3}, "xd28s: three users of one day")
	expect.NoDiff(t, r.funnel(90*time.Minute, 3, "save", "view"), []int{2, 1}, "funnel: 2 users who saved, one of whom viewed later")
	if all, atNoon := r.hours("interest:a"); all != 4 || atNoon != 2 {
		t.Errorf("actions of interest:a: %d, %d at noon, want 4 and 2", all, atNoon)
	}
}

// The arms have the visits of their users, and the saves from the first visit on, in any order of arrival and after a kill.
func TestExperiments_CountVisitsAndLaterActions(t *testing.T) {
	r := newRig(t)
	r.act(did("user:1", "save", 3*time.Hour), did("user:1", "save", time.Hour), did("user:1", "view", time.Hour), did("user:2", "save", 0), did("user:4", "save", 0))
	r.visit(visited("user:1", "", 2*time.Hour, 3), visited("user:1", "", 26*time.Hour, 5), visited("user:2", "b", time.Hour, 4), visited("user:3", "b", 0, 2), visited("user:3", "b", 0, 0))
	r.WaitIdle()
	r.member.Kill()
	r.member.Restart()
	r.visit(visited("user:1", "b", time.Minute, 1))
	r.act(did("user:1", "save", 0))
	r.WaitIdle()
	sums := func(pairs ...[2]float64) (s experiment.Sums) {
		for _, p := range pairs {
			s.Add(p[0], p[1])
		}
		return s
	}
	tally := func(arm string, users, visits, items, saves int, perItem, perVisit experiment.Sums) experiment.Tally {
		return experiment.Tally{
			Feed: "home", Count: experiment.Count{Arm: arm, Users: users, Visits: visits, Items: items},
			Actions: []experiment.ActionTally{{Verb: "save", Count: saves, PerItem: perItem, PerVisit: perVisit}},
		}
	}
	b := tally("b", 3, 3, 7, 2, sums([2]float64{1, 1}, [2]float64{1, 4}, [2]float64{0, 2}), sums([2]float64{1, 1}, [2]float64{1, 1}, [2]float64{0, 1}))
	for days, control := range map[int]experiment.Tally{
		1: tally("", 1, 1, 3, 2, sums([2]float64{2, 3}), sums([2]float64{2, 1})),
		2: tally("", 1, 2, 8, 3, sums([2]float64{3, 8}), sums([2]float64{3, 2})),
	} {
		expect.NoDiff(t, r.arms(days), map[string]experiment.Tally{"": control, "b": b}, "%d days", days)
	}
	expect.NoDiff(t, r.funnel(24*time.Hour, 2, "save", "view"), []int{3, 1}, "funnel: visits are no steps")
	proctest.Publish(r.Wire, r.Streams.UsersDeleted, "user:1", &schemas.DeletedUser{User: "user:1", Time: 7})
	r.WaitIdle()
	r.visit(visited("user:1", "", 0, 9))
	r.WaitIdle()
	if arms := r.arms(2); len(arms) != 1 || arms["b"].Users != 2 {
		t.Errorf("after a deletion: got %+v, want the two other users", arms)
	}
	if names, timers := r.traces("user:1"); len(names) > 0 || timers > 0 {
		t.Errorf("after a deletion: rows %q and %d timers, want none", names, timers)
	}
}

// A funnel reads the actions of many users and days in order, whatever the order of their arrival. The scan takes several
// snapshots.
func TestFunnel_ReadsUserByUser(t *testing.T) {
	r := newRig(t)
	random := rand.New(rand.NewPCG(1, 2))
	steps, days, within := []schemas.Verb{"view", "click", "save"}, 9, 30*time.Hour
	acted := map[schemas.UserID][]*schemas.EnrichedAction{}
	for range 300 {
		user := schemas.UserID(fmt.Sprint("user:", random.IntN(2000)))
		for range 1 + random.IntN(20) {
			ago := time.Duration(random.IntN(24*(days+2)*60)) * time.Minute // some before the requested days
			a := did(user, append(steps, "hide")[random.IntN(4)], ago)
			r.act(a)
			if int32(a.Timestamp/schemas.Micros(day.Microseconds())) > today-int32(days) {
				acted[user] = append(acted[user], a)
			}
		}
	}
	r.WaitIdle()
	want := make([]int, len(steps))
	for _, actions := range acted {
		for i := range longest(actions, steps, within) {
			want[i]++
		}
	}
	expect.NoDiff(t, r.funnel(within, days, steps...), want, "funnel")
	if want[0] >= len(acted) || want[1] >= want[0] || want[2] >= want[1] || want[2] == 0 {
		t.Errorf("%v of %d users: want fewer at each step", want, len(acted))
	}
}

// longest returns how many steps any selection of a user's actions reaches.
func longest(actions []*schemas.EnrichedAction, steps []schemas.Verb, within time.Duration) (best int) {
	slices.SortStableFunc(actions, func(a, b *schemas.EnrichedAction) int { return int(a.Timestamp - b.Timestamp) })
	for i, first := range actions {
		reached := 0
		for _, a := range actions[i:] {
			if reached < len(steps) && a.Verb == steps[reached] && a.Timestamp-first.Timestamp <= schemas.Micros(within.Microseconds()) {
				reached++
			} else if reached == 0 {
				break
			}
		}
		best = max(best, reached)
	}
	return best
}

// If a user has more actions on a day than a person can, the remaining ones are not in the sequence. They count otherwise. An
// action rewrites no more than a block of the sequence.
func TestSequence_IsBounded(t *testing.T) {
	r := newRig(t)
	verb, late := schemas.Verb(strings.Repeat("v", 60)), schemas.Verb(strings.Repeat("l", 60))
	var actions []*schemas.EnrichedAction
	for range 1500 {
		actions = append(actions, did("user:robot", verb, time.Minute, "interest:a"))
	}
	proctest.Publish(r.Wire, r.Streams.ActionsEnriched, "user:robot", actions...)
	r.act(did("user:robot", "save", day), did("user:robot", late, 0))
	r.WaitIdle()
	largest, total := 0, 0
	for _, row := range r.Rows(topics.Insights, "") {
		largest, total = max(largest, len(row.Value)), total+len(row.Value)
	}
	if largest > 512 || total > 66<<10 || total < 55<<10 {
		t.Errorf("rows of at most %d bytes, %d bytes in total: want blocks of at most 512, and nearly 64 KiB", largest, total)
	}
	expect.NoDiff(t, r.funnel(2*day, 2, "save", verb, late), []int{1, 1, 0}, "funnel: the last action is dropped")
	all, _ := r.hours("interest:a")
	expect.Equal(t, all, 1500, "actions of the interest")
}

// traces returns the names of a user's rows, and the number of the user's timers.
func (r *rig) traces(user string) (names []string, timers int) {
	set := map[string]bool{}
	for _, rec := range r.Records(topics.TableOf(topics.Insights)) {
		set[string(rec.Key)] = rec.Value != nil
	}
	for key, isSet := range set {
		switch {
		case !isSet || !strings.Contains(key+"\x00", user+"\x00"):
		case strings.HasPrefix(key, "\x00t"):
			timers++
		default:
			_, name, _ := strings.Cut(key, "\x00")
			names = append(names, name[:1])
		}
	}
	slices.Sort(names)
	return names, timers
}

// A deleted user has no rows and no timers, and later actions restore none. The actions of interests stay, and another user
// whose id has the same beginning.
func TestDeletion_RemovesAllRowsOfTheUser(t *testing.T) {
	r := newRig(t)
	for _, ago := range []time.Duration{30 * time.Hour, 0, 60 * time.Hour} { // an older day comes last
		r.act(did("user:1", "save", ago, "interest:a"), did("user:10", "save", ago, "interest:a"))
	}
	r.WaitIdle()
	if names, timers := r.traces("user:1"); len(names) != 4 || timers != 1 {
		t.Fatalf("before the deletion: rows %q and %d timers, want the days and three sequences with one timer", names, timers)
	}
	proctest.Publish(r.Wire, r.Streams.UsersDeleted, "user:1", &schemas.DeletedUser{User: "user:1", Time: 7})
	r.WaitIdle()
	r.act(did("user:1", "save", 0, "interest:a"))
	r.WaitIdle()
	if names, timers := r.traces("user:1"); len(names) != 0 || timers != 0 {
		t.Errorf("after the deletion: rows %q and %d timers, want none", names, timers)
	}
	if names, timers := r.traces("user:10"); len(names) != 4 || timers != 1 {
		t.Errorf("another user: rows %q and %d timers, want four and one", names, timers)
	}
	expect.NoDiff(t, r.xd28s(), map[int]int{3: 1}, "xd28s")
	all, _ := r.hours("interest:a")
	expect.Equal(t, all, 6, "actions of the interest before the deletion")
}

// A user in the set of deleted users is in no answer, even before the rows are deleted.
func TestReader_SkipsDeletedUsers(t *testing.T) {
	r := newRig(t)
	r.act(did("user:1", "save", 0), did("user:2", "save", 0))
	r.WaitIdle()
	r.deleted.Note("user:1", 7)
	expect.NoDiff(t, r.xd28s(), map[int]int{1: 1}, "xd28s")
	expect.NoDiff(t, r.funnel(time.Hour, 1, "save"), []int{1}, "funnel")
}

// Sequences are deleted after their retention, one day after the other. A user has one timer.
func TestSequences_Expire(t *testing.T) {
	r := newRig(t)
	r.act(did("user:1", "save", 0), did("user:1", "save", 3*day), did("user:1", "save", 2*day))
	r.WaitIdle()
	retention := insights.DefaultConfig().SequenceRetention
	for _, c := range []struct {
		at     time.Duration // after noon
		names  string
		timers int
	}{
		{-4*day + retention, "sssu", 1}, {-2*day + retention, "ssu", 1}, {-day + retention, "su", 1}, {day + retention, "u", 0},
	} {
		r.Tick(topics.Insights, rows.CommonOwner(topics.Partition("user:1", r.Kafka.Partitions), r.Kafka.Partitions), noon.Add(c.at))
		r.WaitIdle()
		if names, timers := r.traces("user:1"); strings.Join(names, "") != c.names || timers != c.timers {
			t.Errorf("%s after noon: rows %q and %d timers, want %s and %d", c.at, names, timers, c.names, c.timers)
		}
	}
}

// Pages of the interests are in the order of their ids.
func TestReader_PagesOfInterests(t *testing.T) {
	r := newRig(t)
	var all []schemas.InterestID
	for i := range 2500 { // more than a snapshot has
		all = append(all, schemas.InterestID(fmt.Sprintf("interest:%04d", i)))
	}
	r.act(did("user:1", "save", 0, all...), did("user:1", "save", 0, all[7]))
	r.WaitIdle()
	partition := topics.Partition("user:1", r.Kafka.Partitions)
	page := func(from schemas.InterestID, limit int) []schemas.InterestTotal {
		return r.parts(schemas.InsightRequest{Totals: &schemas.TotalsRequest{From: from, Limit: limit}})[partition].Totals
	}
	want := []schemas.InterestTotal{{Interest: all[6], Actions: 1}, {Interest: all[7], Actions: 2}}
	expect.NoDiff(t, page(all[5]+"\x00", 2), want, "a page")
	if got := page("", 5000); len(got) != len(all) || got[2499].Interest != all[2499] {
		t.Errorf("%d interests, want all %d", len(got), len(all))
	}
}

func TestReader_Errors(t *testing.T) {
	r := newRig(t)
	r.act(did("user:1", "save", 0))
	r.WaitIdle()
	reader := insights.NewReader(r.member.View(topics.Insights), r.Kafka.Partitions, r.deleted)
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	request := schemas.InsightRequest{Xd28s: true}
	expect.Is(t, expect.ErrorOf(reader.Insight(ended, request)), context.Canceled, "after the deadline")
	r.member.Stop()
	expect.Is(t, expect.ErrorOf(reader.Insight(t.Context(), request)), schemas.ErrNotOwner, "partition of no process")
	must.OK(t, insights.DefaultConfig().Validate())
	expect.Error(t, (insights.Config{}).Validate(), "sequence_retention: 0s", "a zero configuration")
}

// A record whose key is not its user could be in the partition of another user.
func TestInsights_RejectKeysOfOthers(t *testing.T) {
	r := newRig(t)
	proctest.Publish(r.Wire, r.Streams.ActionsEnriched, "user:2", did("user:1", "save", 0))
	proctest.Publish(r.Wire, r.Streams.UsersDeleted, "user:2", &schemas.DeletedUser{User: "user:1", Time: 7})
	proctest.Publish(r.Wire, r.Streams.Served, "user:2", visited("user:1", "", 0, 1))
	r.WaitIdle()
	reasons := r.DeadLetterReasons()
	if len(reasons) != 3 || !strings.Contains(reasons[0], `want the actor "user:1"`) || !strings.Contains(reasons[1], `want "user:1"`) || !strings.Contains(reasons[2], `want the user "user:1"`) {
		t.Errorf("dead letters: %q", reasons)
	}
}
