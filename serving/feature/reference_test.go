package feature

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/smartfeed/smartfeed/internal/testkit/expect"
	"github.com/smartfeed/smartfeed/schemas"
)

// act collects actions of user:1 with the given ages at the tests' now. Their ids are ascending.
type act struct{ list []schemas.EnrichedAction }

func (a *act) add(verb schemas.Verb, object schemas.ID, age schemas.Micros, with ...func(*schemas.EnrichedAction)) {
	e := schemas.EnrichedAction{
		ID: fmt.Sprintf("e%d", len(a.list)), Actor: "user:1", Verb: verb, Object: object, Timestamp: now - age, Number: int64(len(a.list) + 1),
	}
	for _, f := range with {
		f(&e)
	}
	a.list = append(a.list, e)
}

func price(s string) func(*schemas.EnrichedAction) {
	return func(e *schemas.EnrichedAction) { e.ObjectAttributes.Attributes = map[string]string{"price": s} }
}

func interests(list ...schemas.InterestID) func(*schemas.EnrichedAction) {
	return func(e *schemas.EnrichedAction) { e.ObjectAttributes.Interests = list }
}

func device(s string) func(*schemas.EnrichedAction) {
	return func(e *schemas.EnrichedAction) { e.VerbAttributes.Attributes = map[string]string{"device": s} }
}

func vector(v ...float32) func(*schemas.EnrichedAction) {
	return func(e *schemas.EnrichedAction) { e.ObjectAttributes.Embedding = v }
}

func id(s string) func(*schemas.EnrichedAction) {
	return func(e *schemas.EnrichedAction) { e.ID = s }
}

// nowMS is the tests' now, floored to milliseconds.
const nowMS = now - 456

type meaning struct {
	def     string // the keys of the definition except name and entity, separated by ;
	asOf    schemas.Micros
	actions func(a *act)
	want    Value
	reasons []Reason
}

// meanings returns hand-made cases that the reference, and therefore every store, must satisfy.
func meanings() map[string]meaning {
	day := 24 * hour
	return map[string]meaning{
		"count nothing":      {def: "aggregate: count", want: Number(0)},
		"rate nothing":       {def: "aggregate: rate", want: Number(0)},
		"sum nothing":        {def: "aggregate: sum; of: objectAttributes.price", want: Number(0)},
		"distinct nothing":   {def: "aggregate: distinct", want: Number(0)},
		"groups of nothing":  {def: "aggregate: mean; of: objectAttributes.price; group_by: verb", want: Groups{}},
		"last nothing":       {def: "aggregate: last", want: Last{}},
		"top nothing":        {def: "aggregate: top", want: Top{}},
		"mean nothing":       {def: "aggregate: mean; of: objectAttributes.price", reasons: []Reason{Empty}},
		"min nothing":        {def: "aggregate: min; of: objectAttributes.price", reasons: []Reason{Empty}},
		"max nothing":        {def: "aggregate: max; of: objectAttributes.price", reasons: []Reason{Empty}},
		"embedding nothing":  {def: "aggregate: mean_embedding; of: objectAttributes.embedding", reasons: []Reason{Empty}},
		"numbers of no text": {def: "aggregate: sum; of: objectAttributes.price", actions: func(a *act) { a.add("save", "pin:1", 0, price("dear")) }, want: Number(0)},

		"window ends at as_of": {
			def: "aggregate: last; window: 1h", asOf: now,
			actions: func(a *act) { a.add("save", "pin:1", 0); a.add("save", "pin:2", 456-1000) },
			want:    Last{{"pin:1", "save", nowMS.Time()}},
		},
		"same millisecond as as_of but later": {
			def: "aggregate: count; window: 1h", asOf: now,
			actions: func(a *act) { a.add("save", "pin:1", -500) }, // 123.956 ms is in millisecond 123, that of as_of
			want:    Number(1),
		},
		"window begins after its start": {
			def: "aggregate: last; window: 1h", asOf: now,
			actions: func(a *act) { a.add("save", "pin:1", hour); a.add("save", "pin:2", hour-1000) },
			want:    Last{{"pin:2", "save", (nowMS - hour + 1000).Time()}},
		},
		"last microsecond before the window's first millisecond": {
			def: "aggregate: count; window: 1h", asOf: now,
			actions: func(a *act) { a.add("save", "pin:1", hour-543); a.add("save", "pin:2", hour-544) },
			want:    Number(1),
		},
		"at in the past": {
			def: "aggregate: count; window: 1h", asOf: now - 2*hour,
			actions: func(a *act) {
				a.add("save", "pin:1", 0)
				a.add("save", "pin:2", 2*hour)
				a.add("save", "pin:3", 3*hour)
			},
			want: Number(1),
		},
		"96 hours as of now are all kept": {
			def: "aggregate: count; window: 96h", asOf: now,
			actions: func(a *act) { a.add("save", "pin:1", 4*day-1000); a.add("save", "pin:2", 4*day) },
			want:    Number(1),
		},
		"a longer window is cut and reported": {
			def: "aggregate: count; window: 96h", asOf: now - 1000,
			actions: func(a *act) { a.add("save", "pin:1", 4*day-1000); a.add("save", "pin:2", 4*day) },
			want:    Number(1), reasons: []Reason{Window},
		},
		"cut to nothing": {
			def: "aggregate: mean; of: objectAttributes.price; window: 1h", asOf: now - 97*hour,
			actions: func(a *act) { a.add("save", "pin:1", 97*hour, price("1")) },
			reasons: []Reason{Empty, Window},
		},

		"all conditions, any value": {
			def: "aggregate: last; where: {verbAttributes.device: [ios, android], object: [pin:1, pin:2]}",
			actions: func(a *act) {
				a.add("save", "pin:1", 0, device("ios"))
				a.add("save", "pin:2", 1000, device("android"))
				a.add("save", "pin:3", 0, device("ios"))
				a.add("save", "pin:1", 0, device("web"))
				a.add("save", "pin:1", 0)
			},
			want: Last{{"pin:1", "save", nowMS.Time()}, {"pin:2", "save", (nowMS - 1000).Time()}},
		},
		"empty list matches no filter": {
			def: "aggregate: count; where: {objectAttributes.interests: [interest:1, '']}",
			actions: func(a *act) {
				a.add("save", "pin:1", 0, interests())
				a.add("save", "pin:1", 0, interests("interest:1"))
			},
			want: Number(1),
		},
		"empty text is a value": {
			def:     "aggregate: count; group_by: verbAttributes.device",
			actions: func(a *act) { a.add("save", "pin:1", 0, device("")); a.add("save", "pin:1", 0) },
			want:    Groups{"": 1},
		},
		"members count once each": {
			def: "aggregate: count; group_by: objectAttributes.interests",
			actions: func(a *act) {
				a.add("save", "pin:1", 0, interests("interest:1", "interest:2", "interest:1"))
				a.add("save", "pin:2", 0, interests("interest:2"))
				a.add("save", "pin:3", 0, interests())
			},
			want: Groups{"interest:1": 1, "interest:2": 2},
		},
		"sum skips other texts": {
			def: "aggregate: sum; of: objectAttributes.price",
			actions: func(a *act) {
				for _, s := range []string{"1", "2.5", "-1e1", "", "x", "NaN", "Inf", "0x10", " 1", "1 ", "1_0", "1e999"} {
					a.add("save", "pin:1", 0, price(s))
				}
			},
			want: Number(-6.5),
		},
		"sum overflows":     {def: "aggregate: sum; of: objectAttributes.price", actions: prices("1.7e308", "1.7e308"), reasons: []Reason{Overflow}},
		"a group overflows": {def: "aggregate: sum; of: objectAttributes.price; group_by: objectAttributes.price", actions: prices("1.7e308", "1.7e308", "2"), want: Groups{"2": 2}, reasons: []Reason{Overflow}},
		"rate is per hour": {
			def:     "aggregate: rate; window: 30m",
			actions: func(a *act) { a.add("save", "pin:1", 0); a.add("save", "pin:2", 0); a.add("save", "pin:3", 0) },
			want:    Number(6),
		},
		"rate of a cut window is per its full length": {
			def: "aggregate: rate; window: 96h", asOf: now - 48*hour,
			actions: func(a *act) { a.add("save", "pin:1", 50*hour) },
			want:    Number(1. / 96), reasons: []Reason{Window},
		},
		"last n, newest first": {
			def: "aggregate: last; n: 2",
			actions: func(a *act) {
				a.add("view", "pin:1", 3000)
				a.add("save", "pin:2", 1000)
				a.add("click", "pin:3", 2000)
			},
			want: Last{{"pin:2", "save", (nowMS - 1000).Time()}, {"pin:3", "click", (nowMS - 2000).Time()}},
		},
		"last ties by id descending, within a millisecond": {
			def: "aggregate: last",
			actions: func(a *act) {
				a.add("save", "pin:1", 400, id("b")) // later in the millisecond
				a.add("save", "pin:2", 0, id("a"))
				a.add("save", "pin:3", 456, id("ab"))
			},
			want: Last{{"pin:1", "save", nowMS.Time()}, {"pin:3", "save", nowMS.Time()}, {"pin:2", "save", nowMS.Time()}},
		},
		"sequence of nothing": {def: "aggregate: sequence; columns: [verb]", want: Sequence{[]int64{}, map[string]Column{"verb": {Texts: []string{}}}}},
		"sequence beyond the longest window, newest first": {
			def: "aggregate: sequence; n: 3; verbs: [save, view]; columns: [object, objectAttributes.price]",
			actions: func(a *act) {
				a.add("save", "pin:old", 300*day)
				a.add("save", "pin:1", 30*day, price("2"))
				a.add("view", "pin:2", 0)
				a.add("click", "pin:3", 0)
				a.add("save", "pin:4", 3*day, price(""))
				a.add("save", "pin:5", -1000, price("9")) // later than as_of
			},
			want: Sequence{
				[]int64{int64(nowMS) / 1000, int64(nowMS-3*day) / 1000, int64(nowMS-30*day) / 1000},
				map[string]Column{"object": {Texts: []string{"pin:2", "pin:4", "pin:1"}}, "objectAttributes.price": {Texts: []string{"", "", "2"}}},
			},
		},
		"sequence of quantized embeddings": {
			def: "aggregate: sequence; columns: objectAttributes.embedding; embedding: int8",
			actions: func(a *act) {
				a.add("save", "pin:1", 5000, vector(1, 2, 3)) // of another model
				a.add("save", "pin:2", 4000, vector(0, 0))
				a.add("save", "pin:3", 3000)
				a.add("save", "pin:4", 2000, vector(-254, 3))
				a.add("save", "pin:5", 1000, vector(0.1, 12.7))
			},
			want: Sequence{
				[]int64{int64(nowMS)/1000 - 1, int64(nowMS)/1000 - 2, int64(nowMS)/1000 - 3, int64(nowMS)/1000 - 4, int64(nowMS)/1000 - 5},
				map[string]Column{"objectAttributes.embedding": {
					Vectors: [][]float32{{1, 127}, {-127, 2}, nil, {0, 0}, nil}, Scales: []float32{0.1, 2, 0, 0, 0},
				}},
			},
		},
		"actions without a number are in no sequence": {
			def: "aggregate: sequence; columns: verb", actions: func(a *act) { a.add("save", "pin:1", 0, func(e *schemas.EnrichedAction) { e.Number = 0 }) },
			want: Sequence{[]int64{}, map[string]Column{"verb": {Texts: []string{}}}},
		},
		"later actions replace older ones of a sequence": {
			def: "aggregate: sequence; columns: object; n: 2", asOf: now - hour,
			actions: func(a *act) {
				a.add("save", "pin:1", 3*hour)
				a.add("save", "pin:2", 2*hour)
				a.add("save", "pin:3", 0, func(e *schemas.EnrichedAction) { e.Number = MaxSequence + 1 })
			},
			want: Sequence{[]int64{int64(nowMS-2*hour) / 1000}, map[string]Column{"object": {Texts: []string{"pin:2"}}}}, reasons: []Reason{Window},
		},
		"top ties by value ascending": {
			def: "aggregate: top; of: objectAttributes.interests; n: 3",
			actions: func(a *act) {
				a.add("save", "pin:1", 0, interests("interest:4", "interest:2", "interest:3"))
				a.add("save", "pin:2", 0, interests("interest:3", "interest:1"))
			},
			want: Top{{"interest:3", 2}, {"interest:1", 1}, {"interest:2", 1}},
		},
		"mean embedding": {
			def: "aggregate: mean_embedding; of: objectAttributes.embedding",
			actions: func(a *act) {
				a.add("save", "pin:1", 0, vector(1, 2))
				a.add("save", "pin:2", 1000, vector(3, -4))
				a.add("save", "pin:3", 0)
			},
			want: Vector{2, -1},
		},
		"embeddings as long as the newest": {
			def: "aggregate: mean_embedding; of: objectAttributes.embedding",
			actions: func(a *act) {
				a.add("save", "pin:1", 2000, vector(1, 2, 3))
				a.add("save", "pin:2", 1000, vector(8))
				a.add("save", "pin:3", 0, vector(2, 4, 6))
			},
			want: Vector{1.5, 3, 4.5},
		},
		"a field hides an attribute of its name": {
			def: "aggregate: count; group_by: objectAttributes.author",
			actions: func(a *act) {
				a.add("save", "pin:1", 0, func(e *schemas.EnrichedAction) { e.ObjectAttributes.Attributes = map[string]string{"author": "x"} })
			},
			want: Groups{},
		},
	}
}

func prices(list ...string) func(a *act) {
	return func(a *act) {
		for _, s := range list {
			a.add("save", "pin:1", 0, price(s))
		}
	}
}

func (m meaning) parts(t *testing.T) (Definition, Span, []schemas.EnrichedAction) {
	d := define(t, append([]string{"entity: user"}, strings.Split(m.def, "; ")...)...)
	a := &act{}
	if m.actions != nil {
		m.actions(a)
	}
	if m.asOf == 0 {
		m.asOf = now
	}
	return d, Span{AsOf: m.asOf, Now: now}, a.list
}

func TestReference_Cases(t *testing.T) {
	for name, m := range meanings() {
		t.Run(name, func(t *testing.T) {
			d, span, actions := m.parts(t)
			same(t, "value", Result{m.want, m.reasons}, Reference(d, span, actions))
		})
	}
}

func TestReferenceItems(t *testing.T) {
	step := schemas.ItemStep
	start := now / step * step // the step that contains now
	counts := []schemas.ItemCounts{
		{Start: start + step, Counts: map[string]int64{"save": 1000}}, // the future
		{Start: start, Counts: map[string]int64{"save": 1, "impression": 500}},
		{Start: start - step, Counts: map[string]int64{"save": 10, "click": 2}},
		{Start: start - 12*step, Counts: map[string]int64{"save": 100}}, // contains now - 1 h
		{Start: start - 13*step, Counts: map[string]int64{"save": 7}},
	}
	tests := map[string]struct {
		def  string
		want Value
	}{
		"all verbs but impressions": {"aggregate: count; window: 1h", Number(113)},
		"impressions when named":    {"aggregate: count; window: 1h; verbs: impression", Number(500)},
		"by verb":                   {"aggregate: count; window: 1h; group_by: verb", Groups{"save": 111, "click": 2}},
		"per hour":                  {"aggregate: rate; window: 30m; verbs: save", Number(22)},
		"per hour by verb":          {"aggregate: rate; window: 30m; group_by: verb", Groups{"save": 22, "click": 4}},
		"wider":                     {"aggregate: count; window: 2h; verbs: save", Number(118)},
		"nothing":                   {"aggregate: count; verbs: hide", Number(0)},
		"no groups":                 {"aggregate: count; verbs: hide; group_by: verb", Groups{}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			d := define(t, append([]string{"entity: pin"}, strings.Split(tt.def, "; ")...)...)
			same(t, "value", Result{Value: tt.want}, ReferenceItems(d, now, counts))
		})
	}
}

func TestReferenceItems_StepAtWindowEdge(t *testing.T) {
	start := now / schemas.ItemStep * schemas.ItemStep
	counts := []schemas.ItemCounts{{Pin: "pin:1", Start: start, Counts: map[string]int64{"save": 1}}}
	d := define(t, "entity: pin", "aggregate: count", "window: 1h")
	tests := map[string]struct {
		at   schemas.Micros
		want Number
	}{
		"before it begins":         {start - 1, 0},
		"when it begins":           {start, 1},
		"its last is the first in": {start + schemas.ItemStep + hour - 1001, 1},
		"its last is out":          {start + schemas.ItemStep + hour - 1000, 0},
	}
	for name, tt := range tests {
		same[Value](t, name, tt.want, ReferenceItems(d, tt.at, counts).Value)
	}
}

func TestFloor_NegativeTimes(t *testing.T) {
	tests := map[schemas.Micros]millis{0: 0, 999: 0, 1000: 1, -1: -1, -1000: -1, -1001: -2}
	for m, want := range tests {
		same(t, fmt.Sprintf("floor(%d)", m), want, floor(m))
	}
	same(t, "day of -1 ms", int32(-1), dayOf(-1))
	expect.NoDiff(t, floor(now).time(), time.UnixMilli(1_700_000_000_123).UTC(), "time")
}
