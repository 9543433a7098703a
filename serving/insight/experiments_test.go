package insight_test

import (
	"context"
	"testing"
	"time"

	"github.com/smartfeed/smartfeed/internal/experiment"
	"github.com/smartfeed/smartfeed/internal/testkit/expect"
	"github.com/smartfeed/smartfeed/internal/testkit/must"
	"github.com/smartfeed/smartfeed/schemas"
	"github.com/smartfeed/smartfeed/serving/insight"
)

// experiments returns a service for the feeds home, with the arms "" and b, and quiet, without visits.
func experiments(parts fakeParts) *insight.Service {
	cfg := insight.Config{Partitions: partitions, SequenceDays: 35, Timeout: time.Minute, Arms: func() map[string]map[string]float64 {
		return map[string]map[string]float64{"home": {"": 0.5, "b": 0.5}, "quiet": {"": 1}}
	}}
	return insight.NewService(cfg, parts, func() time.Time { return now })
}

// part returns a tally of an arm in which each of n users has two items, and every other user saved.
func part(arm string, n int) experiment.Tally {
	a := experiment.ActionTally{Verb: "save", Count: n / 2}
	for i := range n {
		a.PerItem.Add(float64(i%2), 2)
	}
	return experiment.Tally{Feed: "home", Count: experiment.Count{Arm: arm, Users: n, Visits: n, Items: 2 * n}, Actions: []experiment.ActionTally{a}}
}

// The users of all partitions count, with the present shares. A feed without visits has its arms, and an arm that the
// configuration lacks has no share.
func TestExperiments_AddsUpAllPartitions(t *testing.T) {
	got := must.Get(experiments(func(_ context.Context, r schemas.InsightRequest) (*schemas.InsightPart, error) {
		if r.Experiments.Days != 3 || len(r.Experiments.Verbs) != 1 || r.Experiments.Verbs[0] != "save" {
			t.Errorf("got the request %+v", r.Experiments)
		}
		part := &schemas.InsightPart{Experiments: []experiment.Tally{part("", 100), part("b", 60)}}
		if r.Partition == 3 {
			part.Experiments = []experiment.Tally{}
		}
		return part, nil
	}).Experiments(t.Context(), []schemas.Verb{"save"}, 3))(t)
	if len(got) != 2 || got[0].Feed != "home" || got[1].Feed != "quiet" || len(got[1].Arms) != 1 {
		t.Fatalf("got %+v, want both feeds", got)
	}
	home := got[0]
	if r := home.SampleRatio; r == nil || !r.Mismatch || home.Arms[0].Users != 1500 || home.Arms[1].Users != 900 || home.Arms[1].Arm != "b" || home.Arms[1].Share != 0.5 {
		t.Errorf("got %+v, want a mismatch of 1500 and 900 users", home)
	}
	if a := home.Arms[1].Actions[0]; a.Count != 450 || a.PerItem.Value != 0.25 || a.Difference.Value != 0 || a.DaysNeeded == nil {
		t.Errorf("got %+v, want the rate 0.25, and no difference", a)
	}
}

// Without the part of a process, or with one of an earlier release, there is no answer.
func TestExperiments_Errors(t *testing.T) {
	for want, part := range map[string]*schemas.InsightPart{
		"has no experiments":    {Hours: []schemas.Popular{}},
		"has 0 actions, want 1": {Experiments: []experiment.Tally{{Feed: "home"}}},
	} {
		service := experiments(func(context.Context, schemas.InsightRequest) (*schemas.InsightPart, error) { return part, nil })
		expect.Error(t, expect.ErrorOf(service.Experiments(t.Context(), []schemas.Verb{"save"}, 3)), want, "Experiments")
	}
	for _, c := range []struct {
		verbs []schemas.Verb
		days  int
	}{{nil, 1}, {make([]schemas.Verb, insight.MaxActions+1), 1}, {[]schemas.Verb{"save"}, 0}, {[]schemas.Verb{"save"}, 36}} {
		_, err := experiments(nil).Experiments(t.Context(), c.verbs, c.days)
		_, isRequest := err.(*insight.RequestError)
		expect.True(t, isRequest, "%d verbs, %d days: got %v, want a RequestError", len(c.verbs), c.days, err)
	}
}
