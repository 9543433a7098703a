package app

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/smartfeed/smartfeed/internal/testkit/expect"
	"github.com/smartfeed/smartfeed/schemas"
	"github.com/smartfeed/smartfeed/topics"
)

// A user who acts on pins in a language gets a higher score for candidates in that language and its variants. The weights of
// edges stay, because users do not follow languages.
func TestLanguage_OfUserBoostsCandidates(t *testing.T) {
	t.Parallel()
	s := start(t, testConfig(t.TempDir()))
	at := time.Now().Add(-time.Minute)
	s.publish(event(at, "follow", "follows", "user:ada", "follow", "user:bob", nil))
	for pin, language := range map[string]string{"pin:bread": "de", "pin:cake": "de-AT", "pin:tea": "en", "pin:salt": ""} {
		author := map[bool]string{true: "user:carol", false: "user:bob"}[pin == "pin:bread"]
		s.publish(event(at, pin, "pins", author, "create", pin, map[string]any{"language": language}))
	}
	for _, id := range []string{"a", "b", "c"} {
		s.publish(event(at, id, "actions", "user:ada", "save", "pin:bread", nil))
	}
	for pin, want := range map[string]float64{"pin:cake": DefaultConfig().Generator.Feeds["home"].LanguageWeight, "pin:tea": 0, "pin:salt": 0} {
		why := get[schemas.Why](s.api(), "/v1/users/user:ada/feed/why?pin="+pin)
		if len(why.Candidates) != 1 || why.Candidates[0].Parts["language"] != want {
			t.Errorf("%s: candidates %+v, want one with %v for the language", pin, why.Candidates, want)
		}
	}
	if state := get[schemas.FeedState](s.api(), "/v1/users/user:ada/feed/state"); len(state.Affinities) != 2 || state.Affinities[0].Facet != "language:de" {
		t.Errorf("affinities %+v, want those for a language and an author", state.Affinities)
	}
	s.checkNoLoss()
	weighted := map[string]bool{}
	for _, r := range s.records(topics.EdgeWeights) {
		weighted[string(r.Key)] = true
	}
	expect.NoDiff(t, weighted, map[string]bool{"user:carol": true}, "users with weights of edges")

	for _, tag := range []string{"d", "german", "de_AT", "de-", "de-" + strings.Repeat("x", 9), "de" + strings.Repeat("-abcdefg", 5)} {
		line := jsonText(t, event(at, tag, "pins", "user:bob", "create", "pin:x", map[string]any{"language": tag}))
		s.api().answers(http.StatusBadRequest, "is not a BCP 47 language tag, such as de or pt-BR", "/v1/events", line)
	}
}
