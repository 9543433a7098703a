package feature

import (
	"encoding/json"
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/smartfeed/smartfeed/internal/testkit/must"
	"github.com/smartfeed/smartfeed/schemas"
)

// values generates values of every kind. An empty list is read as Last.
func values() *rapid.Generator[Value] {
	numbers := rapid.Float64Range(-math.MaxFloat64, math.MaxFloat64)
	return rapid.Custom(func(t *rapid.T) Value {
		switch rapid.IntRange(0, 6).Draw(t, "kind") {
		case 0:
			return Number(numbers.Draw(t, "number"))
		case 1:
			return Groups(rapid.MapOf(rapid.String(), numbers).Draw(t, "groups"))
		case 2:
			return Vector(rapid.SliceOfN(numbers, 1, 3).Draw(t, "vector"))
		case 3:
			return Last(rapid.SliceOfN(rapid.Custom(func(t *rapid.T) Acted {
				return Acted{schemas.ID(rapid.String().Draw(t, "object")), "save", now.Time().UTC()}
			}), 0, 3).Draw(t, "last"))
		case 4:
			return Top(rapid.SliceOfN(rapid.Make[Counted](), 1, 3).Draw(t, "top"))
		case 5:
			return sequences().Draw(t, "sequence")
		}
		return nil
	})
}

// sequences generates sequences of three actions, or of none, whose columns are read as texts.
func sequences() *rapid.Generator[Sequence] {
	three := Sequence{Times: []int64{3, 2, 1}, Columns: map[string]Column{
		"verb":                       {Texts: []string{"save", "", "x"}},
		"objectAttributes.embedding": {Vectors: [][]float32{nil, {0.5, -1}, {3, 4}}},
		"actorAttributes.embedding":  {Vectors: [][]float32{{-127}, nil, nil}, Scales: []float32{0.25, 0, 0}},
	}}
	return rapid.SampledFrom([]Sequence{three, {Times: []int64{}, Columns: map[string]Column{"verb": {Texts: []string{}}}}})
}

func TestAnswer_RoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		fresh := now.Time().UTC()
		want := Answer{
			Values:  rapid.MapOf(rapid.String(), rapid.MapOf(rapid.String(), values())).Draw(t, "values"),
			Missing: []Missing{{"user:1", "f", Failed}}, Degraded: []string{"store"}, AsOf: now.Time().UTC(), Fresh: &fresh,
		}
		text, err := json.Marshal(want)
		must.OK(t, err)
		var got Answer
		err = json.Unmarshal(text, &got)
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			t.Fatalf("%v (-want +got):\n%s", err, diff)
		}
	})
	var read Answer
	for _, bad := range []string{`{"values":{"user:a":{"f":"text"}}}`, `{"values":{"user:a":{"f":["text"]}}}`, `{"values":3}`, `{"values":{"user:a":{"f":{"a":"b"}}}}`} {
		if err := json.Unmarshal([]byte(bad), &read); err == nil {
			t.Errorf("%s: no error", bad)
		}
	}
}
