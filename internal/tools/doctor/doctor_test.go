package doctor_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/smartfeed/smartfeed/internal/testkit/expect"
	"github.com/smartfeed/smartfeed/internal/testkit/must"
	"github.com/smartfeed/smartfeed/internal/tools/doctor"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// says returns a check that reports say.
func says(name, after string, say func(*doctor.Findings)) doctor.Check {
	return doctor.Check{Name: name, After: after, Examine: func(_ context.Context, found *doctor.Findings) error { say(found); return nil }}
}

func fine(f *doctor.Findings)    { f.OK("fine") }
func warned(f *doctor.Findings)  { f.Warn("act", "degraded") }
func broken(f *doctor.Findings)  { f.Problem("repair", "broken") }
func nothing(f *doctor.Findings) { f.Note("", "missing") }

// lines returns the findings of results, one per line.
func lines(results []doctor.Result) string {
	var all []string
	for _, r := range results {
		for _, f := range r.Findings {
			all = append(all, r.Name+" "+f.Level.String()+" "+f.Message)
		}
	}
	return strings.Join(all, "\n")
}

func TestRun_SkipsDependentChecks(t *testing.T) {
	for _, c := range []struct {
		name string
		a    func(*doctor.Findings)
		want string
	}{
		{"fine", fine, "a ok fine\nb ok fine"},
		{"a warning", warned, "a warning degraded\nb ok fine"},
		{"a problem", broken, "a problem broken\nb note skipped, because it needs a"},
		{"a note", nothing, "a note missing\nb note skipped, because it needs a"},
	} {
		results := doctor.Run(t.Context(), time.Minute, says("a", "", c.a), says("b", "a", fine))
		expect.NoDiff(t, lines(results), c.want, "%s", c.name)
	}
}

func TestRun_LimitsEachCheck(t *testing.T) {
	hangs := doctor.Check{Name: "hangs", Examine: func(ctx context.Context, _ *doctor.Findings) error {
		<-ctx.Done()
		return fmt.Errorf("wait: %w", ctx.Err())
	}}
	results := doctor.Run(t.Context(), time.Millisecond, hangs, says("other", "", fine))
	expect.Equal(t, lines(results), "hangs problem wait: no response within 1ms\nother ok fine", "results")
	expect.AtLeast(t, results[0].Took, time.Millisecond, "duration: the timeout")
}

func TestReport_FormatsTextAndJSON(t *testing.T) {
	results := []doctor.Result{
		{Name: "one", Level: doctor.Problem, Took: 12 * time.Millisecond, Findings: doctor.Findings{
			{Level: doctor.Problem, Message: "it is broken", Advice: "mend it"}, {Level: doctor.Warning, Message: "it is old"},
		}},
		{Name: "two", Level: doctor.OK, Findings: doctor.Findings{{Level: doctor.OK, Message: "fine"}}},
	}
	r := doctor.NewReport("v1", results)
	const want = `problem  one           it is broken  (12ms)
                       → mend it
warning                it is old
ok       two           fine
1 problem, 1 warning
`
	var text, js bytes.Buffer
	must.OK(t, r.Text(&text))
	expect.Equal(t, text.String(), want, "text")
	expect.Equal(t, fmt.Sprint(r.Err()), "1 problem found", "error")
	expect.Error(t, doctor.NewReport("v1", results[1:]).Err(), "", "without a problem")
	var back struct {
		Problems, Warnings int
		Checks             []struct {
			Name, Level string
			TookMS      float64 `json:"took_ms"`
		}
	}
	must.OK(t, json.NewEncoder(&js).Encode(r))
	if err := json.Unmarshal(js.Bytes(), &back); err != nil || back.Problems != 1 || back.Warnings != 1 ||
		len(back.Checks) != 2 || back.Checks[0].Level != "problem" || back.Checks[0].TookMS != 12 {
		t.Errorf("json: %v %+v of %s", err, back, js.String())
	}
}
