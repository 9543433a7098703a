package oracle

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/smartfeed/smartfeed/internal/testkit/must"
	"github.com/smartfeed/smartfeed/internal/tools/lastfm"
	"github.com/smartfeed/smartfeed/schemas"
)

const second schemas.Micros = 1e6

// event returns the common fields of an event. Its id consists of the time, the actor, the verb and the object.
func event(at int, actor schemas.UserID, verb schemas.Verb, object schemas.ID) schemas.Event {
	return schemas.Event{
		ID:     fmt.Sprintf("%d %s %s %s", at, actor, verb, object),
		Time:   schemas.Micros(at) * second,
		Actor:  actor,
		Verb:   verb,
		Object: object,
	}
}

func edgeEvent(at int, actor schemas.UserID, verb schemas.Verb, other schemas.ID) schemas.Line {
	e := &schemas.FollowEvent{Event: event(at, actor, verb, other)}
	return schemas.NewLine(e)
}

func pinEvent(at int, actor schemas.UserID, verb schemas.Verb, id schemas.ID, change ...func(*schemas.PinEvent)) schemas.Line {
	e := &schemas.PinEvent{Event: event(at, actor, verb, id)}
	for _, f := range change {
		f(e)
	}
	return schemas.NewLine(e)
}

func on(board schemas.BoardID, interests ...schemas.InterestID) func(*schemas.PinEvent) {
	return func(e *schemas.PinEvent) { e.Board, e.Interests = board, interests }
}

func titled(title string) func(*schemas.PinEvent) {
	return func(e *schemas.PinEvent) { e.Title, e.Attributes = title, map[string]string{"title": title} }
}

func embedded(vector ...float32) func(*schemas.PinEvent) {
	return func(e *schemas.PinEvent) { e.Embedding = vector }
}

func action(at int, actor schemas.UserID, verb schemas.Verb, pin schemas.ID) schemas.Line {
	e := &schemas.ActionEvent{Event: event(at, actor, verb, pin)}
	return schemas.NewLine(e)
}

func userEvent(at int, user schemas.UserID, verb schemas.Verb) schemas.Line {
	e := &schemas.UserEvent{Event: event(at, user, verb, schemas.ID(user))}
	return schemas.NewLine(e)
}

func productOf(lines ...schemas.Line) *Product {
	p := New(Config{HalfLife: time.Hour})
	for _, l := range lines {
		p.Apply(l)
	}
	return p
}

func pinsOf(items []schemas.PoolItem) []schemas.PinID {
	ids := []schemas.PinID{}
	for _, item := range items {
		ids = append(ids, item.Pin)
	}
	return ids
}

func TestPool_ReturnsVisibleCandidates(t *testing.T) {
	follow := edgeEvent(1, "user:u", schemas.Follow, "user:a")
	pin := pinEvent(10, "user:a", schemas.Create, "pin:1", on("board:b", "interest:i", "interest:j"))
	both := []schemas.Source{schemas.Following, schemas.FromInterest}
	tests := []struct {
		name  string
		lines []schemas.Line
		want  []schemas.Source // sources that deliver pin:1 to user:u
	}{
		{"nothing followed", []schemas.Line{pin}, nil},
		{"the author followed", []schemas.Line{follow, pin}, both[:1]},
		{"the board followed", []schemas.Line{pin, edgeEvent(1, "user:u", schemas.Follow, "board:b")}, both[:1]},
		{"an interest followed", []schemas.Line{pin, edgeEvent(1, "user:u", schemas.Follow, "interest:j")}, both[1:]},
		{"author and interest", []schemas.Line{follow, pin, edgeEvent(1, "user:u", schemas.Follow, "interest:i")}, both},
		{"unfollowed", []schemas.Line{follow, pin, edgeEvent(2, "user:u", schemas.Unfollow, "user:a")}, nil},
		{"unfollowed before", []schemas.Line{follow, pin, edgeEvent(0, "user:u", schemas.Unfollow, "user:a")}, both[:1]},
		{"unfollowed at the same time", []schemas.Line{edgeEvent(1, "user:u", schemas.Unfollow, "user:a"), follow, pin}, nil},
		{"author blocked", []schemas.Line{follow, pin, edgeEvent(0, "user:u", schemas.Block, "user:a")}, nil},
		{"author unblocked", []schemas.Line{follow, pin, edgeEvent(3, "user:u", schemas.Unblock, "user:a"),
			edgeEvent(2, "user:u", schemas.Block, "user:a")}, both[:1]},
		{"blocked by the author", []schemas.Line{follow, pin, edgeEvent(0, "user:a", schemas.Block, "user:u")}, nil},
		{"board blocked", []schemas.Line{follow, pin, edgeEvent(0, "user:u", schemas.Block, "board:b")}, nil},
		{"interest blocked", []schemas.Line{follow, pin, edgeEvent(0, "user:u", schemas.Block, "interest:j")}, nil},
		{"another interest blocked", []schemas.Line{follow, pin, edgeEvent(0, "user:u", schemas.Block, "interest:k")}, both[:1]},
		{"block by another user", []schemas.Line{follow, pin, edgeEvent(0, "user:x", schemas.Block, "user:a")}, both[:1]},
		{"pin deleted", []schemas.Line{follow, pin, pinEvent(2, "user:a", schemas.Delete, "pin:1")}, nil},
		{"pin deleted before its create arrived", []schemas.Line{pinEvent(2, "user:a", schemas.Delete, "pin:1"), follow, pin}, nil},
		{"author deleted", []schemas.Line{follow, pin, userEvent(2, "user:a", schemas.Delete)}, nil},
		{"receiver deleted", []schemas.Line{follow, pin, userEvent(2, "user:u", schemas.Delete)}, nil},
		{"follow of a deleted user", []schemas.Line{userEvent(0, "user:u", schemas.Delete), follow, pin}, nil},
		{"only an update", []schemas.Line{follow, pinEvent(3, "user:a", schemas.Update, "pin:1")}, nil},
		{"moved away", []schemas.Line{pin, edgeEvent(1, "user:u", schemas.Follow, "board:b"),
			pinEvent(11, "user:a", schemas.Update, "pin:1", on("board:c"))}, nil},
		{"moved here", []schemas.Line{pin, edgeEvent(1, "user:u", schemas.Follow, "board:c"),
			pinEvent(11, "user:a", schemas.Update, "pin:1", on("board:c"))}, both[:1]},
		{"an older update", []schemas.Line{pin, edgeEvent(1, "user:u", schemas.Follow, "board:c"),
			pinEvent(9, "user:a", schemas.Update, "pin:1", on("board:c"))}, nil},
		{"an earlier create by another author", []schemas.Line{follow, pin, pinEvent(5, "user:x", schemas.Create, "pin:1")}, nil},
		{"a later create by another author", []schemas.Line{follow, pin, pinEvent(15, "user:x", schemas.Create, "pin:1")}, both[:1]},
		{"an update by another user", []schemas.Line{follow, pin, pinEvent(15, "user:x", schemas.Update, "pin:1")}, both[:1]},
		{"the same id with another body", []schemas.Line{follow, pin, rebodied(pin, on("board:z", "interest:z")),
			edgeEvent(1, "user:u", schemas.Follow, "interest:z")}, both[:1]},
		{"the same id with another, later body", []schemas.Line{follow, pin, edgeEvent(1, "user:u", schemas.Follow, "interest:z"),
			rebodied(pin, func(e *schemas.PinEvent) { e.Time, e.Interests = 20*second, []schemas.InterestID{"interest:z"} })}, both[:1]},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			p := productOf(test.lines...)
			for _, source := range both {
				want := []schemas.PinID{}
				if slices.Contains(test.want, source) {
					want = append(want, "pin:1")
				}
				if got := pinsOf(p.Pool("user:u", source, 10)); !slices.Equal(got, want) {
					t.Errorf("pool %s: %v, want %v", source, got, want)
				}
				if got := p.Visible("user:u", source, "pin:1"); got != (len(want) > 0) {
					t.Errorf("visible from %s: %t", source, got)
				}
			}
		})
	}
}

// rebodied returns a pin event with the same id as another and a different body.
func rebodied(line schemas.Line, change func(*schemas.PinEvent)) schemas.Line {
	e := *line.Event.(*schemas.PinEvent)
	change(&e)
	return schemas.Line{Stream: line.Stream, Event: &e, Key: line.Key}
}

func TestPool_OrdersByScore(t *testing.T) {
	p := productOf(
		edgeEvent(1, "user:u", schemas.Follow, "user:a"),
		pinEvent(3600, "user:a", schemas.Create, "pin:old"),
		pinEvent(7200, "user:a", schemas.Create, "pin:tie-2"),
		pinEvent(7200, "user:a", schemas.Create, "pin:tie-1"),
		pinEvent(9000, "user:a", schemas.Create, "pin:seen"),
		pinEvent(3600, "user:a", schemas.Create, "pin:good", titled("good")),
		pinEvent(9999, "user:a", schemas.Update, "pin:old"),
	)
	p.cfg.Quality = func(e *schemas.PinEvent) float64 {
		if e.Title == "good" {
			return 2
		}
		return 1
	}
	p.Serve("user:u", "pin:seen")
	var got []string
	for _, item := range p.Pool("user:u", schemas.Following, 10) {
		got = append(got, fmt.Sprintf("%s %.3f %s", item.Pin, item.PoolScore, item.Author))
	}
	// One half-life, here an hour, equals a quality of 2: both add ln 2 to the score.
	want := []string{"pin:good 1.386 user:a", "pin:tie-1 1.386 user:a", "pin:tie-2 1.386 user:a", "pin:old 0.693 user:a"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("pool (-want +got):\n%s", diff)
	}
	if got := p.Pool("user:u", schemas.Following, 2); len(got) != 2 || got[1].Pin != "pin:tie-1" {
		t.Errorf("the best two: %v", pinsOf(got))
	}
}

func TestPool_OmitsOwnPins(t *testing.T) {
	p := productOf(
		edgeEvent(1, "user:u", schemas.Follow, "interest:i"),
		edgeEvent(1, "user:u", schemas.Follow, "user:u"),
		pinEvent(2, "user:u", schemas.Create, "pin:1", on("", "interest:i")),
	)
	for _, source := range []schemas.Source{schemas.Following, schemas.FromInterest} {
		if got := p.Pool("user:u", source, 10); len(got) != 0 {
			t.Errorf("own pins from %s: %v", source, got)
		}
	}
}

func TestVisibleMaterialized_NeedsEdgeOfAnySource(t *testing.T) {
	p := productOf(
		edgeEvent(1, "user:u", schemas.Follow, "interest:i"),
		pinEvent(2, "user:a", schemas.Create, "pin:1", on("", "interest:i")),
		pinEvent(2, "user:a", schemas.Create, "pin:2"),
		pinEvent(2, "user:b", schemas.Create, "pin:3"),
		edgeEvent(3, "user:u", schemas.Block, "user:b"),
	)
	tests := []struct {
		name   string
		source schemas.Source
		pin    schemas.PinID
		want   bool
	}{
		{"by an edge of another source", schemas.Following, "pin:1", true},
		{"by no edge", schemas.Following, "pin:2", false},
		{"related needs none", schemas.Related, "pin:2", true},
		{"blocked, though related", schemas.Related, "pin:3", false},
		{"unknown pin", schemas.Related, "pin:9", false},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if got := p.VisibleMaterialized("user:u", test.source, test.pin); got != test.want {
				t.Errorf("visible %t, want %t", got, test.want)
			}
		})
	}
}

func TestPool_ReturnsOffers(t *testing.T) {
	offer := func(id string, at int, candidates ...schemas.Candidate) schemas.Line {
		e := &schemas.Offer{ID: id, Time: schemas.Micros(at), User: "user:u", Source: "ads", Candidates: candidates}
		return schemas.NewLine(e)
	}
	by := func(pin schemas.PinID, author schemas.UserID, score schemas.PoolScore) schemas.Candidate {
		return schemas.Candidate{Pin: pin, PoolScore: score, Facets: schemas.Facets{Author: author}}
	}
	p := productOf(
		offer("2", 2, by("pin:1", "user:a", 1), by("pin:2", "user:a", 5)),
		offer("1", 1, by("pin:1", "user:u", 7), by("pin:3", "user:b", 9), by("pin:4", "user:c", 9)),
		pinEvent(1, "user:c", schemas.Delete, "pin:4"),
		edgeEvent(1, "user:b", schemas.Block, "user:u"),
	)
	if got, want := pinsOf(p.Pool("user:u", "ads", 9)), []schemas.PinID{"pin:1", "pin:2"}; !slices.Equal(got, want) {
		t.Errorf("offered %v, want %v: newest facets, best score, neither blocked nor deleted", got, want)
	}
	if got := p.Pool("user:u", "other", 9); len(got) != 0 {
		t.Errorf("offered by another source: %v", got)
	}
}

func TestPin_ReturnsCurrentState(t *testing.T) {
	p := productOf(
		pinEvent(5, "user:x", schemas.Update, "pin:1", titled("before it was created")),
		pinEvent(20, "user:b", schemas.Create, "pin:1", titled("a second create")),
		pinEvent(10, "user:a", schemas.Create, "pin:1", titled("the first"), on("board:b")),
		pinEvent(30, "user:c", schemas.Update, "pin:1", titled("final"), on("board:c", "interest:i")),
		pinEvent(25, "user:c", schemas.Update, "pin:1", titled("late")),
	)
	got, ok := p.Pin("pin:1")
	want := Pin{
		ID:      "pin:1",
		Facets:  schemas.Facets{Author: "user:a", Board: "board:c", Interests: []schemas.InterestID{"interest:i"}},
		Created: 10 * second,
		Quality: 1,
		Title:   "final",
	}
	if diff := cmp.Diff(want, got); !ok || diff != "" {
		t.Errorf("pin (-want +got):\n%s", diff)
	}
	p.Apply(pinEvent(1, "user:z", schemas.Delete, "pin:1"))
	if _, ok := p.Pin("pin:1"); ok {
		t.Error("a deleted pin exists")
	}
}

func TestList_OrdersNewestFirst(t *testing.T) {
	p := productOf(
		pinEvent(1, "user:a", schemas.Create, "pin:1", on("board:b", "interest:i")),
		pinEvent(3, "user:a", schemas.Create, "pin:3", on("", "interest:i")),
		pinEvent(2, "user:c", schemas.Create, "pin:22", on("", "interest:i")),
		pinEvent(2, "user:c", schemas.Create, "pin:2", on("", "interest:i")),
		pinEvent(4, "user:c", schemas.Create, "pin:4", on("board:b")),
		pinEvent(5, "user:c", schemas.Update, "pin:4", on("")),
		pinEvent(6, "user:d", schemas.Create, "pin:6", on("", "interest:i")),
		pinEvent(7, "user:d", schemas.Delete, "pin:6"),
	)
	tests := []struct {
		followee schemas.Followee
		want     []schemas.PinID
	}{
		{"interest:i", []schemas.PinID{"pin:3", "pin:2", "pin:22", "pin:1"}},
		{"board:b", []schemas.PinID{"pin:1"}},
		{"user:a", []schemas.PinID{"pin:3", "pin:1"}},
		{"user:d", []schemas.PinID{}},
	}
	for _, test := range tests {
		t.Run(string(test.followee), func(t *testing.T) {
			if got := p.List(test.followee); !slices.Equal(got, test.want) {
				t.Errorf("list %v, want %v", got, test.want)
			}
		})
	}
}

func TestEdges(t *testing.T) {
	p := productOf(
		edgeEvent(1, "user:u", schemas.Follow, "user:a"),
		edgeEvent(2, "user:u", schemas.Unfollow, "user:a"),
		edgeEvent(3, "user:u", schemas.Block, "user:a"),
		edgeEvent(4, "user:u", schemas.Follow, "interest:i"),
		edgeEvent(5, "user:b", schemas.Block, "user:u"),
		edgeEvent(6, "user:b", schemas.Unblock, "user:u"),
	)
	want := []schemas.Edge{
		{User: "user:u", Other: "interest:i", Kind: schemas.FollowEdge, Live: true, Time: 4 * second},
		{User: "user:u", Other: "user:a", Kind: schemas.BlockEdge, Live: true, Time: 3 * second},
		{User: "user:u", Other: "user:a", Kind: schemas.FollowEdge, Live: false, Time: 2 * second},
		{User: "user:u", Other: "user:b", Kind: schemas.BlockedEdge, Live: false, Time: 6 * second},
	}
	if diff := cmp.Diff(want, p.Edges("user:u")); diff != "" {
		t.Errorf("edges (-want +got):\n%s", diff)
	}
}

func TestProduct_ListsUsersAndPins(t *testing.T) {
	p := productOf(
		userEvent(1, "user:b", schemas.Update),
		userEvent(1, "user:c", schemas.Delete),
		edgeEvent(1, "user:a", schemas.Follow, "user:never-acted"),
		pinEvent(1, "user:d", schemas.Create, "pin:1"),
		pinEvent(1, "user:d", schemas.Update, "pin:2"),
		pinEvent(1, "user:c", schemas.Create, "pin:3"),
	)
	if got, want := p.Users(), []schemas.UserID{"user:a", "user:b", "user:d"}; !slices.Equal(got, want) {
		t.Errorf("users %v, want %v", got, want)
	}
	if got, want := p.Pins(), schemas.PinID("pin:1"); len(got) != 1 || got[0].ID != want {
		t.Errorf("pins %v, want %v alone", got, want)
	}
}

func TestActions_JoinPinVersion(t *testing.T) {
	titles := func(lines ...schemas.Line) []string {
		p := productOf(lines...)
		p.StopWaiting()
		titles := []string{}
		for _, a := range p.Actions("user:u") {
			titles = append(titles, a.ObjectAttributes.Attributes["title"])
		}
		return titles
	}
	first := pinEvent(10, "user:a", schemas.Create, "pin:1", titled("first"))
	second := pinEvent(20, "user:a", schemas.Update, "pin:1", titled("second"))
	var nine []schemas.Line
	for i := range 9 {
		nine = append(nine, pinEvent(10+i, "user:a", schemas.Update, "pin:1", titled(fmt.Sprint(i))))
	}
	click := func(at int) schemas.Line { return action(at, "user:u", schemas.Click, "pin:1") }
	tests := []struct {
		name  string
		lines []schemas.Line
		want  []string
	}{
		{"between two versions", []schemas.Line{second, first, click(15)}, []string{"first"}},
		{"at the moment of a version", []schemas.Line{first, second, click(20)}, []string{"second"}},
		{"before the first", []schemas.Line{first, second, click(5)}, []string{"first"}},
		{"a version that arrives later", []schemas.Line{first, click(30), second}, []string{"first"}},
		{"waited", []schemas.Line{click(30), first, second}, []string{"first"}},
		{"no pin arrives", []schemas.Line{click(30)}, []string{""}},
		{"the ninth version is forgotten", append(nine, click(10)), []string{"1"}},
		{"before its create", []schemas.Line{pinEvent(1, "user:a", schemas.Update, "pin:1", titled("early")), click(2)}, []string{"early"}},
		{"repeated", []schemas.Line{first, click(15), click(15)}, []string{"first"}},
		{"repeated while waiting", []schemas.Line{click(15), click(15), first}, []string{"first"}},
		{"no actor", []schemas.Line{first, action(15, "", schemas.Click, "pin:1")}, []string{}},
		{"deleted pin", []schemas.Line{first, pinEvent(2, "user:a", schemas.Delete, "pin:1"), click(15)}, []string{}},
		{"deleted while waiting", []schemas.Line{click(15), pinEvent(2, "user:a", schemas.Delete, "pin:1")}, []string{}},
		{"deleted actor", []schemas.Line{first, userEvent(2, "user:u", schemas.Delete), click(15)}, []string{}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if got := titles(test.lines...); !slices.Equal(got, test.want) {
				t.Errorf("joined with %q, want %q", got, test.want)
			}
		})
	}
}

func TestActions_JoinActorAttributes(t *testing.T) {
	profile := func(id string, at int, city string) schemas.Line {
		line := userEvent(at, "user:u", schemas.Update)
		e := line.Event.(*schemas.UserEvent)
		e.ID, e.Attributes = id, map[string]string{"city": city}
		return line
	}
	p := productOf(
		pinEvent(1, "user:a", schemas.Create, "pin:1"),
		profile("a", 10, "Bern"), profile("b", 5, "older"), profile("a", 11, "another body"),
		action(2, "user:u", schemas.Click, "pin:1"),
	)
	if got := p.Actions("user:u")[0].ActorAttributes.Attributes["city"]; got != "Bern" {
		t.Errorf("city %q, want Bern: newest known, whatever the action's time", got)
	}
}

func TestItemCounts_CountsByStep(t *testing.T) {
	p := productOf(
		pinEvent(1, "user:a", schemas.Create, "pin:1"),
		action(299, "user:u", schemas.Click, "pin:1"),
		action(300, "user:u", schemas.Click, "pin:1"),
		action(301, "user:v", schemas.Click, "pin:1"),
		action(599, "user:v", schemas.Save, "pin:1"),
		action(-1, "user:v", schemas.Save, "pin:1"),
	)
	p.Impress("pin:1", 600*second)
	want := []schemas.ItemCounts{
		{Pin: "pin:1", Start: -300 * second, Counts: map[string]int64{"save": 1}},
		{Pin: "pin:1", Start: 0, Counts: map[string]int64{"click": 1}},
		{Pin: "pin:1", Start: 300 * second, Counts: map[string]int64{"click": 2, "save": 1}},
		{Pin: "pin:1", Start: 600 * second, Counts: map[string]int64{"impression": 1}},
	}
	if diff := cmp.Diff(want, p.ItemCounts("pin:1")); diff != "" {
		t.Errorf("item counts (-want +got):\n%s", diff)
	}
}

func TestMatching_SelectsActions(t *testing.T) {
	device := func(line schemas.Line, name string) schemas.Line {
		line.Event.(*schemas.ActionEvent).Attributes = map[string]string{"device": name}
		return line
	}
	p := productOf(
		pinEvent(1, "user:a", schemas.Create, "pin:1", on("board:b", "interest:i", "interest:j", "interest:i"), embedded(1, 3)),
		pinEvent(1, "user:b", schemas.Create, "pin:2", on("", "interest:i"), embedded(3, 5)),
		pinEvent(1, "user:b", schemas.Create, "pin:3", embedded(9)),
		device(action(10, "user:u", schemas.Click, "pin:1"), "ios"),
		device(action(20, "user:u", schemas.Save, "pin:1"), "web"),
		device(action(30, "user:u", schemas.Click, "pin:2"), ""),
		action(40, "user:u", schemas.Click, "pin:2"),
		action(40, "user:u", schemas.Click, "pin:3"),
		action(50, "user:other", schemas.Click, "pin:1"),
	)
	all := Feature{Window: time.Minute}
	asOf := 45 * second
	t.Run("count", func(t *testing.T) {
		tests := []struct {
			name string
			f    Feature
			asOf schemas.Micros
			want int
		}{
			{"all", all, asOf, 5},
			{"of a verb", Feature{Window: time.Minute, Verbs: []schemas.Verb{schemas.Save}}, asOf, 1},
			{"the window's start is outside", Feature{Window: 10 * time.Second}, 40 * second, 2},
			{"the window's end is inside", Feature{Window: 10*time.Second + time.Millisecond}, 40 * second, 3},
			{"less than a millisecond outside is inside", Feature{Window: time.Second}, 10*second - 1, 0},
			{"less than a millisecond later", Feature{Window: time.Second}, 10*second + 999, 1},
			{"where", Feature{Window: time.Minute, Where: map[string][]string{"verbAttributes.device": {"ios", "web"}}}, asOf, 2},
			{"where empty", Feature{Window: time.Minute, Where: map[string][]string{"verbAttributes.device": {""}}}, asOf, 1},
			{"where both", Feature{Window: time.Minute, Where: map[string][]string{
				"verbAttributes.device": {"ios", "web"}, "verb": {"save"}}}, asOf, 1},
			{"where absent", Feature{Window: time.Minute, Where: map[string][]string{"objectAttributes.price": {""}}}, asOf, 0},
		}
		for _, test := range tests {
			t.Run(test.name, func(t *testing.T) {
				if got := p.Count("user:u", test.f, test.asOf); got != test.want {
					t.Errorf("count %d, want %d", got, test.want)
				}
			})
		}
	})
	t.Run("count by", func(t *testing.T) {
		tests := []struct {
			attribute string
			want      map[string]int
		}{
			{"objectAttributes.interests", map[string]int{"interest:i": 4, "interest:j": 2}},
			{"objectAttributes.board", map[string]int{"board:b": 2}},
			{"objectAttributes.author", map[string]int{"user:a": 2, "user:b": 3}},
			{"verb", map[string]int{"click": 4, "save": 1}},
			{"object", map[string]int{"pin:1": 2, "pin:2": 2, "pin:3": 1}},
			{"actor", map[string]int{"user:u": 5}},
			{"verbAttributes.device", map[string]int{"ios": 1, "web": 1, "": 1}},
			{"actorAttributes.interests", map[string]int{}},
		}
		for _, test := range tests {
			t.Run(test.attribute, func(t *testing.T) {
				if got := p.CountBy("user:u", all, test.attribute, asOf); !maps.Equal(got, test.want) {
					t.Errorf("groups %v, want %v", got, test.want)
				}
			})
		}
	})
	t.Run("last", func(t *testing.T) {
		var got []schemas.ID
		for _, a := range p.Last("user:u", all, 3, asOf) {
			got = append(got, a.Object)
		}
		if want := []schemas.ID{"pin:3", "pin:2", "pin:2"}; !slices.Equal(got, want) {
			t.Errorf("last three %v, want %v: newest first, ties by id descending", got, want)
		}
	})
	t.Run("mean embedding", func(t *testing.T) {
		if got, want := p.MeanEmbedding("user:u", all, 35*second), []float64{5.0 / 3, 11.0 / 3}; !slices.Equal(got, want) {
			t.Errorf("mean %v, want %v", got, want)
		}
		if got, want := p.MeanEmbedding("user:u", all, asOf), []float64{9}; !slices.Equal(got, want) {
			t.Errorf("mean %v, want %v: of embeddings with the newest one's length", got, want)
		}
		if got := p.MeanEmbedding("user:unknown", all, asOf); got != nil {
			t.Errorf("mean without actions: got %v, want nil", got)
		}
	})
}

// Pools, edges and lists must not depend on the order and the repetitions of events.
func TestProduct_IsIndependentOfOrder(t *testing.T) {
	users := []schemas.UserID{"user:a", "user:b", "user:c"}
	others := []schemas.ID{"user:a", "user:b", "board:x", "interest:i", "interest:j"}
	rapid.Check(t, func(t *rapid.T) {
		user := rapid.SampledFrom(users)
		at := rapid.IntRange(1, 6)
		follow := rapid.Custom(func(t *rapid.T) schemas.Line {
			verbs := []schemas.Verb{schemas.Follow, schemas.Unfollow, schemas.Block, schemas.Unblock}
			return edgeEvent(at.Draw(t, "at"), user.Draw(t, "user"), rapid.SampledFrom(verbs).Draw(t, "verb"),
				rapid.SampledFrom(others).Draw(t, "other"))
		})
		pin := rapid.Custom(func(t *rapid.T) schemas.Line {
			verb := rapid.SampledFrom([]schemas.Verb{schemas.Create, schemas.Create, schemas.Update, schemas.Delete}).Draw(t, "verb")
			id := rapid.SampledFrom([]schemas.ID{"pin:1", "pin:2", "pin:3", "pin:4"}).Draw(t, "pin")
			at := at.Draw(t, "at")
			facets := []func(*schemas.PinEvent){on("board:x", "interest:i"), on("", "interest:j"), on("board:x")}
			return pinEvent(at, user.Draw(t, "author"), verb, id, facets[at%len(facets)])
		})
		lines := rapid.SliceOfN(rapid.OneOf(follow, pin), 1, 40).Draw(t, "events")
		again := rapid.Permutation(append(slices.Clone(lines), lines[:len(lines)/2]...)).Draw(t, "another order")
		one, other := productOf(lines...), productOf(again...)
		for _, u := range users {
			for _, source := range []schemas.Source{schemas.Following, schemas.FromInterest} {
				if diff := cmp.Diff(one.Pool(u, source, 9), other.Pool(u, source, 9)); diff != "" {
					t.Fatalf("pool %s of %s:\n%s", source, u, diff)
				}
			}
			if diff := cmp.Diff(one.Edges(u), other.Edges(u)); diff != "" {
				t.Fatalf("edges of %s:\n%s", u, diff)
			}
		}
		for _, followee := range others {
			if diff := cmp.Diff(one.List(schemas.Followee(followee)), other.List(schemas.Followee(followee))); diff != "" {
				t.Fatalf("list of %s:\n%s", followee, diff)
			}
		}
	})
}

func TestProduct_HandlesRealSet(t *testing.T) {
	dir := os.Getenv("LASTFM_DIR")
	if dir == "" {
		dir = "../../../shared/data/lastfm-2k"
	}
	if _, err := os.Stat(filepath.Join(dir, "artists.dat")); err != nil {
		t.Skipf("needs the HetRec 2011 Last.fm files (set LASTFM_DIR to their directory): %v", err)
	}
	d, err := lastfm.Read(os.DirFS(dir))
	must.OK(t, err)
	start := time.Now()
	p := New(Config{HalfLife: 24 * time.Hour})
	for line := range d.Events(0) {
		p.Apply(line)
	}
	users := p.Users()
	if len(users) != 1892 || len(p.Pins()) != 71_062 {
		t.Fatalf("%d users, %d pins", len(users), len(p.Pins()))
	}
	items := 0
	for _, u := range users[:5] {
		items += len(p.Pool(u, schemas.Following, 500)) + len(p.Pool(u, schemas.FromInterest, 500))
	}
	var memory runtime.MemStats
	runtime.ReadMemStats(&memory)
	took := time.Since(start)
	t.Logf("%d candidates in the pools of 5 users, %s, %d MiB of memory", items, took, memory.Sys>>20)
	if items == 0 || took > 20*time.Second || memory.Sys > 1<<30 {
		t.Errorf("%d candidates, %s, %d MiB; want some, in a few seconds, below 1 GiB", items, took, memory.Sys>>20)
	}
}
