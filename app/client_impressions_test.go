package app

import (
	"net/http"
	"path/filepath"
	"testing"
	"time"

	"github.com/smartfeed/smartfeed/internal/testkit/expect"
	"github.com/smartfeed/smartfeed/schemas"
	"github.com/smartfeed/smartfeed/serving/feature"
	"github.com/smartfeed/smartfeed/serving/featurelog"
)

// Impressions that a front end reports are validated, joined with their pins, and counted once for the user and not for
// the pins. Impressions of visits count for the pins.
func TestClientImpressions_CountForUserOnce(t *testing.T) {
	t.Parallel()
	cfg := testConfig(t.TempDir())
	cfg.FeatureLog.Rules = []featurelog.Rule{{Entity: feature.User, Share: 1}, {Entity: feature.Pin, Share: 1}}
	cfg.FeaturesFile = filepath.Join(cfg.Dir, "features.yaml")
	define(t, cfg.FeaturesFile, feature.Builtin+`
  - {name: on_screen, entity: user, verbs: impression, aggregate: count, group_by: objectAttributes.author}
  - {name: of_visit, entity: user, verbs: impression, aggregate: count, where: {verbAttributes.visit: v-1}}
`)
	s := start(t, cfg)
	at := time.Now().Add(-time.Minute).Format(time.RFC3339Nano)
	seen := func(id, visit string, pins ...string) map[string]any {
		return map[string]any{"stream": schemas.StreamClientImpressions, "id": id, "time": at, "user": "user:ada", "visit": visit, "pins": pins}
	}
	for _, pin := range []string{"pin:1", "pin:2"} {
		s.publish(map[string]any{"stream": "pins", "id": pin, "time": at, "actor": "user:bob", "verb": "create", "object": pin})
	}
	s.publish(seen("seen-1", "v-1", "pin:1", "pin:2", "pin:1"), seen("seen-1", "v-1", "pin:1", "pin:2"))
	s.publish(seen("seen-1", "v-1", "pin:1", "pin:2"), seen("seen-2", "v-2", "pin:2"))

	features := []string{"on_screen", "of_visit", "pin_impressions_24h", "pin_actions_24h"}
	answer := post[struct{ Values map[string]map[string]any }](s.api(), "/v1/features",
		jsonText(t, feature.Request{Features: features, Users: []schemas.UserID{"user:ada"}, Pins: []schemas.PinID{"pin:1"}}))
	want := map[string]map[string]any{
		"user:ada": {"on_screen": map[string]any{"user:bob": 3.0}, "of_visit": 2.0},
		"pin:1":    {"pin_impressions_24h": 0.0, "pin_actions_24h": map[string]any{}},
	}
	expect.NoDiff(t, answer.Values, want, "features")
	for _, d := range s.verify() {
		expect.Equal(t, [2]int{d.Bad(), d.Equal}, [2]int{0, 1}, "bad and equal values of %+v", d)
	}

	const bad = `{"stream":"client-impressions","id":"seen-3","time":1,"user":"pin:1","visit":"","pins":[]}`
	s.api().answers(http.StatusBadRequest, `user: id \"pin:1\": want user:…; visit: empty; pins: empty`, "/v1/events", bad)
}
