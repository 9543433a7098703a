package app

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/smartfeed/smartfeed/schemas"
	"github.com/smartfeed/smartfeed/topics"
)

// retryKinds returns the state of the dead letters, by kind.
func (s door) retryKinds() map[string]schemas.RetryKind {
	s.t.Helper()
	res, err := http.Get(s.base + "/v1/deadletters/kinds")
	if err != nil {
		s.t.Fatal(err)
	}
	defer res.Body.Close()
	var answer struct{ Kinds []schemas.RetryKind }
	if err := json.NewDecoder(res.Body).Decode(&answer); err != nil || res.StatusCode != http.StatusOK {
		s.t.Fatalf("kinds: %d (%v)", res.StatusCode, err)
	}
	kinds := map[string]schemas.RetryKind{}
	for _, k := range answer.Kinds {
		kinds[k.Kind] = k
	}
	return kinds
}

// until polls the state of the dead letters.
func (s door) until(what string, cond func(map[string]schemas.RetryKind) bool) {
	s.t.Helper()
	deadline := time.Now().Add(time.Minute)
	for kinds := s.retryKinds(); !cond(kinds); kinds = s.retryKinds() {
		if time.Now().After(deadline) {
			s.t.Fatalf("not within a minute: %s; there is %+v", what, kinds)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// becomes polls until the letter of a kind is in a state.
func (s door) becomes(kind string, state schemas.RetryState) {
	s.t.Helper()
	s.until(kind+" is "+string(state), func(kinds map[string]schemas.RetryKind) bool { return kinds[kind].States[state] == 1 })
}

// An action with an unknown verb becomes a dead letter. After a restart with the verb configured, it is retried
// automatically and processed. A stopped kind waits until it is resumed.
func TestADeadLetterWhoseCauseGoesAwayHasItsEffect(t *testing.T) {
	t.Parallel()
	cfg := testConfig(t.TempDir())
	cfg.Retries.FirstDelay, cfg.Retries.Linear, cfg.Retries.Attempts, cfg.Retries.Settle = time.Second, 1000, 1000, time.Second
	const kind = "actions/objects/verb-unknown-verb-known-are-click"
	s := start(t, cfg)
	now := time.Now()
	s.publish(map[string]any{"stream": "pins", "id": "p", "time": now.UnixMicro(), "actor": "user:a", "verb": "create", "object": "pin:1", "interests": []string{"interest:tea"}})
	dance := &schemas.ActionEvent{Event: schemas.Event{ID: "d", Time: schemas.MicrosOf(now), Actor: "user:b", Verb: "dance", Object: "pin:1"}}
	if err := s.publisher.Publish(t.Context(), []schemas.Line{{Stream: topics.Actions, Key: "pin:1", Event: dance}}); err != nil {
		t.Fatal(err)
	}
	s.door().becomes(kind, schemas.RetryWaiting)
	if out, err := s.run("deadletters", "limit", kind, "0", "--operator", "ann"); err != nil {
		t.Fatalf("limit: %v %s", err, out)
	}
	s.door().until("the kind is stopped", func(kinds map[string]schemas.RetryKind) bool { return kinds[kind].Operator == "ann" })
	s.stop()

	cfg.Verbs = maps.Clone(cfg.Verbs)
	cfg.Verbs["dance"] = 2
	cfg.settle()
	s = start(t, cfg)
	if got := s.door().retryKinds()[kind]; got.Rate != 0 || got.States[schemas.RetryWaiting]+got.States[schemas.RetrySent]+got.States[schemas.RetryDone] != 1 {
		t.Errorf("after the start there is %+v, want the letter", got)
	}
	if out, err := s.run("deadletters", "limit", kind, "default"); err != nil {
		t.Fatalf("limit: %v %s", err, out)
	}
	s.door().becomes(kind, schemas.RetryDone)
	if out, err := s.run("wait"); err != nil {
		t.Fatalf("wait: %v %s", err, out)
	}
	state := s.door().get("/v1/users/user:b/feed/state")
	if want := fmt.Sprintf(`"facet":%q`, "interest:tea"); !strings.Contains(strings.ReplaceAll(state, ": ", ":"), want) {
		t.Errorf("the dance has left no affinity: %s", state)
	}
}
