package feature

import (
	"errors"
	"fmt"

	"github.com/smartfeed/smartfeed/schemas"
)

// Evaluation evaluates definitions of entity user or pair over the actions of one user, for stores without rows. The
// store passes the actions newest first, and by id descending within a millisecond. The definitions must be
// self-contained; a Service requests no others. The store enforces Config.MaxActions and calls StopAt where it stops.
type Evaluation struct {
	plan *plan
	row  row
	buf  []byte
	last millis
	any  bool
}

// NewEvaluation returns an evaluation for one user.
func NewEvaluation(cfg Config, user schemas.UserID, span Span, defs []Definition) *Evaluation {
	return &Evaluation{plan: newPlan(defs, span, cfg.MaxGroups), row: row{actor: []byte(user)}}
}

// Wanted returns the time range of the actions to pass, in milliseconds: after < t ≤ upTo.
func (e *Evaluation) Wanted() (after, upTo int64) {
	return int64(e.plan.widest.after), int64(e.plan.widest.upTo)
}

var errOrder = errors.New("actions do not come newest first")

// Add adds the next action. It returns an error if the action is newer than the previous one.
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

// StopAt records that actions at this time or earlier may not have been passed to Add. Definitions that need them get
// the reason Cap.
func (e *Evaluation) StopAt(from schemas.Micros) { e.plan.stopAt(floor(from)) }

// Results returns the results in the order of the definitions.
func (e *Evaluation) Results() []Result { return e.plan.results() }

// Counts returns the result of a definition with the aggregate Count or Rate, without half-life, whose actions the
// store has counted itself. The counts are a total, or one per group if the definition has a grouping. There are at
// most Config.MaxGroups groups.
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

// Paths returns every path that the definition reads.
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
