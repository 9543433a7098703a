package export

import (
	"bytes"
	"math"
	"testing"

	"github.com/parquet-go/parquet-go"

	"github.com/smartfeed/smartfeed/internal/testkit/expect"
	"github.com/smartfeed/smartfeed/internal/testkit/must"
	"github.com/smartfeed/smartfeed/internal/training"
	"github.com/smartfeed/smartfeed/schemas"
)

// modeled has the columns of a row that depend on the model.
type modeled struct {
	Pin        string            `parquet:"pin"`
	Taste      *float64          `parquet:"feature_taste,optional"`
	Age        *float64          `parquet:"feature_age,optional"`
	Save       *float64          `parquet:"output_save[1],optional"`
	Propensity *float64          `parquet:"propensity,optional"`
	Choices    []training.Choice `parquet:"choices,list"`
	Choice     int32             `parquet:"choice"`
}

func write(t *testing.T, visits ...*schemas.LoggedVisit) *bytes.Buffer {
	t.Helper()
	e := &job{Config: Config{Labels: labels()}, topic: "id"}
	b := newBatch(e.Labels)
	for _, v := range visits {
		b.addVisit(v, 0)
	}
	out := new(bytes.Buffer)
	must.OK(t, e.write(t.Context(), out, b))
	return out
}

// Visits with other features, and items without values, have null in the columns. A missing output and an unknown propensity are
// null, too.
func TestWrite_ModelAndPolicy(t *testing.T) {
	with := &schemas.LoggedVisit{
		Features: []schemas.LoggedFeature{{Name: "taste", Width: 1}, {Name: "age", Width: 1}}, Outputs: []string{"save[1]"},
		Items: []schemas.LoggedItem{
			{Pin: "pin:1", Values: []schemas.LoggedNumber{0.5, 1}, Outputs: []schemas.LoggedNumber{0.25}, Propensity: 0.5, Choice: 1, Choices: []schemas.Choice{
				{Source: "following", SourceProbability: 0.75, Pin: "pin:2", Probability: 0.25, RankScore: 3, Outputs: []schemas.LoggedNumber{0.125}},
				{Source: "interest", SourceProbability: 0.25, Pin: "pin:1", Probability: 0.5, RankScore: 4},
			}},
			{Pin: "pin:3", Values: []schemas.LoggedNumber{1, schemas.LoggedNumber(math.NaN())}, Outputs: []schemas.LoggedNumber{schemas.LoggedNumber(math.NaN())}, Choice: -1},
			{Pin: "pin:4", Propensity: 1, Choice: -1},
		},
	}
	without := &schemas.LoggedVisit{Items: []schemas.LoggedItem{{Pin: "pin:5", Propensity: 1, Choice: -1}}}
	file := bytes.NewReader(write(t, with, without).Bytes())
	got := must.Get(parquet.Read[modeled](file, file.Size()))(t)
	want := []modeled{
		{"pin:1", new(0.5), new(1.0), new(0.25), new(0.5), []training.Choice{
			{Source: "following", SourceProbability: 0.75, Pin: "pin:2", Probability: 0.25, Score: 3, Outputs: map[string]float64{"save[1]": 0.125}},
			{Source: "interest", SourceProbability: 0.25, Pin: "pin:1", Probability: 0.5, Score: 4, Outputs: map[string]float64{}},
		}, 1},
		{"pin:3", new(1.0), nil, nil, nil, []training.Choice{}, -1},
		{"pin:4", nil, nil, nil, new(1.0), []training.Choice{}, -1},
		{"pin:5", nil, nil, nil, new(1.0), []training.Choice{}, -1},
	}
	expect.NoDiff(t, got, want, "rows")
	content := must.Get(parquet.OpenFile(file, file.Size()))(t)
	for key, want := range map[string]string{
		"smartfeed.labels":   `{"hide":"30h0m0s","save":"10h0m0s"}`,
		"smartfeed.outputs":  `["save[1]"]`,
		"smartfeed.features": `["taste","age"]`,
		"smartfeed.topic":    `"id"`,
	} {
		got, _ := content.Lookup(key)
		expect.Equal(t, got, want, "%s", key)
	}
}
