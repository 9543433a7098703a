package training_test

import (
	"errors"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/parquet-go/parquet-go"

	"github.com/smartfeed/smartfeed/internal/testkit/must"
	"github.com/smartfeed/smartfeed/internal/training"
)

var layout = training.Layout{
	Features: []training.Feature{{Name: "age", Width: 1}, {Name: "embedding", Width: 2}},
	Outputs:  []string{"save", "proba[1]"}, Labels: map[string]string{"save": "24h0m0s", "hide": "1h0m0s"}, Topic: "id",
}

func ptr[T any](v T) *T { return &v }

// rows returns a row with every column, and one without those that can be missing.
func rows() []*training.Row {
	at := time.Date(2026, 11, 20, 15, 4, 5, 6000, time.UTC)
	full := &training.Row{
		Item: training.Item{
			Visit: "v1", User: "user:1", Time: at, Feed: "home", Arm: "b", ArmShare: 0.25, UserShare: 0.5, Policy: training.Randomized,
			Position: 3, Pin: "pin:2", Source: "explore", Pool: "interest", Author: "user:9", Score: 1.5, Propensity: ptr(0.125), Choice: 1,
			Choices: []training.Choice{
				{Source: "related", SourceProbability: 0.75, Pin: "pin:1", Probability: 0.5, Score: 2, Outputs: []float64{0.5, 0.25}},
				{Source: "interest", SourceProbability: 0.25, Pin: "pin:2", Probability: 0.125, Score: 1.5, Outputs: []float64{0.75, 1}},
			},
		},
		Features: [][]float64{{7}, {1, 2}}, Outputs: []*float64{ptr(0.75), ptr(1.0)},
		Labels: []training.Label{{Acted: ptr(false)}, {Acted: ptr(true), After: ptr(2.5)}},
	}
	bare := &training.Row{
		Item:     training.Item{Visit: "v2", User: "user:2", Time: at, Policy: training.Deterministic, Choices: []training.Choice{}},
		Features: [][]float64{nil, nil}, Outputs: []*float64{nil, nil}, Labels: []training.Label{{}, {}},
	}
	return []*training.Row{full, bare}
}

func write(t *testing.T, path string, l training.Layout, list ...*training.Row) {
	t.Helper()
	must.OK(t, os.MkdirAll(filepath.Dir(path), 0o755))
	file, err := os.Create(path)
	must.OK(t, err)
	w, err := training.NewWriter(file, l)
	must.OK(t, err)
	for _, r := range list {
		must.OK(t, w.Write(r))
	}
	must.OK(t, w.Close())
	must.OK(t, file.Close())
}

// Rows of several days are read as they were written, except the features, and nulls stay nulls.
func TestRows_RoundTrip(t *testing.T) {
	dir, want := t.TempDir(), rows()
	write(t, filepath.Join(dir, "day=2026-11-20", "part-0.parquet"), layout, want[0])
	write(t, filepath.Join(dir, "day=2026-11-21", "part-0.parquet"), layout, want[1])
	d, err := training.Open(dir)
	must.OK(t, err)
	if verbs := d.Layout.Verbs(); !cmp.Equal(verbs, []string{"hide", "save"}) || !cmp.Equal(d.Layout.Outputs, layout.Outputs) {
		t.Errorf("layout: got verbs %q and outputs %q", verbs, d.Layout.Outputs)
	}
	var got []*training.Row
	for r, err := range d.Rows() {
		must.OK(t, err)
		got = append(got, r)
	}
	for _, r := range want {
		r.Features = nil
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for range d.Rows() {
		break
	}
}

// The columns have the names, types and metadata that other programs read.
func TestNewWriter_Columns(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.parquet")
	write(t, path, layout, rows()...)
	file, err := os.Open(path)
	must.OK(t, err)
	defer file.Close()
	info, err := file.Stat()
	must.OK(t, err)
	f, err := parquet.OpenFile(file, info.Size())
	must.OK(t, err)
	for _, column := range []string{
		"required binary visit (STRING)", "required int64 time (TIMESTAMP(isAdjustedToUTC=true,unit=MICROS))", "optional double propensity",
		"required group choices (LIST)", "optional double feature_age", "optional group feature_embedding (LIST)", "optional double output_save",
		"optional double output_proba[1]", "optional boolean label_save", "optional double label_save_after", "required int32 choice",
	} {
		if !strings.Contains(f.Schema().String(), "\t"+column) {
			t.Errorf("no column %q in\n%s", column, f.Schema())
		}
	}
	for key, want := range map[string]string{
		"smartfeed.labels": `{"hide":"1h0m0s","save":"24h0m0s"}`, "smartfeed.outputs": `["save","proba[1]"]`, "smartfeed.topic": `"id"`,
		"smartfeed.features": `[{"name":"age","width":1},{"name":"embedding","width":2}]`,
	} {
		if got, _ := f.Lookup(key); got != want {
			t.Errorf("metadata %s: got %s, want %s", key, got, want)
		}
	}
}

// A file without a model, and one with another, have null for the outputs that they lack.
func TestOpen_UnitesOutputs(t *testing.T) {
	dir, list := t.TempDir(), rows()
	other := training.Layout{Outputs: []string{"proba[1]"}, Labels: layout.Labels, Topic: layout.Topic}
	row := *list[0]
	row.Features, row.Outputs, row.Choices = nil, []*float64{ptr(0.5)}, []training.Choice{{Pin: "pin:1", Outputs: []float64{0.25}}, {Pin: "pin:2"}}
	write(t, filepath.Join(dir, "a.parquet"), training.Layout{Labels: layout.Labels, Topic: layout.Topic}, &training.Row{Labels: list[1].Labels})
	write(t, filepath.Join(dir, "b.parquet"), layout, list...)
	write(t, filepath.Join(dir, "c.parquet"), other, &row)
	d, err := training.Open(dir)
	must.OK(t, err)
	var got []*training.Row
	for r, err := range d.Rows() {
		must.OK(t, err)
		got = append(got, r)
	}
	want := [][]*float64{{nil, nil}, {ptr(0.75), ptr(1.0)}, {nil, nil}, {nil, ptr(0.5)}}
	for i, r := range got {
		if diff := cmp.Diff(want[i], r.Outputs); diff != "" {
			t.Errorf("outputs of row %d (-want +got):\n%s", i, diff)
		}
	}
	choices := got[3].Choices
	if first := choices[0].Outputs; len(first) != 2 || !math.IsNaN(first[0]) || first[1] != 0.25 || len(choices[1].Outputs) > 0 {
		t.Errorf("outputs of choices: %v", choices)
	}
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
			if _, err := training.Open(dir); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
	if _, err := training.Open(filepath.Join(t.TempDir(), "missing")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("missing folder: got %v", err)
	}
}
