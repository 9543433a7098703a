package interests_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/smartfeed/smartfeed/internal/convert"
	"github.com/smartfeed/smartfeed/internal/testkit/deletedtest"
	"github.com/smartfeed/smartfeed/internal/testkit/expect"
	"github.com/smartfeed/smartfeed/internal/testkit/must"
	"github.com/smartfeed/smartfeed/processors/interests"
	"github.com/smartfeed/smartfeed/schemas"
)

// fakeRows have six pins for every term; every user likes the pins in evidence.
type fakeRows struct {
	candidates []string
	evidence   []schemas.PinID
}

func (f fakeRows) Terms(_ context.Context, _ int32, limit int, named []string) ([]schemas.DictionaryTerm, error) {
	if limit > 0 {
		named = f.candidates
	}
	return convert.All(named, func(term string) schemas.DictionaryTerm {
		return schemas.DictionaryTerm{Term: term, State: schemas.TermCandidate, Pins: 6}
	}), nil
}

func (f fakeRows) Interests(context.Context, schemas.UserID, int) ([]schemas.UserInterest, error) {
	in := schemas.UserInterest{Interest: "interest:tea", Strength: 1, Share: 1}
	in.Evidence = convert.All(f.evidence, func(p schemas.PinID) schemas.Evidence { return schemas.Evidence{Pin: p, Verb: "save", Weight: 1} })
	return []schemas.UserInterest{in}, nil
}

func (fakeRows) Engagement(context.Context, schemas.InterestID, int) ([]schemas.SourceEngagement, error) {
	return nil, errors.ErrUnsupported
}

// allDecided are the decisions about terms.
type allDecided map[string]*schemas.InterestDecision

func (d allDecided) Get(term string) (*schemas.InterestDecision, bool) {
	v, ok := d[term]
	return v, ok
}
func (d allDecided) Len() int { return len(d) }
func (d allDecided) Each(visit func(string, *schemas.InterestDecision)) {
	for term, v := range d {
		visit(term, v)
	}
}

// An accepted term that is blocked is listed only as blocked, with the reason. After unblocking, its state is the previous one.
func TestService_ListsEachTermInOneState(t *testing.T) {
	decide := func(term string, state schemas.TermState) *schemas.InterestDecision {
		return &schemas.InterestDecision{Term: term, State: state}
	}
	decisions := allDecided{
		"sale": decide("sale", schemas.TermAccepted), "winter sale": decide("winter sale", schemas.TermAccepted),
		"oolong": decide("oolong", schemas.TermMerged), "winter": decide("winter", schemas.TermCandidate),
	}
	for name, c := range map[string]struct {
		change func(*interests.Config)
		want   map[string]string
	}{
		"no blocked terms": {func(*interests.Config) {}, map[string]string{
			"sale": "accepted, 6 pins ", "winter sale": "accepted, 6 pins ", "oolong": "merged, 6 pins ", "winter": "candidate, 6 pins ",
		}},
		"blocked terms": {
			func(c *interests.Config) {
				c.BlockedTerms = map[string]string{"Sale": "advertising", "gewgaw": "a brand"}
			},
			map[string]string{
				"sale": "blocked, 0 pins advertising", "gewgaw": "blocked, 0 pins a brand", "winter sale": "accepted, 6 pins ",
				"oolong": "merged, 6 pins ", "winter": "candidate, 6 pins ",
			},
		},
		"stop words": {func(c *interests.Config) { c.StopWords = []string{"sale"} }, map[string]string{
			"sale": "blocked, 0 pins sale is a stop word", "winter sale": "blocked, 0 pins sale is a stop word",
			"oolong": "merged, 6 pins ", "winter": "candidate, 6 pins ",
		}},
	} {
		s := interests.Service{
			Config: interests.DefaultConfig(), Partitions: 1, Decisions: decisions,
			Rows: fakeRows{candidates: []string{"sale", "winter sale", "oolong", "winter"}},
		}
		c.change(&s.Config)
		got := map[string]string{}
		for _, state := range []schemas.TermState{schemas.TermCandidate, schemas.TermAccepted, schemas.TermMerged, schemas.TermBlocked} {
			for _, d := range must.Get(s.Terms(t.Context(), state, 100))(t) {
				got[d.Term] += fmt.Sprintf("%s, %d pins %s", state, d.Pins, d.Reason)
			}
		}
		expect.NoDiff(t, got, c.want, "%s", name)
	}
}

// fakeCards is a feed store with cards; err is its error.
type fakeCards struct {
	cards map[schemas.PinID]schemas.Card
	err   error
}

func (f fakeCards) Cards(context.Context, []schemas.PinID) (map[schemas.PinID]schemas.Card, error) {
	return f.cards, f.err
}

// A deleted pin is no evidence, even if the like is older than Config.AttributionWindow.
func TestService_OmitsDeletedPinsFromEvidence(t *testing.T) {
	card := func(author schemas.UserID, deleted bool) schemas.Card {
		return schemas.Card{PinVersion: schemas.PinVersion{PinContent: schemas.PinContent{Facets: schemas.Facets{Author: author}, Deleted: deleted}}}
	}
	store := &fakeCards{cards: map[schemas.PinID]schemas.Card{
		"pin:present": card("user:a", false), "pin:deleted": card("user:a", true), "pin:erased": card("user:erased", false),
	}}
	s := interests.Service{
		Rows:    fakeRows{evidence: []schemas.PinID{"pin:erased", "pin:present", "pin:deleted", "pin:unknown"}},
		Deleted: deletedtest.Of("user:erased"), Pins: store,
	}
	list := must.Get(s.Interests(t.Context(), "user:reader", 10))(t)
	got := convert.All(list[0].Evidence, func(e schemas.Evidence) schemas.PinID { return e.Pin })
	expect.NoDiff(t, got, []schemas.PinID{"pin:present", "pin:unknown"}, "evidence")
	store.err = errors.New("unavailable")
	expect.Is(t, expect.ErrorOf(s.Interests(t.Context(), "user:reader", 10)), store.err, "feed store unavailable")
	expect.Empty(t, must.Get(s.Interests(t.Context(), "user:erased", 10))(t), "interests of a deleted user")
}
