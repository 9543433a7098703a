package generator

import (
	"context"
	"math"

	"github.com/smartfeed/smartfeed/processors/external"
	"github.com/smartfeed/smartfeed/processors/inference"
	"github.com/smartfeed/smartfeed/processors/rules"
	"github.com/smartfeed/smartfeed/schemas"
)

// Features returns the values of features as of now: a row for each pin, with a column for each name. A pin may be repeated. The
// features are those of the user, of the pins, or of pairs of both. A value is NaN if it is missing or not a number.
type Features func(ctx context.Context, user schemas.UserID, pins []schemas.PinID, names []string) ([][]float32, error)

// maxModelScore is the largest absolute addition that counts. A larger one, or one that is not finite, is no opinion.
const maxModelScore = 1e6

// score requests additions to the scores of the best candidates. It does nothing without a model, or if the feed does not
// use one.
func (g *Generator) score(ctx context.Context, c *composition) {
	if g.external.scorer == nil || c.rules.ModelWeight == 0 || c.result != nil {
		return
	}
	scores, err := g.external.scorer(ctx, c)
	g.metrics.called("model", err)
	if err != nil {
		c.degrade(degradedModel)
		return
	}
	c.signals.Model = make(map[schemas.PinID]float64, len(scores))
	for pin, score := range scores {
		if math.Abs(score) <= maxModelScore {
			c.signals.Model[pin] = score
		}
	}
}

// modelScorer returns the scorer that asks a model. If the values of its features are late or fail, the model is not
// asked.
func modelScorer(cfg inference.Config, service *external.Service, features Features) scorer {
	model, guard := inference.New(cfg, service), external.NewGuard(cfg.Timeout)
	return func(ctx context.Context, c *composition) (map[schemas.PinID]float64, error) {
		candidates, pins := modelCandidates(c.pools, cfg.MaxCandidates)
		req := inference.Request{User: c.User, Feed: c.Feed, Candidates: candidates, Outputs: c.rules.Outputs()}
		if len(cfg.Features) > 0 {
			values, err := external.Guarded(ctx, guard, func(ctx context.Context) ([][]float32, error) {
				return features(ctx, c.User, pins, cfg.Features)
			})
			if err != nil {
				return nil, err
			}
			req.Values = withoutNaN(values, cfg.MissingValue)
		}
		outputs, err := model.Infer(ctx, req)
		if err != nil {
			return nil, err
		}
		if c.isLogged {
			c.inferred = &inferred{cfg.Features, req, outputs}
		}
		scores := make(map[schemas.PinID]float64, len(req.Candidates))
		for i, sum := range outputs.Combine(c.rules.Utility) {
			scores[req.Candidates[i].Pin] = sum
		}
		return scores, nil
	}
}

// withoutNaN replaces missing values in place.
func withoutNaN(rows [][]float32, missing float64) [][]float32 {
	for _, row := range rows {
		for i := range row {
			if math.IsNaN(float64(row[i])) {
				row[i] = float32(missing)
			}
		}
	}
	return rows
}

// modelCandidates returns the n best candidates in the form of a request to the model, and their pins.
func modelCandidates(pools []rules.Pool, n int) (list []inference.Candidate, pins []schemas.PinID) {
	list = []inference.Candidate{} // in JSON, an empty list
	for _, c := range scored(pools, n) {
		pins = append(pins, c.Pin)
		list = append(list, inference.Candidate{
			Pin: c.Pin, Source: c.Source, Score: c.PoolScore, Created: c.Created.Writable().Time(), Facets: c.Facets,
		})
	}
	return list, pins
}
