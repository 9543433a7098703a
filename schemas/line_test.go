package schemas

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/smartfeed/smartfeed/internal/testkit/expect"
	"github.com/smartfeed/smartfeed/internal/testkit/must"
)

func TestParseLine(t *testing.T) {
	at := Micros(1_795_168_800_123_000) // 2026-11-20T10:00:00.123Z
	head := Event{ID: "e-1", Time: at, Actor: "user:7", Verb: "x", Object: "pin:42"}
	with := func(e Event, verb Verb, object ID) Event { e.Verb, e.Object = verb, object; return e }
	tests := []struct {
		name string
		line string
		want Line
	}{{
		name: "a save",
		line: `{"stream":"actions","id":"e-1","time":"2026-11-20T10:00:00.123Z","actor":"user:7","verb":"save","object":"pin:42","board":"board:9","surface":"home"}`,
		want: Line{StreamActions, &ActionEvent{Event: with(head, Save, "pin:42"), Board: "board:9", Surface: "home"}, "pin:42"},
	}, {
		name: "anonymous action, time with an offset, null board",
		line: ` {"stream":"actions","id":"e-1","time":"2026-11-20T11:00:00.123+01:00","verb":"save","object":"pin:42","board":null} `,
		want: Line{StreamActions, &ActionEvent{Event: Event{ID: "e-1", Time: at, Verb: Save, Object: "pin:42"}}, "pin:42"},
	}, {
		name: "action with a null actor",
		line: `{"stream":"actions","id":"e-1","time":1795168800123000,"actor":null,"verb":"save","object":"pin:42"}`,
		want: Line{StreamActions, &ActionEvent{Event: Event{ID: "e-1", Time: at, Verb: Save, Object: "pin:42"}}, "pin:42"},
	}, {
		name: "pin with all fields, repeated interests",
		line: `{"object":"pin:42","verb":"create","actor":"user:7","time":1795168800123000,"id":"e-1","stream":"pins","board":"board:1",` +
			`"interests":["interest:a","interest:b","interest:a"],"title":"T\u00e4","link":"https://x","attributes":{"k":"v"},"embedding":[1,-0.5]}`,
		want: Line{StreamPins, &PinEvent{
			Event: with(head, Create, "pin:42"), Board: "board:1", Interests: []InterestID{"interest:a", "interest:b"},
			Title: "Tä", Link: "https://x", Attributes: map[string]string{"k": "v"}, Embedding: []float32{1, -0.5},
		}, "pin:42"},
	}, {
		name: "a follow",
		line: `{"stream":"follows","id":"e-1","time":1795168800123000,"actor":"user:7","verb":"follow","object":"board:1"}`,
		want: Line{StreamFollows, &FollowEvent{with(head, Follow, "board:1")}, "board:1"},
	}, {
		name: "a user, embedding null",
		line: `{"stream":"users","id":"e-1","time":1795168800123000,"actor":"user:7","verb":"update","object":"user:7","interests":[],"embedding":null}`,
		want: Line{StreamUsers, &UserEvent{Event: with(head, Update, "user:7")}, "user:7"},
	}, {
		name: "an offer",
		line: `{"stream":"candidates","id":"o","time":1,"user":"user:7","source":"ml","candidates":[{"pin":"pin:1","author":"user:2","board":null,"interests":["interest:a"],"created":"1970-01-01T00:00:00.000002Z","score":-1.5e0}]}`,
		want: Line{StreamCandidates, &Offer{ID: "o", Time: 1, User: "user:7", Source: "ml", Candidates: []Candidate{
			{Pin: "pin:1", Facets: Facets{Author: "user:2", Interests: []InterestID{"interest:a"}}, Created: 2, PoolScore: -1.5},
		}}, "user:7"},
	}, {
		name: "literal replacement character",
		line: `{"stream":"follows","id":"\ufffd�","time":-1,"actor":"","verb":"","object":""}`,
		want: Line{StreamFollows, &FollowEvent{Event{ID: "��", Time: -1}}, ""},
	}}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := must.Get(ParseLine([]byte(tt.line)))(t)
			expect.NoDiffBut(t, cmpopts.EquateEmpty(), got, tt.want, "line")
		})
	}
}

func TestParseLine_RejectsInvalidLines(t *testing.T) {
	const follow = `"stream":"follows","id":"e","time":1,"actor":"user:7","verb":"follow","object":"user:8"`
	const pin = `"stream":"pins","id":"e","time":1,"actor":"user:7","verb":"create","object":"pin:8"`
	const offer = `"stream":"candidates","id":"e","time":1,"user":"user:7","source":"ml"`
	for _, tt := range []struct{ name, line, want string }{
		{"empty line", ``, "not JSON: EOF"},
		{"half an object", `{"stream":`, `not JSON: unexpected EOF within "/stream"`},
		{"word like null", `nonsense`, "not JSON: invalid character"},
		{"no JSON", `{"stream":follows}`, "not JSON: invalid character"},
		{"an array", `[]`, "want an object, got an array"},
		{"null", `null`, "want an object, got null"},
		{"not UTF-8", "{\"stream\":\"\xff\"}", `invalid UTF-8 within "/stream"`},
		{"no stream", `{"id":"e"}`, "stream: missing"},
		{"unknown stream", `{"stream":"served"}`, `stream: unknown stream "served"; known are users, follows, pins, actions, candidates`},
		{"stream without a name", `{"stream":""}`, `stream: unknown stream ""`},
		{"stream of another type", `{"stream":1,"x":2}`, "stream: want a string, got a number"},
		{"data after", `{` + follow + `} {}`, "data after the object"},
		{"space that JSON does not have after", `{` + follow + "}\v", "data after the object"},
		{"unknown field", `{` + follow + `,"Actor":"user:9"}`, "Actor: unknown field"},
		{"repeated field", `{` + follow + `,"id":"f"}`, `duplicate object member name "id"`},
		{"all missing", `{"stream":"follows"}`, "id: missing; time: missing; actor: missing; verb: missing; object: missing"},
		{"null instead of text", `{` + pin + `,"title":null}`, "title: want a string, got null"},
		{"actor null in a pin", `{"stream":"pins","id":"e","time":1,"actor":null,"verb":"create","object":"pin:8"}`, "actor: want a string, got null"},
		{"number as text", `{` + pin + `,"link":1,"board":2}`, "board: want a string, got a number; link: want a string, got a number"},
		{"time as text of a number", `{"stream":"follows","id":"e","time":"1","actor":"user:7","verb":"follow","object":"user:8"}`, `time: want RFC 3339 text or an integer of microseconds, got "1"`},
		{"time with a fraction", `{"stream":"follows","id":"e","time":1.5,"actor":"user:7","verb":"follow","object":"user:8"}`, "time: want RFC 3339"},
		{"time null", `{"stream":"follows","id":"e","time":null,"actor":"user:7","verb":"follow","object":"user:8"}`, "time: want RFC 3339"},
		{"time too big", `{"stream":"follows","id":"e","time":9223372036854775808,"actor":"user:7","verb":"follow","object":"user:8"}`, "time: want RFC 3339"},
		{"interests of another type", `{` + pin + `,"interests":"interest:a"}`, "interests: want an array, got a string"},
		{"interests null", `{` + pin + `,"interests":null}`, "interests: want an array, got null"},
		{"null in interests", `{` + pin + `,"interests":["interest:a",null]}`, "interests: entry 1: want a string, got null"},
		{"attribute of another type", `{` + pin + `,"attributes":{"a":1}}`, `attributes: "a": want a string, got a number`},
		{"attribute twice", `{` + pin + `,"attributes":{"a":"1","a":"2"}}`, `duplicate object member name "a" within "/attributes"`},
		{"embedding of text", `{` + pin + `,"embedding":["1"]}`, "embedding: entry 0: want a number of 32 bits, got \"1\""},
		{"embedding with null", `{` + pin + `,"embedding":[null]}`, "embedding: entry 0: want a number of 32 bits, got null"},
		{"embedding beyond 32 bits", `{` + pin + `,"embedding":[1e39]}`, "embedding: entry 0: want a number of 32 bits, got 1e39"},
		{"too many attributes to read", `{` + pin + `,"attributes":{` + joined(maxMembers+1, func(i int) string { return fmt.Sprintf(`"%d":""`, i) }, ",") + `}}`, "attributes: more than 256 fields"},
		{"too many interests to read", `{` + pin + `,"interests":[` + strings.Repeat(`"",`, maxEntries) + `""]}`, "interests: more than 4096 entries"},
		{"unpaired surrogate", `{` + pin + `,"title":"\ud800"}`, `in string within "/title"`},
		{"no candidates", `{` + offer + `}`, "candidates: missing"},
		{"candidate of another type", `{` + offer + `,"candidates":[7]}`, "candidates[0]: want an object, got a number"},
		{"candidate without fields", `{` + offer + `,"candidates":[{"pin":"pin:1","x":1}]}`, "candidates[0].created: missing; candidates[0].score: missing; candidates[0].x: unknown field"},
		{"candidate with a bad score", `{` + offer + `,"candidates":[{"pin":"pin:1","author":"user:1","created":1,"score":null}]}`, "candidates[0].score: want a number, got null"},
		{"too long", `{` + pin + `,"title":"` + strings.Repeat("a", MaxLineBytes) + `"}`, "bytes, at most 1048576 are allowed"},
		{"nested without end", `{"stream":` + strings.Repeat(`[`, 500_000), "not JSON: "},
		{"deeply nested field", `{` + pin + `,"board":` + strings.Repeat(`[`, 9000) + strings.Repeat(`]`, 9000) + `}`, "board: want a string, got an array"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := ParseLine([]byte(tt.line))
			expect.Error(t, err, tt.want, "ParseLine: %+v", got)
			checkBad(t, err)
		})
	}
}

func TestLine_RoundTrip(t *testing.T) {
	for _, r := range inputRecords(t, texts{}) {
		t.Run(r.name, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				event := r.value(t)
				line := NewLine(event.(Input))
				text, err := AppendLine([]byte("x"), line)
				if hasNoJSON(event) {
					if err == nil {
						t.Fatalf("wrote a number that JSON does not have: %s", text)
					}
					return
				}
				must.OK(t, err)
				got := must.Get(ParseLine(text[1:]))(t)
				finishDecoding(wireOf(event))
				expect.NoDiffBut(t, asOnWire, got, line, "parsed")
			})
		})
	}
}

func hasNoJSON(event any) bool {
	off := func(x float64) bool { return math.IsNaN(x) || math.IsInf(x, 0) }
	off32 := func(x float32) bool { return off(float64(x)) }
	switch e := event.(type) {
	case *PinEvent:
		return slices.ContainsFunc(e.Embedding, off32)
	case *UserEvent:
		return slices.ContainsFunc(e.Embedding, off32)
	case *Offer:
		return slices.ContainsFunc(e.Candidates, func(c Candidate) bool { return off(float64(c.PoolScore)) })
	}
	return false
}

func TestAppendLine_RejectsInvalidEvents(t *testing.T) {
	expect.Fails(t, expect.ErrorOf(AppendLine(nil, Line{StreamPins, &FollowEvent{}, ""})), "follow as a pin")
	expect.Fails(t, expect.ErrorOf(AppendLine(nil, Line{Stream: StreamPins})), "no event")
}
