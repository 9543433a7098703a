package feature

import (
	"errors"
	"fmt"

	"github.com/smartfeed/smartfeed/schemas"
)

// Evaluation evaluates definitions of entity user or pair over one user's actions that a store hands in, newest first
// and by id descending within a millisecond: for stores that do not know rows. Definitions must be ones that stand for
// themselves; a Service asks for no others. The store holds to Config.MaxActions, and says with StopAt where it stopped.
type Evaluation struct {
	plan *plan
	row  row
	buf  []byte
	last millis
	any  bool
}

// NewEvaluation begins an evaluation of one user.
func NewEvaluation(cfg Config, user schemas.UserID, span Span, defs []Definition) *Evaluation {
	return &Evaluation{plan: newPlan(defs, span, cfg.MaxGroups), row: row{actor: []byte(user)}}
}

// Wanted returns the milliseconds of the actions to look at: after < t ≤ upTo.
func (e *Evaluation) Wanted() (after, upTo int64) {
	return int64(e.plan.widest.after), int64(e.plan.widest.upTo)
}

var errOrder = errors.New("actions do not come newest first")

// Add takes the next action.
func (e *Evaluation) Add(a *schemas.EnrichedAction) error {
	t := floor(a.Timestamp)
	if e.any && t > e.last {
		return errOrder
	}
	e.any, e.last = true, t
	if !e.plan.widest.holds(t) {
		return nil
	}
	e.buf = appendAction(e.buf[:0], a)
	e.row.time = t
	if err := e.row.decode(e.buf); err != nil {
		return fmt.Errorf("evaluate action %s: %w", a.ID, err)
	}
	e.plan.add(&e.row)
	return nil
}

// StopAt says that there may be actions of a time, or before it, that Add is not given: what needs them has the reason Cap.
func (e *Evaluation) StopAt(from schemas.Micros) { e.plan.stopAt(floor(from)) }

// Results returns the results in the order of the definitions.
func (e *Evaluation) Results() []Result { return e.plan.results() }

// Counts returns the result of a definition with the aggregate Count or Rate, without half-life, whose actions a store
// has counted by itself: in all, or by group where the definition has a grouping,
// of which there are no more than Config.MaxGroups.
func (d Definition) Counts(span Span, total float64, groups map[string]float64) Result {
	res := Result{Value: Number(d.scale(total))}
	if !d.GroupBy.isZero() {
		all := Groups{}
		for g, n := range groups {
			all[g] = d.scale(n)
		}
		res.Value = all
	}
	if span.stretch(d.Window).cut {
		res.Reasons = append(res.Reasons, Window)
	}
	return res
}

// Paths returns every path that the definition looks at.
func (d Definition) Paths() []Path {
	var all []Path
	for _, c := range d.Where {
		all = append(all, c.Path)
	}
	for _, p := range []Path{d.GroupBy, d.Of} {
		if !p.isZero() {
			all = append(all, p)
		}
	}
	return all
}
