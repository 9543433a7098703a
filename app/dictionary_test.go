package app

import (
	"context"
	"errors"
	"log/slog"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/smartfeed/smartfeed/schemas"
	"github.com/smartfeed/smartfeed/topics"
)

// likes are the known likes of every user.
type likes struct{ pins []schemas.PinID }

func (l likes) Interests(context.Context, schemas.UserID, int) ([]schemas.UserInterest, error) {
	in := schemas.UserInterest{Interest: "interest:tea", Strength: 1, Share: 1}
	for _, p := range l.pins {
		in.Evidence = append(in.Evidence, schemas.Evidence{Pin: p, Verb: "save", Weight: 1})
	}
	return []schemas.UserInterest{in}, nil
}

func (likes) Terms(context.Context, int32, int, []string) ([]schemas.DictionaryTerm, error) {
	return nil, errors.ErrUnsupported
}

func (likes) Engagement(context.Context, schemas.InterestID, int) ([]schemas.SourceEngagement, error) {
	return nil, errors.ErrUnsupported
}

// shelf is a feed store with cards; err is its error.
type shelf struct {
	cards map[schemas.PinID]schemas.Card
	err   error
}

func (s shelf) Cards(context.Context, []schemas.PinID) (map[schemas.PinID]schemas.Card, error) {
	return s.cards, s.err
}

// A pin that was liked so long ago that its rows no longer include the deletion is no evidence after its deletion.
func TestPinsThatAreGoneAreNoEvidence(t *testing.T) {
	card := func(author schemas.UserID, deleted bool) schemas.Card {
		return schemas.Card{PinVersion: schemas.PinVersion{PinContent: schemas.PinContent{Facets: schemas.Facets{Author: author}, Deleted: deleted}}}
	}
	store := shelf{cards: map[schemas.PinID]schemas.Card{
		"pin:here": card("user:a", false), "pin:deleted": card("user:a", true), "pin:erased": card("user:gone", false),
	}}
	d := dictionary{
		known:   likes{pins: []schemas.PinID{"pin:erased", "pin:here", "pin:deleted", "pin:nobody-knows"}},
		deleted: topics.NewDeletedUsers(topics.Kafka{}, &topics.Streams{}, "test", slog.New(slog.DiscardHandler)), present: &store,
	}
	d.deleted.Note("user:gone", 1)
	list, err := d.Interests(t.Context(), "user:reader", 10)
	if err != nil {
		t.Fatal(err)
	}
	var got []schemas.PinID
	for _, e := range list[0].Evidence {
		got = append(got, e.Pin)
	}
	if diff := cmp.Diff([]schemas.PinID{"pin:here", "pin:nobody-knows"}, got); diff != "" {
		t.Errorf("evidence (-want +got):\n%s", diff)
	}
	store.err = errors.New("away")
	if _, err := d.Interests(t.Context(), "user:reader", 10); !errors.Is(err, store.err) {
		t.Errorf("without a feed store: got %v, want its error", err)
	}
}
