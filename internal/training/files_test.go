package training_test

import (
	"errors"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/parquet-go/parquet-go"

	"github.com/smartfeed/smartfeed/internal/testkit/expect"
	"github.com/smartfeed/smartfeed/internal/testkit/must"
	"github.com/smartfeed/smartfeed/internal/training"
	"github.com/smartfeed/smartfeed/schemas"
)

var layout = training.Layout{
	Features: []string{"age", "taste"}, Outputs: []string{"save", "proba[1]"}, Labels: map[string]string{"save": "24h0m0s", "hide": "1h0m0s"}, Topic: "id",
}

// written is a row and its columns.
type written struct {
	training.Item
	columns training.Columns
}

// rows returns a row with every column, and one without those that can be missing.
func rows() []written {
	at := time.Date(2026, 11, 20, 15, 4, 5, 6000, time.UTC)
	full := training.Item{
		Visit: "v1", User: "user:1", Time: at, Feed: "home", Arm: "b", ArmShare: 0.25, UserShare: 0.5, Policy: schemas.PolicyRandomized,
		Position: 3, Pin: "pin:2", Source: "explore", Pool: "interest", Author: "user:9", Score: 1.5, Propensity: 0.125, Choice: 1,
		Choices: []training.Choice{
			{Source: "related", SourceProbability: 0.75, Pin: "pin:1", Probability: 0.5, Score: 2, Outputs: map[string]float64{"save": 0.5, "proba[1]": math.Inf(1)}},
			{Source: "interest", SourceProbability: 0.25, Pin: "pin:2", Probability: 0.125, Score: 1.5, Outputs: map[string]float64{}},
		},
	}
	columns := training.Columns{
		"feature_age": 7, "feature_taste": 0, "output_save": 0.75, "output_proba[1]": math.NaN(), "label_hide": 0, "label_save": 1, "label_save_after": 2.5,
	}
	bare := training.Item{Visit: "v2", User: "user:2", Time: at, Policy: schemas.PolicyDeterministic, Choices: []training.Choice{}}
	return []written{{full, columns}, {bare, nil}}
}

func write(t *testing.T, path string, l training.Layout, list ...written) {
	t.Helper()
	must.OK(t, os.MkdirAll(filepath.Dir(path), 0o755))
	file := must.Get(os.Create(path))(t)
	w := must.Get(training.NewWriter(file, l))(t)
	for _, r := range list {
		must.OK(t, w.Write(r.Item, r.columns))
	}
	must.OK(t, w.Close())
	must.OK(t, file.Close())
}

// Rows of several days are read as they were written, and nulls stay nulls.
func TestRows_RoundTrip(t *testing.T) {
	dir, list := t.TempDir(), rows()
	write(t, filepath.Join(dir, "day=2026-11-20", "part-0.parquet"), layout, list[0])
	write(t, filepath.Join(dir, "day=2026-11-21", "part-0.parquet"), layout, list[1])
	log := must.Get(training.Open(dir))(t)
	expect.NoDiff(t, log.Verbs(), []string{"hide", "save"}, "verbs")
	expect.NoDiff(t, log.Outputs, layout.Outputs, "outputs")
	want := []*training.Row{
		{Item: list[0].Item, Acted: map[string]bool{"hide": false, "save": true}},
		{Item: list[1].Item, Acted: map[string]bool{"hide": false, "save": false}},
	}
	var got []*training.Row
	must.OK(t, log.Each(func(r *training.Row) error {
		got = append(got, r)
		return nil
	}))
	expect.NoDiff(t, got, want, "result")
	stop, visits := errors.New("stop"), 0
	err := log.Each(func(*training.Row) error {
		visits++
		return stop
	})
	expect.Is(t, err, stop, "error of the callback")
	expect.Equal(t, visits, 1, "rows before the error")
}

// The columns have the names, types and metadata that other programs read.
func TestNewWriter_Columns(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.parquet")
	write(t, path, layout, rows()...)
	file := must.Get(os.Open(path))(t)
	defer file.Close()
	info := must.Get(file.Stat())(t)
	f := must.Get(parquet.OpenFile(file, info.Size()))(t)
	for _, column := range []string{
		"required group outputs (MAP)", "required binary visit (STRING)", "required binary policy (STRING)", "required int64 time (TIMESTAMP(isAdjustedToUTC=true,unit=MICROS))", "optional double propensity",
		"required group choices (LIST)", "optional double feature_age", "optional double output_save",
		"optional double output_proba[1]", "required boolean label_save", "optional double label_save_after", "required int32 choice",
	} {
		expect.Contains(t, f.Schema().String(), "\t"+column, "the schema")
	}
	for key, want := range map[string]string{
		"smartfeed.labels": `{"hide":"1h0m0s","save":"24h0m0s"}`, "smartfeed.outputs": `["save","proba[1]"]`, "smartfeed.topic": `"id"`,
		"smartfeed.features": `["age","taste"]`,
	} {
		got, _ := f.Lookup(key)
		expect.Equal(t, got, want, "metadata %s", key)
	}
}

// The values of columns are the numbers that were written. A missing one, and NaN, are null.
func TestWriter_WritesColumns(t *testing.T) {
	type columns struct {
		Age        *float64 `parquet:"feature_age,optional"`
		Taste      *float64 `parquet:"feature_taste,optional"`
		Save       *float64 `parquet:"output_save,optional"`
		Proba      *float64 `parquet:"output_proba[1],optional"`
		Hide       bool     `parquet:"label_hide"`
		SaveAfter  *float64 `parquet:"label_save_after,optional"`
		Propensity *float64 `parquet:"propensity,optional"`
	}
	path := filepath.Join(t.TempDir(), "a.parquet")
	write(t, path, layout, rows()...)
	want := []columns{{new(7.0), new(0.0), new(0.75), nil, false, new(2.5), new(0.125)}, {}}
	expect.NoDiff(t, must.Get(parquet.ReadFile[columns](path))(t), want, "result")
}

// Files without a model, and with another, have the outputs of one of them.
func TestOpen_UnitesOutputs(t *testing.T) {
	dir := t.TempDir()
	for name, outputs := range map[string][]string{"a": nil, "b": layout.Outputs, "c": {"proba[1]", "hide"}} {
		write(t, filepath.Join(dir, name+".parquet"), training.Layout{Outputs: outputs, Labels: layout.Labels, Topic: layout.Topic})
	}
	expect.NoDiff(t, must.Get(training.Open(dir))(t).Outputs, []string{"save", "proba[1]", "hide"}, "outputs")
}

func TestOpen_Errors(t *testing.T) {
	for name, c := range map[string]struct {
		make func(t *testing.T, dir string)
		want string
	}{
		"no files": {func(*testing.T, string) {}, "no files *.parquet"},
		"no Parquet": {func(t *testing.T, dir string) {
			must.OK(t, os.WriteFile(filepath.Join(dir, "a.parquet"), []byte("text that is no table"), 0o600))
		}, "a.parquet: "},
		"other labels": {func(t *testing.T, dir string) {
			write(t, filepath.Join(dir, "a.parquet"), layout)
			write(t, filepath.Join(dir, "b.parquet"), training.Layout{Labels: map[string]string{"save": "1h0m0s"}, Topic: layout.Topic})
		}, "b.parquet: labels or topic differ"},
		"other topic": {func(t *testing.T, dir string) {
			write(t, filepath.Join(dir, "a.parquet"), layout)
			write(t, filepath.Join(dir, "b.parquet"), training.Layout{Labels: layout.Labels, Topic: "other"})
		}, "b.parquet: labels or topic differ"},
		"no metadata": {func(t *testing.T, dir string) {
			must.OK(t, parquet.WriteFile(filepath.Join(dir, "a.parquet"), []training.Choice{{}}))
		}, "metadata smartfeed."},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			c.make(t, dir)
			expect.Error(t, expect.ErrorOf(training.Open(dir)), c.want, "Open")
		})
	}
	expect.Is(t, expect.ErrorOf(training.Open(filepath.Join(t.TempDir(), "missing"))), fs.ErrNotExist, "missing folder")
}
