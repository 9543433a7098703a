package actors_test

import (
	"math"
	"sync/atomic"
	"testing"

	"github.com/smartfeed/smartfeed/internal/testkit/deletedtest"
	"github.com/smartfeed/smartfeed/internal/testkit/proctest"
	"github.com/smartfeed/smartfeed/processors/actors"
	"github.com/smartfeed/smartfeed/schemas"
)

// The verbs change with every read. An action has the same weight in affinities and as a neighbor.
func TestAction_HasOneWeight(t *testing.T) {
	t.Parallel()
	w := proctest.New(t)
	cfg := actors.DefaultConfig()
	var reads atomic.Int64
	cfg.CurrentVerbs = func() schemas.Verbs { return schemas.Verbs{schemas.Save: 10 * float64(reads.Add(1))} }
	w.Start("a", actors.Group(cfg, w.Streams, deletedtest.Of()))
	proctest.Publish(w, w.Streams.ActionsJoined, "user:eve", on(1, schemas.Save, now()))
	w.WaitIdle()
	requests, affinities := proctest.Drain(w, w.Streams.RelatedRequests), proctest.Drain(w, w.Streams.Affinities)
	if len(requests) != 1 || len(affinities) != 1 || len(affinities[0].Value.Top) == 0 {
		t.Fatalf("got %+v and %+v, want one record each", requests, affinities)
	}
	if weight, value := requests[0].Value.Weight, affinities[0].Value.Top[0].Value; math.Abs(weight-float64(value)) > 0.5 {
		t.Errorf("weight %v as a neighbor and %v in affinities, want equal weights", weight, value)
	}
}
