package feed

import (
	"context"

	"github.com/smartfeed/smartfeed/internal/convert"
	"github.com/smartfeed/smartfeed/schemas"
)

// Neighbors returns related pins and related interests.
type Neighbors interface {
	// Neighbors returns at most most neighbors of a pin or an interest, strongest first.
	Neighbors(ctx context.Context, of schemas.ID, most int) ([]schemas.RelatedItem, error)
}

// RelatedPin is a pin that is related to another pin.
type RelatedPin struct {
	Pin
	Share float64 `json:"score"` // its share of all co-occurrences of the other pin, 0 to 1; recent ones weigh more
}

// RelatedPins are the neighbors of a pin, strongest first.
type RelatedPins struct {
	Items    []RelatedPin `json:"items"`
	Degraded []string     `json:"degraded"`
}

// RelatedInterest is an interest that is related to another interest.
type RelatedInterest struct {
	Interest schemas.InterestID `json:"interest"`
	Share    float64            `json:"score"` // see RelatedPin
}

// RelatedInterests are the neighbors of an interest, strongest first.
type RelatedInterests struct {
	Items    []RelatedInterest `json:"items"`
	Degraded []string          `json:"degraded"`
}

// hiddenNeighbors is how many neighbors are requested beyond the limit, because some may be deleted.
const hiddenNeighbors = 20

// RelatedPins answers with the neighbors of a pin. As far as the store knows, it omits deleted pins, pins of deleted
// authors, and pins that a block hides from viewer. viewer is "" if the answer is not for a particular user. For a viewer,
// the answer is empty if the store is unavailable. If the store lags, the answer is always empty.
//
// The only error is ErrBadLimit. If the neighbors are unavailable, the answer is empty and Degraded contains "related".
func (s *Service) RelatedPins(ctx context.Context, pin schemas.PinID, viewer schemas.UserID, limit int) (RelatedPins, error) {
	if err := checkLimit(limit); err != nil {
		return RelatedPins{}, err
	}
	defer s.metrics.time("related", s.deps.Now)()
	r := s.newListReader(viewer)
	list := s.neighbors(ctx, r, schemas.ID(pin), limit+hiddenNeighbors)
	items := convert.All(list, func(n schemas.RelatedItem) schemas.ServedItem {
		return schemas.ServedItem{Pin: schemas.PinID(n.ID), Facets: n.Facets, Created: n.Created}
	})
	if !r.loadFacts(ctx, items) && viewer != "" || r.stale {
		items = nil
	}
	answer := RelatedPins{Items: []RelatedPin{}, Degraded: append([]string{}, r.degraded...)}
	for i := range items {
		if len(answer.Items) < limit && !r.facts.hides(&items[i], 0) {
			answer.Items = append(answer.Items, RelatedPin{r.facts.pin(&items[i]), list[i].Share})
		}
	}
	s.metrics.count(answer.Degraded)
	return answer, nil
}

// RelatedInterests answers with the neighbors of an interest. The only error is ErrBadLimit. If the neighbors are
// unavailable, the answer is empty and Degraded contains "related".
func (s *Service) RelatedInterests(ctx context.Context, interest schemas.InterestID, limit int) (RelatedInterests, error) {
	if err := checkLimit(limit); err != nil {
		return RelatedInterests{}, err
	}
	defer s.metrics.time("related", s.deps.Now)()
	r := s.newListReader("")
	answer := RelatedInterests{Items: []RelatedInterest{}}
	for _, n := range s.neighbors(ctx, r, schemas.ID(interest), limit) {
		answer.Items = append(answer.Items, RelatedInterest{schemas.InterestID(n.ID), n.Share})
	}
	answer.Degraded = append([]string{}, r.degraded...)
	s.metrics.count(answer.Degraded)
	return answer, nil
}

// neighbors reads neighbors within GeneratorTimeout, because the same processes serve them.
func (s *Service) neighbors(ctx context.Context, r *reader, of schemas.ID, most int) []schemas.RelatedItem {
	list, err := begin(ctx, s.generator, s.cfg.GeneratorTimeout, func(ctx context.Context) ([]schemas.RelatedItem, error) {
		return s.deps.Neighbors.Neighbors(ctx, of, most)
	}, nil).wait()
	if err != nil {
		r.degrade(degradedRelated)
	}
	return list
}
