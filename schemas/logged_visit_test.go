package schemas

import (
	"encoding/json"
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/smartfeed/smartfeed/internal/testkit/expect"
	"github.com/smartfeed/smartfeed/internal/testkit/must"
)

// Processes pass a Served on as JSON, which has no NaN and no infinite numbers.
func TestLoggedNumber_SurvivesJSON(t *testing.T) {
	want := []LoggedNumber{0.1, math.MaxFloat64, math.SmallestNonzeroFloat64, LoggedNumber(math.NaN()), LoggedNumber(math.Inf(1)), LoggedNumber(math.Inf(-1))}
	var got []LoggedNumber
	must.OK(t, json.Unmarshal(must.Get(json.Marshal(want))(t), &got))
	for i := range want {
		expect.Equal(t, math.Float64bits(float64(got[i])), math.Float64bits(float64(want[i])), "bits of %v and %v", got[i], want[i])
	}
	expect.Fails(t, json.Unmarshal([]byte(`"much"`), new(LoggedNumber)), "word as a number")
}

// The choices of a limited record are not longer than the limit, and nothing else is missing.
func TestLimitChoices_BoundsEncoding(t *testing.T) {
	s, visits := serdeOf[LoggedVisit](t, nil), rapid.Make[LoggedVisit]()
	rapid.Check(t, func(t *rapid.T) {
		v := visits.Draw(t, "visit")
		before := slices.Clone(v.Items)
		limit := rapid.IntRange(0, 4000).Draw(t, "limit")
		v.Cut = 0
		v.LimitChoices(limit)
		kept := len(before) - int(v.Cut)
		without := v
		without.Items = slices.Clone(before)
		for i := range before {
			without.Items[i].Choices, without.Items[i].Choice = nil, v.Items[i].Choice
			if i < kept && len(v.Items[i].Outputs) != len(before[i].Outputs) || i < kept && len(v.Items[i].Choices) != len(before[i].Choices) || i >= kept && len(v.Items[i].Choices) > 0 {
				t.Fatalf("item %d of %d, of which %d are cut: %+v", i, len(before), v.Cut, v.Items[i])
			}
		}
		value, err := s.Encode(&v)
		if err != nil {
			t.Skip(err)
		}
		smallest, err := s.Encode(&without)
		if err != nil || len(value) > len(smallest)+limit {
			t.Fatalf("%d bytes, %d without choices, want at most %d of choices, %v", len(value), len(smallest), limit, err)
		}
	})
}
