package feature

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/smartfeed/smartfeed/internal/testkit/expect"
	"github.com/smartfeed/smartfeed/internal/testkit/must"
	"github.com/smartfeed/smartfeed/schemas"
)

func TestAnswer_EvaluatesFeatureSets(t *testing.T) {
	s, _ := serviceOf{store: empty{}}.start(t)
	got := must.Get(s.Answer(t.Context(), Request{
		Features: []string{"saves", "all"}, FeatureSets: []string{"saving", "all_of_pins"},
		Users: []schemas.UserID{"user:1"}, Pins: []schemas.PinID{"pin:1"}, Pairs: []UserPin{{"user:1", "pin:1"}},
	}))(t)
	names := map[string][]string{}
	for entity, values := range got.Values {
		names[entity] = slices.Sorted(maps.Keys(values))
	}
	want := map[string][]string{"user:1": {"all", "saves"}, "pin:1": {"pin_actors", "pin_saves"}, "user:1|pin:1": {"pair_author"}}
	same(t, "features", want, names)
}

func TestRequest_RejectsTooManyValues(t *testing.T) {
	var defs []Definition
	req := Request{}
	for i := range 51 {
		name := fmt.Sprint("f", i)
		defs = append(defs, Definition{Name: name, Entity: Pin})
		req.Features = append(req.Features, name)
	}
	for i := range 1000 {
		req.Pins = append(req.Pins, schemas.PinID(fmt.Sprint("pin:", i)))
	}
	set := must.Get(newDefinitionSet(defs))(t)
	expect.Error(t, expect.ErrorOf(req.checked(set, now)), "51000 values: at most 50000", "too many values")
}

// wide is a store whose users have groups of 1 MiB of text, and whose pins have embeddings of that size.
type wide struct{ empty }

func (wide) Actions(_ context.Context, user schemas.UserID, _ Span, defs []Definition) ([]Result, time.Time, error) {
	return slices.Repeat([]Result{{Value: Groups{string(user) + strings.Repeat("x", 1<<20): 1}}}, len(defs)), time.Time{}, nil
}

func (wide) Pins(_ context.Context, pins []schemas.PinID, _ bool) (map[schemas.PinID]PinAttributes, time.Time, error) {
	all := map[schemas.PinID]PinAttributes{}
	for _, pin := range pins {
		all[pin] = PinAttributes{Embedding: make([]float32, 1<<20/numberBytes)}
	}
	return all, time.Time{}, nil
}

func TestAnswer_BoundsItsSize(t *testing.T) {
	cfg := DefaultConfig()
	cfg.Timeout = time.Minute // the values have 64 MiB
	s, _ := serviceOf{store: wide{}, cfg: cfg}.start(t)
	req := Request{Features: []string{"saves", "all"}}
	attributes := AttributesRequest{Embeddings: true}
	for i := range 70 {
		req.Users = append(req.Users, schemas.UserID(fmt.Sprint("user:", i)))
		attributes.Pins = append(attributes.Pins, schemas.PinID(fmt.Sprint("pin:", i)))
	}
	got := must.Get(s.Answer(t.Context(), req))(t)
	bytes := 0
	for _, values := range got.Values {
		bytes += size(values["saves"]) + size(values["all"])
	}
	if want := 2*70 - 63; bytes > MaxAnswerBytes || len(got.Missing) != want || !slices.Equal(got.Degraded, []string{"size"}) {
		t.Errorf("got values of %d bytes, %d missing, degraded %v, want %d missing for the size", bytes, len(got.Missing), got.Degraded, want)
	}
	if i := slices.IndexFunc(got.Missing, func(m Missing) bool { return m.Reason != TooLarge || got.Values[m.Entity][m.Feature] != nil }); i >= 0 {
		t.Errorf("missing: %v", got.Missing[i])
	}
	known := must.Get(s.Attributes(t.Context(), attributes))(t)
	if len(known.Pins) != 64 || len(known.Missing) != 6 || known.Missing[0].Reason != TooLarge || !slices.Equal(known.Degraded, []string{"size"}) {
		t.Errorf("got %d pins, missing %v, degraded %v", len(known.Pins), known.Missing, known.Degraded)
	}
}
