package schemas

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/smartfeed/smartfeed/internal/testkit/expect"
	"github.com/smartfeed/smartfeed/internal/testkit/must"
)

const arrival = Micros(1_795_168_800_000_000)

func goodEvent(verb Verb, object ID) Event {
	return Event{ID: "e-1", Time: arrival, Actor: "user:7", Verb: verb, Object: object}
}

func interests(n int) []InterestID {
	ids := make([]InterestID, n)
	for i := range ids {
		ids[i] = InterestID(fmt.Sprintf("interest:%d", i))
	}
	return ids
}

func attributes(n int) map[string]string {
	m := map[string]string{}
	for i := range n {
		m[fmt.Sprint(i)] = "v"
	}
	return m
}

// validCase changes a valid event; want is the whole error, "" for none.
type validCase[T any] struct {
	name   string
	change func(e *T)
	want   string
}

func checkValid[T any](t *testing.T, good func() T, validate func(e *T) error, tests []validCase[T]) {
	t.Helper()
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			e := good()
			tt.change(&e)
			err := validate(&e)
			if tt.want == "" {
				expect.Error(t, err, "", "validate")
				return
			}
			expect.Equal(t, fmt.Sprint(err), tt.want, "error")
			checkBad(t, err)
		})
	}
}

func TestValidate_PinEvent(t *testing.T) {
	good := func() PinEvent { return PinEvent{Event: goodEvent(Create, "pin:42")} }
	limit := Micros(MaxAhead / time.Microsecond)
	checkValid(t, good, func(e *PinEvent) error { return Validate(e, arrival, nil) }, []validCase[PinEvent]{
		{"required fields only", func(e *PinEvent) {}, ""},
		{"everything at its bound", func(e *PinEvent) {
			e.ID = strings.Repeat("i", 128)
			e.Time = arrival + limit
			e.Board, e.Interests = "board:1", interests(64)
			e.Title, e.Link = strings.Repeat("t", 512), strings.Repeat("l", 2048)
			e.Attributes = attributes(63)
			e.Attributes[strings.Repeat("k", 64)] = strings.Repeat("v", 1024)
			e.Embedding = make([]float32, 2048)
		}, ""},
		{"update, delete", func(e *PinEvent) { e.Verb = Delete }, ""},
		{"long ago", func(e *PinEvent) { e.Time = math.MinInt64 }, ""},
		{"a title with line feeds", func(e *PinEvent) { e.Title = "a\nb" }, ""},
		{"ahead of its arrival", func(e *PinEvent) { e.Time = arrival + limit + 1 },
			"time: 5m0s ahead of its arrival, at most 5m0s are allowed"},
		{"maximum time", func(e *PinEvent) { e.Time = math.MaxInt64 },
			"time: 1000000h0m0s ahead of its arrival, at most 5m0s are allowed"},
		{"several problems", func(e *PinEvent) {
			e.ID, e.Actor, e.Verb, e.Object = "", "board:1", Follow, "user:1"
			e.Board, e.Interests = "pin:1", []InterestID{"interest:1", "x"}
		}, `id: empty; actor: id "board:1": want user:…; verb: unknown verb "follow"; known are [create update delete]; ` +
			`object: id "user:1": want pin:…; board: id "pin:1": want board:…; ` +
			`interests[1]: id "x": not of the form "kind:name"`},
		{"id too long", func(e *PinEvent) { e.ID = strings.Repeat("i", 129) }, "id: 129 bytes, at most 128 are allowed"},
		{"id with a control character", func(e *PinEvent) { e.ID = "a\tb" }, "id: control character at byte 1"},
		{"no actor", func(e *PinEvent) { e.Actor = "" }, `actor: id "": empty`},
		{"too many interests", func(e *PinEvent) { e.Interests = interests(65) }, "interests: 65 entries, at most 64 are allowed"},
		{"too many attributes", func(e *PinEvent) { e.Attributes = attributes(65) }, "attributes: 65 entries, at most 64 are allowed"},
		{"malformed attributes", func(e *PinEvent) {
			e.Attributes = map[string]string{"": "v", strings.Repeat("k", 65): "v", "v": strings.Repeat("v", 1025), "w": "\xff"}
		}, `attributes: name "": empty; attributes: name "` + strings.Repeat("k", 64) + `"…: 65 bytes, at most 64 are allowed; ` +
			`attributes: "v": 1025 bytes, at most 1024 are allowed; attributes: "w": not UTF-8`},
		{"title and link", func(e *PinEvent) { e.Title, e.Link = strings.Repeat("t", 513), "https://x\n" },
			"title: 513 bytes, at most 512 are allowed; link: control character at byte 9"},
		{"link too long", func(e *PinEvent) { e.Link = strings.Repeat("l", 2049) }, "link: 2049 bytes, at most 2048 are allowed"},
		{"embedding too long", func(e *PinEvent) { e.Embedding = make([]float32, 2049) }, "embedding: 2049 entries, at most 2048 are allowed"},
		{"embedding not finite", func(e *PinEvent) { e.Embedding = []float32{1, float32(math.NaN())} }, "embedding: number 1 is not finite"},
		{"more problems than are listed", func(e *PinEvent) { e.Interests = make([]InterestID, 64) },
			joined(20, func(i int) string { return fmt.Sprintf(`interests[%d]: id "": empty`, i) }, "; ") + "; and 44 more"},
	})
}

func joined(n int, text func(i int) string, between string) string {
	all := make([]string, n)
	for i := range all {
		all[i] = text(i)
	}
	return strings.Join(all, between)
}

func TestValidate_FollowEvent(t *testing.T) {
	good := func() FollowEvent { return FollowEvent{goodEvent(Follow, "board:1")} }
	checkValid(t, good, func(e *FollowEvent) error { return Validate(e, arrival, nil) }, []validCase[FollowEvent]{
		{"a board", func(e *FollowEvent) {}, ""},
		{"block a user", func(e *FollowEvent) { e.Verb, e.Object = Block, "user:8" }, ""},
		{"unblock an interest", func(e *FollowEvent) { e.Verb, e.Object = Unblock, "interest:8" }, ""},
		{"a pin", func(e *FollowEvent) { e.Object = "pin:1" }, `object: id "pin:1": want user, board, interest:…`},
		{"create", func(e *FollowEvent) { e.Verb = Create },
			`verb: unknown verb "create"; known are [follow unfollow block unblock]`},
	})
}

func TestValidate_ActionEvent(t *testing.T) {
	good := func() ActionEvent { return ActionEvent{Event: goodEvent(Click, "pin:42")} }
	known := DefaultVerbs().With(Verbs{"share": 2})
	checkValid(t, good, func(e *ActionEvent) error { return Validate(e, arrival, known) }, []validCase[ActionEvent]{
		{"a click", func(e *ActionEvent) {}, ""},
		{"a verb of the configuration", func(e *ActionEvent) { e.Verb = "share" }, ""},
		{"anonymous", func(e *ActionEvent) { e.Actor = "" }, ""},
		{"of a board", func(e *ActionEvent) { e.Actor = "board:1" }, `actor: id "board:1": want user:…`},
		{"unknown verb", func(e *ActionEvent) { e.Verb = "wink" },
			`verb: unknown verb "wink"; known are [click closeup hide report save share view]`},
		{"on a user", func(e *ActionEvent) { e.Object = "user:1" }, `object: id "user:1": want pin:…`},
		{"to no board", func(e *ActionEvent) { e.Board = "board:" }, `board: id "board:": no name`},
		{"surface", func(e *ActionEvent) { e.Surface = strings.Repeat("s", 129) }, "surface: 129 bytes, at most 128 are allowed"},
		{"attributes", func(e *ActionEvent) { e.Attributes = map[string]string{"\n": ""} },
			`attributes: name "\n": control character at byte 0`},
	})
}

func TestValidate_UserEvent(t *testing.T) {
	good := func() UserEvent { return UserEvent{Event: goodEvent(Update, "user:7")} }
	checkValid(t, good, func(e *UserEvent) error { return Validate(e, arrival, nil) }, []validCase[UserEvent]{
		{"an update", func(e *UserEvent) {}, ""},
		{"a delete", func(e *UserEvent) { e.Verb = Delete }, ""},
		{"actor is not the object", func(e *UserEvent) { e.Actor = "user:8" }, `actor: "user:8" is not "user:7", the object`},
		{"of a pin", func(e *UserEvent) { e.Actor, e.Object = "pin:1", "pin:1" }, `object: id "pin:1": want user:…`},
		{"create", func(e *UserEvent) { e.Verb = Create }, `verb: unknown verb "create"; known are [update delete]`},
		{"lists", func(e *UserEvent) {
			e.Interests, e.Attributes, e.Embedding = interests(65), attributes(65), []float32{float32(math.Inf(1))}
		}, "interests: 65 entries, at most 64 are allowed; attributes: 65 entries, at most 64 are allowed; " +
			"embedding: number 0 is not finite"},
	})
}

func TestValidate_Offer(t *testing.T) {
	good := func() Offer {
		return Offer{ID: "o-1", Time: arrival, User: "user:7", Source: "ml", Candidates: []Candidate{
			{Pin: "pin:1", Facets: Facets{Author: "user:2"}, Created: arrival, PoolScore: -1},
		}}
	}
	checkValid(t, good, func(o *Offer) error { return Validate(o, arrival, nil) }, []validCase[Offer]{
		{"one candidate", func(o *Offer) {}, ""},
		{"none", func(o *Offer) { o.Candidates = nil }, ""},
		{"of the related source", func(o *Offer) { o.Source = Related }, ""},
		{"reserved source name", func(o *Offer) { o.Source = FromInterest }, "source: reserved name: interest"},
		{"too many", func(o *Offer) {
			for range MaxCandidates {
				o.Candidates = append(o.Candidates, o.Candidates[0])
			}
		}, "candidates: 1001 entries, at most 1000 are allowed"},
		{"several problems", func(o *Offer) {
			o.ID, o.Time, o.User, o.Source = "", arrival+1e9, "pin:1", ""
			o.Candidates[0] = Candidate{Created: arrival + 1e9, PoolScore: PoolScore(math.NaN()), Facets: Facets{Interests: interests(65)}}
		}, `id: empty; time: 16m40s ahead of its arrival, at most 5m0s are allowed; user: id "pin:1": want user:…; ` +
			`source: empty; candidates[0]: pin: id "": empty; author: id "": empty; ` +
			`interests: 65 entries, at most 64 are allowed; created: 16m40s ahead of its arrival, at most 5m0s are allowed; ` +
			`score: not a finite number`},
	})
}

func TestValidateRecord_RejectsOtherKeys(t *testing.T) {
	for _, e := range []Input{
		&PinEvent{Event: goodEvent(Create, "pin:42")}, &FollowEvent{goodEvent(Follow, "board:1")},
		&ActionEvent{Event: goodEvent(View, "pin:42")}, &UserEvent{Event: goodEvent(Update, "user:7")},
		&Offer{ID: "o-1", User: "user:7", Source: "ml"},
	} {
		expect.Error(t, ValidateRecord(e, e.Key(), arrival, DefaultVerbs()), "", "%T: own key", e)
		err := ValidateRecord(e, "user:9", arrival, DefaultVerbs())
		expect.Equal(t, fmt.Sprint(err), fmt.Sprintf(`key "user:9": want the record's %q`, e.Key()), "%T: error", e)
		checkBad(t, err)
	}
}

func TestVerbs_Validate(t *testing.T) {
	must.OK(t, DefaultVerbs().Validate())
	def := DefaultVerbs()
	more := def.With(Verbs{Click: 2, "share": 4})
	if more[Click] != 2 || more["share"] != 4 || more[Save] != 3 || def[Click] != 1 {
		t.Errorf("with: got %v from %v", more, def)
	}
	err := Verbs{"": 1, ImpressionCount: 1, "x": math.Inf(1)}.Validate()
	want := "verb \"\": empty\nverb \"impression\": the name is reserved for impressions\nverb \"x\": weight +Inf is not finite"
	expect.Equal(t, fmt.Sprint(err), want, "error")
}

func TestLine_ValidatesEventsOfEveryStream(t *testing.T) {
	for _, stream := range InputStreams() {
		err := NewLine(NewInput(stream)).Validate(arrival, DefaultVerbs())
		if err == nil || !strings.HasPrefix(err.Error(), "id: empty") {
			t.Errorf("%s: got %v, want the problems of an empty event", stream, err)
		}
	}
	expect.Fails(t, (Line{Stream: StreamPins}).Validate(arrival, nil), "line without an event")
}
