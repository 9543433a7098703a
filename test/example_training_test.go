package test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/smartfeed/smartfeed/internal/testkit/expect"
	"github.com/smartfeed/smartfeed/internal/testkit/must"
	"github.com/smartfeed/smartfeed/internal/training"
)

// A model that is trained on exported visits of a simulated product, and served by the Open Inference Protocol, raises the save
// rate of its arm. examples/training/demo.py fails otherwise.
func TestExample_TrainingLoop(t *testing.T) {
	python := filepath.Join(exampleTools(t), "training/bin/python")
	program := filepath.Join(t.TempDir(), "smartfeed")
	if out, err := exec.Command("go", "build", "-o", program, ".").CombinedOutput(); err != nil {
		t.Fatalf("build: %v\n%s", err, out)
	}
	out, err := exec.CommandContext(t.Context(), python, "examples/training/demo.py", program, "--users", "40", "--visits", "3").CombinedOutput()
	t.Logf("%s", out)
	must.OK(t, err)
	expect.Contains(t, string(out), "the arm with the model is better\n", "demo.py")
}

// DuckDB reads every kind of column: times, lists of structs with maps, flags, and nulls.
func TestExample_DuckDBReadsTrainingRows(t *testing.T) {
	python, path := filepath.Join(exampleTools(t), "training/bin/python"), filepath.Join(t.TempDir(), "rows.parquet")
	file := must.Get(os.Create(path))(t)
	w := must.Get(training.NewWriter(file, training.Layout{
		Features: []string{"taste"}, Outputs: []string{"save[1]"},
		Labels: map[string]string{"save": "1h0m0s"},
	}))(t)
	item := training.Item{
		Visit: "v1", Time: time.Date(2026, 11, 20, 1, 2, 3, 4000, time.UTC), Propensity: 0.5, Choice: 1,
		Choices: []training.Choice{{Source: "related", Pin: "pin:1", Probability: 0.25, Outputs: map[string]float64{"save[1]": 2}}},
	}
	must.OK(t, w.Write(item, training.Columns{
		"feature_taste": 1, "output_save[1]": 4, "label_save": 1, "label_save_after": 5.5,
	}))
	must.OK(t, w.Write(training.Item{}, nil))
	must.OK(t, w.Close())
	must.OK(t, file.Close())
	const code = `import duckdb, sys
duckdb.sql("SET TimeZone = 'UTC'")
for row in duckdb.sql(f"""SELECT time::VARCHAR, propensity, choices, feature_taste, "output_save[1]", label_save, label_save_after
    FROM '{sys.argv[1]}' ORDER BY visit DESC""").fetchall(): print(row)`
	out, err := exec.Command(python, "-c", code, path).CombinedOutput()
	want := "('2026-11-20 01:02:03.000004+00', 0.5, [{'source': 'related', 'source_probability': 0.0, 'pin': 'pin:1', 'probability': 0.25, " +
		"'score': 0.0, 'outputs': {'save[1]': 2.0}}], 1.0, 4.0, True, 5.5)\n"
	if err != nil || !strings.HasPrefix(string(out), want) || !strings.HasSuffix(string(out), ", None, [], None, None, False, None)\n") {
		t.Errorf("%v\ngot  %s\nwant %s", err, out, want)
	}
}

// The tutorial shows the features and the configuration of the demo.
func TestExample_TrainingTutorialShowsFiles(t *testing.T) {
	tutorial := string(must.Get(os.ReadFile("docs/tutorials/train-and-serve.md"))(t))
	for _, file := range []string{"features.yaml", "smartfeed.yaml"} {
		for line := range strings.Lines(string(must.Get(os.ReadFile("examples/training/" + file))(t))) {
			setting, _, _ := strings.Cut(strings.TrimRight(line, "\n"), " #")
			if setting = strings.TrimRight(setting, " "); shown(setting) && !strings.Contains(tutorial, setting+"\n") {
				t.Errorf("the tutorial does not show %q of %s", setting, file)
			}
		}
	}
}

// shown reports whether a tutorial shows a line of a file: not comments, and not what only the demo needs.
func shown(setting string) bool {
	for _, hidden := range []string{"#", "    timeout:", "      shares:", "feed:", "feature:", "outgoing:", "  allowed_networks:"} {
		if strings.HasPrefix(setting, hidden) {
			return false
		}
	}
	return setting != ""
}
