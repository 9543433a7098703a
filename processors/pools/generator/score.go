package generator

import (
	"context"
	"maps"
	"math"
	"time"

	"github.com/smartfeed/smartfeed/processors/rules"
	"github.com/smartfeed/smartfeed/schemas"
)

// scorer adds to the scores of candidates: the external model, or Extensions.Score.
type scorer func(ctx context.Context, user schemas.UserID, feed string, pools []rules.Pool) (map[schemas.PinID]float64, error)

// maxModelScore is the largest absolute score of a model that counts. Sums with larger ones might not be finite.
const maxModelScore = 1e6

// score requests the scores of the best candidates. It does nothing without a model, or if the feed does not use one.
func (g *Generator) score(ctx context.Context, c *composition) {
	if g.external.scorer == nil || c.rules.Model == 0 {
		return
	}
	scores, err := g.external.scorer(ctx, c.User, c.Feed, c.pools)
	g.metrics.called("model", err)
	if err != nil {
		c.degrade(degradedModel)
		return
	}
	maps.DeleteFunc(scores, func(_ schemas.PinID, score float64) bool { return !(math.Abs(score) <= maxModelScore) })
	c.signals.Model = scores
}

// modelRequest and modelResponse are the request and the response of an ExternalModel.
type modelRequest struct {
	User       schemas.UserID   `json:"user"`
	Feed       string           `json:"feed"`
	Candidates []modelCandidate `json:"candidates"`
}

type modelCandidate struct {
	Pin     schemas.PinID     `json:"pin"`
	Source  schemas.Source    `json:"source"`
	Score   schemas.PoolScore `json:"score"`
	Created time.Time         `json:"created"`
	schemas.Facets
}

type modelResponse struct {
	Scores map[schemas.PinID]float64 `json:"scores"`
}

// modelCandidates returns the n best candidates in the form of a model request.
func modelCandidates(pools []rules.Pool, n int) []modelCandidate {
	list := []modelCandidate{}
	for _, c := range scored(pools, n) {
		list = append(list, modelCandidate{
			Pin: c.Pin, Source: c.Source, Score: c.PoolScore, Created: c.Created.Writable().Time(), Facets: c.Facets,
		})
	}
	return list
}

// scored returns n candidates: the best of each pool, then the second of each, and so on. A pin is returned once per source
// that has it. The model's score of a pin applies to all of these.
func scored(pools []rules.Pool, n int) []Scored {
	var list []Scored
	for rank := 0; ; rank++ {
		before := len(list)
		for _, p := range pools {
			if rank < len(p.Candidates) && len(list) < n {
				list = append(list, Scored{p.Source, p.Candidates[rank]})
			}
		}
		if len(list) == before {
			return list
		}
	}
}
