package app

import (
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/smartfeed/smartfeed/internal/testkit/eventually"
	"github.com/smartfeed/smartfeed/internal/testkit/expect"
	"github.com/smartfeed/smartfeed/schemas"
)

// retryKinds returns the state of the dead letters, by kind.
func (s httpAPI) retryKinds() map[string]schemas.RetryKind {
	s.t.Helper()
	kinds := map[string]schemas.RetryKind{}
	for _, k := range get[struct{ Kinds []schemas.RetryKind }](s, "/v1/dead-letters/kinds").Kinds {
		kinds[k.Kind] = k
	}
	return kinds
}

// becomes polls until the dead letter of a kind is in a state.
func (s httpAPI) becomes(kind string, state schemas.RetryState) {
	s.t.Helper()
	eventually.True(s.t, kind+" is "+string(state), func() bool { return s.retryKinds()[kind].States[state] == 1 })
}

// An action with an unknown verb becomes a dead letter. After a restart with the verb configured, an automatic retry
// processes it. A stopped kind waits until an operator resumes it.
func TestDeadLetter_TakesEffectOnceCauseIsFixed(t *testing.T) {
	t.Parallel()
	cfg := testConfig(t.TempDir())
	cfg.Retries.InitialDelay, cfg.Retries.LinearAttempts, cfg.Retries.MaxAttempts, cfg.Retries.DoneAfter = 100*time.Millisecond, 1000, 1000, time.Second
	const kind = "actions/objects/verb-unknown-verb-known-are-click"
	s := start(t, cfg)
	s.publish(event(time.Now(), "p", "pins", "user:a", "create", "pin:1", map[string]any{"interests": []string{"interest:tea"}}))
	s.publishDance("user:b", "pin:1")
	s.api().becomes(kind, schemas.RetryWaiting)
	s.api().answers(200, "", "/v1/dead-letters/limits", `{"kind":"`+kind+`","rate":0,"operator":"ann"}`)
	eventually.True(t, "the kind is stopped", func() bool { return s.api().retryKinds()[kind].Operator == "ann" })
	s.stop()

	cfg.Verbs = maps.Clone(cfg.Verbs)
	cfg.Verbs["dance"] = 2
	cfg.settle()
	s = start(t, cfg)
	if got := s.api().retryKinds()[kind]; got.Rate != 0 || got.States[schemas.RetryWaiting]+got.States[schemas.RetrySent]+got.States[schemas.RetryDone] != 1 {
		t.Errorf("after the restart: got %+v, want the dead letter", got)
	}
	s.api().answers(200, "", "/v1/dead-letters/limits", `{"kind":"`+kind+`"}`)
	s.api().becomes(kind, schemas.RetryDone)
	s.wait()
	state := s.api().get("/v1/users/user:b/feed/state")
	expect.Contains(t, strings.ReplaceAll(state, ": ", ":"), `"facet":"interest:tea"`, "affinities after the retried action")
}
