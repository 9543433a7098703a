package schemas

import (
	"encoding/json"
	"math"
	"testing"

	"github.com/smartfeed/smartfeed/internal/testkit/must"
)

// Processes pass a Served on as JSON, which has no NaN and no infinite numbers.
func TestLoggedNumber_SurvivesJSON(t *testing.T) {
	want := []LoggedNumber{0.1, math.MaxFloat64, math.SmallestNonzeroFloat64, LoggedNumber(math.NaN()), LoggedNumber(math.Inf(1)), LoggedNumber(math.Inf(-1))}
	var got []LoggedNumber
	must.OK(t, json.Unmarshal(must.Get(json.Marshal(want))(t), &got))
	for i := range want {
		if math.Float64bits(float64(got[i])) != math.Float64bits(float64(want[i])) {
			t.Errorf("%v became %v", want[i], got[i])
		}
	}
	if err := json.Unmarshal([]byte(`"much"`), new(LoggedNumber)); err == nil {
		t.Error("a word is a number, want an error")
	}
}
