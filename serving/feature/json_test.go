package feature

import (
	"encoding/json"
	"errors"
	"math"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/smartfeed/smartfeed/schemas"
)

// answers generates random answers with all kinds of texts and numbers.
func answers() *rapid.Generator[Answer] {
	texts := rapid.OneOf(rapid.SampledFrom([]string{"", "user:1", `a"b\c`, "<&>", "\u2028\x7f\x00", "é😀", "\xff\xfe", "interest:tea"}), rapid.String())
	numbers := rapid.OneOf(rapid.Float64(), rapid.Map(rapid.IntRange(-1000, 1000), func(i int) float64 { return float64(i) }),
		rapid.SampledFrom([]float64{0, math.Copysign(0, -1), 1e-6, 9.99e-7, 1e-9, -1e-10, 1e20, 1e21, 1.5e300, math.MaxFloat64, math.SmallestNonzeroFloat64}))
	times := rapid.Map(rapid.Int64Range(0, 4e15), func(us int64) time.Time { return time.UnixMicro(us).UTC() })
	value := rapid.Custom(func(t *rapid.T) Value {
		switch rapid.IntRange(0, 5).Draw(t, "kind") {
		case 0:
			return Number(numbers.Draw(t, "number"))
		case 1:
			return Groups(rapid.MapOf(texts, numbers).Draw(t, "groups"))
		case 2:
			return Vector(rapid.SliceOf(numbers).Draw(t, "vector"))
		case 3:
			last := Last{}
			for range rapid.IntRange(0, 3).Draw(t, "last") {
				last = append(last, Acted{schemas.ID(texts.Draw(t, "object")), schemas.Verb(texts.Draw(t, "verb")), times.Draw(t, "time")})
			}
			return last
		case 4:
			top := Top{}
			for range rapid.IntRange(0, 3).Draw(t, "top") {
				top = append(top, Counted{texts.Draw(t, "value"), rapid.Int64().Draw(t, "count")})
			}
			return top
		}
		return nil
	})
	return rapid.Custom(func(t *rapid.T) Answer {
		a := Answer{Values: map[string]map[string]Value{}, Missing: []Missing{}, Degraded: []string{}, AsOf: times.Draw(t, "as of")}
		for range rapid.IntRange(0, 4).Draw(t, "entities") {
			a.Values[texts.Draw(t, "entity")] = rapid.MapOf(texts, value).Draw(t, "values")
		}
		for range rapid.IntRange(0, 2).Draw(t, "missing") {
			a.Missing = append(a.Missing, Missing{texts.Draw(t, "entity"), texts.Draw(t, "feature"), Failed})
		}
		if rapid.Bool().Draw(t, "degraded") {
			a.Degraded = append(a.Degraded, "store")
		}
		if rapid.Bool().Draw(t, "fresh") {
			fresh := times.Draw(t, "fresh to")
			a.Fresh = &fresh
		}
		return a
	})
}

func TestAnswer_RoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text, err := json.Marshal(answers().Draw(t, "answer"))
		if err != nil {
			t.Skip("not finite: no answer has it")
		}
		var read Answer
		if err := json.Unmarshal(text, &read); err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		again, err := json.Marshal(read)
		if err != nil {
			t.Fatal(err)
		}
		var want, got any // not byte by byte: invalid UTF-8 may produce the same key twice
		if err := errors.Join(json.Unmarshal(text, &want), json.Unmarshal(again, &got)); err != nil {
			t.Fatal(err)
		}
		if diff := gocmp.Diff(want, got); diff != "" {
			t.Fatal(diff)
		}
	})
	var read Answer
	err := json.Unmarshal([]byte(`{"values":{"user:a":{"l":[{"object":"pin:1","verb":"save"}],"t":[{"value":"x","count":2}],"v":[1,2],"g":{"a":1},"n":3,"null":null}}}`), &read)
	want := map[string]Value{
		"l": Last{{Object: "pin:1", Verb: "save"}}, "t": Top{{"x", 2}}, "v": Vector{1, 2}, "g": Groups{"a": 1}, "n": Number(3), "null": nil,
	}
	if diff := gocmp.Diff(want, read.Values["user:a"]); diff != "" || err != nil {
		t.Errorf("%v, kinds (-want +got):\n%s", err, diff)
	}
	for _, bad := range []string{`{"values":{"user:a":{"f":"text"}}}`, `{"values":{"user:a":{"f":["text"]}}}`, `{"values":3}`, `{"values":{"user:a":{"f":{"a":"b"}}}}`} {
		if err := json.Unmarshal([]byte(bad), &read); err == nil {
			t.Errorf("%s: no error", bad)
		}
	}
}
