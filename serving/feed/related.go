package feed

import (
	"context"

	"github.com/smartfeed/smartfeed/schemas"
)

// Neighbours tells which pins, and which interests, go together.
type Neighbours interface {
	// Neighbours returns the strongest neighbours of a pin or an interest, at most so many, strongest first.
	Neighbours(ctx context.Context, of schemas.ID, most int) ([]schemas.RelatedItem, error)
}

// RelatedPin is a pin that goes together with another.
type RelatedPin struct {
	Pin
	Score float64 `json:"score"` // its share of all that the other was seen with, 0 to 1, recent times weighing more
}

// RelatedPins are the neighbours of a pin, the strongest first.
type RelatedPins struct {
	Items    []RelatedPin `json:"items"`
	Degraded []string     `json:"degraded"`
}

// RelatedInterest is an interest that goes together with another.
type RelatedInterest struct {
	Interest schemas.InterestID `json:"interest"`
	Score    float64            `json:"score"` // as of RelatedPin
}

// RelatedInterests are the neighbours of an interest, the strongest first.
type RelatedInterests struct {
	Items    []RelatedInterest `json:"items"`
	Degraded []string          `json:"degraded"`
}

// hiddenNeighbours is how many more neighbours are asked for than are wanted: some may be deleted.
const hiddenNeighbours = 20

// RelatedPins answers which pins go together with a pin. Deleted ones, and those of deleted authors, are left out, as far
// as the store can say; also what blocks withhold from viewer, who is "" where nobody in particular is shown the answer. For a
// viewer the answer is empty when the store cannot say. It fails with ErrBadLimit only; without the neighbours the answer is empty and says "related".
func (s *Service) RelatedPins(ctx context.Context, pin schemas.PinID, viewer schemas.UserID, limit int) (RelatedPins, error) {
	if err := checkLimit(limit); err != nil {
		return RelatedPins{}, err
	}
	defer s.metrics.time("related", s.deps.Now)()
	r := s.newReading(viewer)
	list := s.neighbours(ctx, r, schemas.ID(pin), limit+hiddenNeighbours)
	items := make([]schemas.ServedItem, len(list))
	for i, n := range list {
		items[i] = schemas.ServedItem{Pin: schemas.PinID(n.ID), Facets: n.Facets, Created: n.Created}
	}
	if !r.learn(ctx, items) && viewer != "" || r.stale {
		items = nil
	}
	answer := RelatedPins{Items: []RelatedPin{}, Degraded: append([]string{}, r.degraded...)}
	for i := range items {
		if len(answer.Items) < limit && !r.facts.withholds(&items[i]) {
			answer.Items = append(answer.Items, RelatedPin{r.facts.item(&items[i], false).Pin, list[i].Score})
		}
	}
	s.metrics.note(answer.Degraded)
	return answer, nil
}

// RelatedInterests answers which interests go together with an interest. It fails with ErrBadLimit only; without the
// neighbours the answer is empty and says "related".
func (s *Service) RelatedInterests(ctx context.Context, interest schemas.InterestID, limit int) (RelatedInterests, error) {
	if err := checkLimit(limit); err != nil {
		return RelatedInterests{}, err
	}
	defer s.metrics.time("related", s.deps.Now)()
	r := s.newReading("")
	answer := RelatedInterests{Items: []RelatedInterest{}}
	for _, n := range s.neighbours(ctx, r, schemas.ID(interest), limit) {
		answer.Items = append(answer.Items, RelatedInterest{schemas.InterestID(n.ID), n.Score})
	}
	answer.Degraded = append([]string{}, r.degraded...)
	s.metrics.note(answer.Degraded)
	return answer, nil
}

// neighbours asks within the time that a visit waits for its chunk: they come from the same processes.
func (s *Service) neighbours(ctx context.Context, r *reading, of schemas.ID, most int) []schemas.RelatedItem {
	list, err := begin(ctx, s.generator, s.cfg.GeneratorTimeout, func(ctx context.Context) ([]schemas.RelatedItem, error) {
		return s.deps.Neighbours.Neighbours(ctx, of, most)
	}, nil).wait()
	if err != nil {
		r.degrade(degradedRelated)
	}
	return list
}
