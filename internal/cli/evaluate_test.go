package cli

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/smartfeed/smartfeed/internal/testkit/expect"
	"github.com/smartfeed/smartfeed/internal/testkit/must"
	"github.com/smartfeed/smartfeed/internal/tools/evaluate"
	"github.com/smartfeed/smartfeed/internal/training"
	"github.com/smartfeed/smartfeed/schemas"
)

// exported writes rows of two arms, and returns their folder. A user saves a third of the related pins, and no other pins.
func exported(t *testing.T, policy schemas.Policy) string {
	t.Helper()
	dir, random := t.TempDir(), rand.New(rand.NewPCG(1, 2))
	file := must.Get(os.Create(filepath.Join(dir, "part-0.parquet")))(t)
	w := must.Get(training.NewWriter(file, training.Layout{Labels: map[string]string{"save": "24h0m0s"}}))(t)
	for i := range 400 {
		choice := int32(i / 2 % 2)
		acted := choice == 1 && random.IntN(3) == 0
		must.OK(t, w.Write(training.Item{
			Visit: fmt.Sprint("visit:", i), User: fmt.Sprint("user:", i), Time: now.Add(time.Duration(i) * time.Minute), Feed: "home",
			Arm: []string{"", "b"}[i%2], ArmShare: 0.5, UserShare: 1, Policy: policy, Pin: []string{"pin:1", "pin:2"}[choice], Propensity: 0.5, Choice: choice,
			Choices: []training.Choice{
				{Source: "following", SourceProbability: 0.5, Pin: "pin:1", Probability: 0.5}, {Source: "related", SourceProbability: 0.5, Pin: "pin:2", Probability: 0.5},
			},
		}, training.Columns{"label_save": map[bool]float64{true: 1}[acted]}))
	}
	must.OK(t, w.Close())
	must.OK(t, file.Close())
	return dir
}

// The command compares the arms, and estimates a policy with three times as many related pins per pin of followees.
func TestEvaluate_PrintsArmsAndPolicy(t *testing.T) {
	dir, policy := exported(t, schemas.PolicyRandomized), write(t, "feed: home\nshares: {following: 1, related: 3}\n")
	out := must.Get(run(t, "evaluate", dir, "--policy", policy, "--action", "save"))(t)
	for _, want := range []string{"home  {p_value: 1, mismatch: false}", "home  b    save ", "policy.effective_sample_size    320\npolicy.overlap                0.800\n", "DOUBLY_ROBUST"} {
		expect.Contains(t, out, want, "output")
	}
	out = must.Get(run(t, "evaluate", dir, "--policy", policy, "-o", "json"))(t)
	var report evaluate.Report
	must.OK(t, json.Unmarshal([]byte(out), &report))
	if a := report.Policy.Actions[0]; a.IPS.Value < 1.49*a.Logged.Value || a.IPS.Value > 1.51*a.Logged.Value || report.Experiments[0].Arms[1].Users != 200 {
		t.Errorf("got %s, want 1.5 times the logged rate, and 200 users in each arm", out)
	}
}

// A log that cannot answer for the policy has exit code 1, and the arms are printed.
func TestEvaluate_RefusesDeterministicLog(t *testing.T) {
	code, out, problems := execute(t, nil, "evaluate", exported(t, schemas.PolicyDeterministic), "--policy", write(t, "feed: home\n"))
	if code != 1 || !strings.Contains(out, "home  b    save ") || !strings.Contains(problems, "set generator.feeds.home.randomize") {
		t.Errorf("exit code %d, printed %q and %q", code, out, problems)
	}
	expect.Error(t, expect.ErrorOf(run(t, "evaluate", t.TempDir())), "no files *.parquet", "an empty folder")
}
