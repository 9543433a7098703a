package app

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/smartfeed/smartfeed/internal/testkit/eventually"
	"github.com/smartfeed/smartfeed/internal/testkit/expect"
	"github.com/smartfeed/smartfeed/internal/testkit/must"
	"github.com/smartfeed/smartfeed/schemas"
	"github.com/smartfeed/smartfeed/serving/feature"
)

// "features history" adds the values that the service returned at the time of each row, for users, pins and pairs, although
// more actions have arrived since, and pins have changed and were deleted.
func TestFeatureHistory_EqualsServedValues(t *testing.T) {
	t.Parallel()
	cfg := testConfig(t.TempDir())
	cfg.FeaturesFile = filepath.Join(cfg.Dir, "features.yaml")
	define(t, cfg.FeaturesFile, strings.Replace(feature.Builtin, "\nfeature_sets:\n", "\nfeature_sets:\n  pairs: [pair_author_96h, pair_taste, pair_price]\n", 1)+`
  - {name: pair_price, entity: pair, aggregate: count, group_by: objectAttributes.price}
`)
	s := start(t, cfg)
	names := []string{"interests_24h", "verbs_1h", "last_actions", "taste_24h", "pins_24h", "pin_actions_24h", "pin_actors_24h", "pin_saves_per_hour_1h"}
	random := rand.New(rand.NewPCG(3, 4))
	var rows strings.Builder
	var served []map[string]any
	for round := range 6 {
		s.publish(lifeOfPins(random, round)...)
		for range 4 {
			row, values := s.served(random, names)
			served = append(served, values)
			fmt.Fprintln(&rows, row)
		}
	}
	dir := t.TempDir()
	in, out := filepath.Join(dir, "rows.jsonl"), filepath.Join(dir, "out.jsonl")
	must.OK(t, os.WriteFile(in, []byte(rows.String()), 0o600))
	features := strings.Join(names, ",") + ",@pairs"
	args := []string{"features", "history", "--rows", in, "--features", features, "--out", out, "--features_file", cfg.FeaturesFile}
	text := must.Get(s.run(args...))(t)
	expect.Contains(t, text, "wrote 24 rows", "history")
	values := 0
	lines := strings.Split(strings.TrimSpace(string(must.Get(os.ReadFile(out))(t))), "\n")
	for i, line := range lines {
		var got struct{ Values map[string]any }
		must.OK(t, json.Unmarshal([]byte(line), &got))
		expect.NoDiffBut(t, cmpopts.EquateApprox(1e-6, 1e-6), got.Values, served[i], "%s (-served +history)", line[:120])
		for _, value := range got.Values {
			if text := fmt.Sprint(value); text != "<nil>" && text != "0" && text != "map[]" && text != "[]" {
				values++
			}
		}
	}
	expect.Equal(t, len(lines), len(served), "rows")
	expect.AtLeast(t, values, 100, "values that are neither null nor empty")
}

// lifeOfPins returns changes of pins, and random actions on them, some of which arrive late.
func lifeOfPins(random *rand.Rand, round int) []map[string]any {
	now := time.Now()
	s := story{prefix: fmt.Sprint("h", round, "-")}
	for i := range 5 {
		verb := "update"
		if round == 0 {
			verb = "create"
		}
		s.addAt(now, "pins", "user:author", verb, fmt.Sprint("pin:", i), map[string]any{
			"interests": []string{fmt.Sprint("interest:", random.IntN(2))}, "embedding": []float64{random.Float64(), 1},
			"attributes": map[string]string{"price": fmt.Sprint(10 * random.IntN(3))},
		})
	}
	if round == 4 {
		s.addAt(now, "pins", "user:author", "delete", "pin:4", nil)
	}
	for range 20 {
		at := now.Add(-time.Duration(random.IntN(30*60)) * time.Minute)
		s.addAt(at, "actions", fmt.Sprint("user:", random.IntN(3)), []string{"view", "click", "save"}[random.IntN(3)], fmt.Sprint("pin:", random.IntN(5)), nil)
	}
	return s.events
}

// served returns a row with a random user and pin, and the values that the service returns for it now.
func (s *started) served(random *rand.Rand, names []string) (row string, values map[string]any) {
	s.t.Helper()
	user, pin := schemas.UserID(fmt.Sprint("user:", random.IntN(4))), schemas.PinID(fmt.Sprint("pin:", random.IntN(6)))
	answer := post[struct {
		Values   map[string]map[string]any
		Degraded []string
		AsOf     time.Time `json:"as_of"`
	}](s.api(), "/v1/features", jsonText(s.t, feature.Request{
		Features: names, FeatureSets: []string{"pairs"}, Users: []schemas.UserID{user}, Pins: []schemas.PinID{pin}, Pairs: []feature.UserPin{{User: user, Pin: pin}},
	}))
	if len(answer.Degraded) > 0 {
		s.t.Fatalf("features: degraded %v", answer.Degraded)
	}
	values = map[string]any{}
	for _, of := range answer.Values {
		for name, value := range of {
			values[name] = value
		}
	}
	eventually.True(s.t, "the next millisecond, the resolution of arrivals", func() bool { return time.Now().UnixMilli() > answer.AsOf.UnixMilli() })
	return fmt.Sprintf(`{"user":%q,"pin":%q,"time":%q}`, user, pin, answer.AsOf.Format(time.RFC3339Nano)), values
}
