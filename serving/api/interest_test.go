package api

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/smartfeed/smartfeed/schemas"
)

// decided is a dictionary that keeps the last decision, and reports some decisions as uncertain.
type decided struct {
	terms
	last map[string]schemas.InterestDecision
	lost bool // the decision is recorded, but its sender does not learn of it
}

func (d *decided) Decided(term string) (schemas.InterestDecision, bool) {
	last, ok := d.last[term]
	return last, ok
}

func (d *decided) Decide(_ context.Context, decision schemas.InterestDecision) error {
	d.last[decision.Term] = decision
	if d.lost {
		return errors.New("no answer in time")
	}
	return nil
}

// A decision that is repeated because its outcome was unknown does not undo a later decision.
func TestARepeatedDecisionIsNoNewOne(t *testing.T) {
	for _, c := range []struct {
		time   string // of the first decision
		repeat int
		want   schemas.TermState // in the end
	}{
		{`,"time":"2026-11-20T11:59:00Z"`, 409, schemas.TermRejected},
		{"", 200, schemas.TermAccepted},
	} {
		d := &decided{last: map[string]schemas.InterestDecision{}}
		s := listen(t, &fakes{}, func(_ *Config, deps *Deps) { deps.Dictionary = d })
		decide := func(want int, body string) {
			t.Helper()
			if got := ask(s, "POST", "/v1/dictionary/decisions", body).StatusCode; got != want {
				t.Errorf("%s: got %d, want %d", body, got, want)
			}
		}
		accept := fmt.Sprintf(`{"term":"oolong","state":"accepted"%s}`, c.time)
		d.lost = true
		decide(503, accept)
		d.lost = false
		decide(200, accept) // accepted, because there is no later decision
		decide(200, `{"term":"oolong","state":"rejected","reason":"a brand"}`)
		decide(c.repeat, accept)
		if got := d.last["oolong"].State; got != c.want {
			t.Errorf("with%s: the term is %s in the end, want %s", c.time, got, c.want)
		}
	}
}
