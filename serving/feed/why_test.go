package feed

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/smartfeed/smartfeed/internal/testkit/expect"
	"github.com/smartfeed/smartfeed/internal/testkit/must"
	"github.com/smartfeed/smartfeed/schemas"
)

// fakeExplainer returns a fixed answer and records the request.
type fakeExplainer struct {
	fault  fault
	answer schemas.Why
	asked  schemas.WhyRequest
}

func (e *fakeExplainer) Why(ctx context.Context, r schemas.WhyRequest) (*schemas.Why, error) {
	e.asked = r
	return &e.answer, e.fault.inject(ctx)
}

func newWhyRig(t *testing.T) (*rig, *fakeExplainer) {
	t.Helper()
	r, e := newRig(t, nil), &fakeExplainer{}
	r.deps.Explainer, r.deps.Now = e, func() time.Time { return time.UnixMicro(77) }
	return r, e
}

func TestWhy_SendsStoredCard(t *testing.T) {
	r, e := newWhyRig(t)
	card := schemas.Card{PinVersion: schemas.PinVersion{Pin: "pin:1", Quality: 2}, Title: "Tea"}
	r.store.cards["pin:1"] = card
	e.answer = schemas.Why{
		Fate: schemas.FateDeferred, Reason: schemas.ReasonDeferredEarlier, By: []schemas.ID{"user:a"}, Arm: "calm", Since: 5, Degraded: []string{"model"},
		Candidates: []schemas.WhyCandidate{{Source: schemas.Following, Rank: 4, RankScore: 1, Parts: map[string]float64{"created": 1}}},
	}
	got := must.Get(r.Why(t.Context(), viewer, "home", "pin:1", false))(t)
	same(t, "request", e.asked, schemas.WhyRequest{User: viewer, Pin: "pin:1", Feed: "home", Limit: whyLimit, Time: 77, Card: &card})
	same(t, "answer", got, &schemas.Why{
		User: viewer, Pin: "pin:1", Feed: "home", Arm: "calm", Fate: schemas.FateDeferred, Reason: schemas.ReasonDeferredEarlier,
		By: []schemas.ID{"user:a"}, Since: 5, Degraded: []string{"model"},
		Candidates: []schemas.WhyCandidate{{Source: schemas.Following, Rank: 4, RankScore: 1, Parts: map[string]float64{"created": 1}}},
	})
}

// The materialized feed provides what the generator no longer remembers of a shown pin.
func TestWhy_CompletesShownFromStore(t *testing.T) {
	r, e := newWhyRig(t)
	r.store.materialize(entriesDown(3, 1)...)
	score := schemas.RankScore(1)
	for name, c := range map[string]struct {
		pin        schemas.PinID
		remembered schemas.Shown
		want       schemas.Shown
	}{
		"remembered":        {"pin:f2", schemas.Shown{Source: "interest", RankScore: &score}, schemas.Shown{Source: "interest", RankScore: &score}},
		"materialized":      {"pin:f2", schemas.Shown{}, schemas.Shown{Source: schemas.Following, RankScore: &score}},
		"trimmed, or swept": {"pin:other", schemas.Shown{}, schemas.Shown{}},
	} {
		shown := c.remembered
		shown.Position, shown.Time = 2, 9
		e.answer = schemas.Why{Fate: schemas.FateShown, Shown: &shown}
		got := must.Get(r.Why(t.Context(), viewer, "home", c.pin, false))(t)
		c.want.Position, c.want.Time = 2, 9
		same(t, name, got.Shown, &c.want)
	}
}

func TestWhy_DegradesWithoutStore(t *testing.T) {
	r, e := newWhyRig(t)
	r.store.facts.err = errFake
	e.answer = schemas.Why{Fate: schemas.FateShown, Shown: &schemas.Shown{Position: 2}}
	got := must.Get(r.Why(t.Context(), viewer, "home", "pin:1", false))(t)
	same(t, "degraded", got.Degraded, schemas.List[string]{"store"})
	if e.asked.Card != nil || got.Shown.Source != "" || r.store.facts.hits.Load() != 1 {
		t.Errorf("requested with %v, got %+v, store called %d times", e.asked.Card, got.Shown, r.store.facts.hits.Load())
	}
}

func TestWhyErrors(t *testing.T) {
	r, e := newWhyRig(t)
	e.fault.err = errFake
	expect.Is(t, expect.ErrorOf(r.Why(t.Context(), viewer, "home", "pin:1", false)), errFake, "Why")
	_, err := r.Why(t.Context(), viewer, strings.Repeat("x", maxFeedName+1), "pin:1", false)
	expect.Is(t, err, schemas.ErrUnknownFeed, "a long name")
	expect.Is(t, expect.ErrorOf(newRig(t, nil).Why(t.Context(), viewer, "home", "pin:1", false)), errNoExplainer, "Why")
}
