package conformance

import (
	"encoding/json"
	"log/slog"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/smartfeed/smartfeed/internal/testkit/expect"
	"github.com/smartfeed/smartfeed/internal/testkit/must"
	"github.com/smartfeed/smartfeed/schemas"
	"github.com/smartfeed/smartfeed/serving/feature"
)

func TestEmbedded(t *testing.T) {
	const now = schemas.Micros(1_700_000_000_123_456) // not a multiple of a millisecond
	dir := t.TempDir()
	open := func(cfg feature.Config) *feature.EmbeddedStore {
		t.Helper()
		s := must.Get(feature.OpenEmbedded(dir, cfg, slog.New(slog.DiscardHandler), func() time.Time { return now.Time() }))(t)
		t.Cleanup(func() { _ = s.Close() })
		return s
	}
	s := open(feature.DefaultConfig())
	run(t, s, now)
	must.OK(t, s.Close())
	few := feature.DefaultConfig()
	few.MaxGroups = fewGroups
	runFewGroups(t, open(few), now)
}

// Parse reads the JSON of definitions, because JSON is YAML.
func TestDefinition_RoundTripsJSON(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := []feature.Definition{definitions().Draw(t, "definition")}
		text := must.Get(json.Marshal(map[string][]feature.Definition{"features": want}))(t)
		got := must.Get(feature.Parse("f", text))(t)
		expect.NoDiffBut(t, cmp.Comparer(func(a, b feature.Path) bool { return a == b }), got, want, "definitions")
	})
}
