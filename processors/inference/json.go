package inference

import (
	"context"
	"math"
	"slices"

	"github.com/smartfeed/smartfeed/schemas"
)

// jsonResponse is the response of the protocol JSON.
type jsonResponse struct {
	Scores  map[schemas.PinID]float64            `json:"scores"`  // the only output
	Outputs map[string]map[schemas.PinID]float64 `json:"outputs"` // the requested outputs by name
}

// onlyOutput is the name of the output of a model that returns scores.
const onlyOutput = "score"

// responseValues is the maximum number of JSON values in a response per candidate of the request. Most may be unknown ones.
const responseValues = 2 * schemas.MaxInterests

func (m *Model) inferJSON(ctx context.Context, req Request) (Outputs, error) {
	for i, row := range req.Values {
		values := make(map[string]float32, len(row))
		for j, name := range m.cfg.Features {
			values[name] = row[j]
		}
		req.Candidates[i].Features = values
	}
	var response jsonResponse
	if err := m.service.Call(ctx, req, &response, responseValues*m.cfg.MaxCandidates); err != nil {
		return nil, err
	}
	if len(req.Outputs) == 0 {
		return Outputs{onlyOutput: inOrder(req.Candidates, response.Scores)}, nil
	}
	outputs := make(Outputs, len(req.Outputs))
	for _, name := range req.Outputs {
		outputs[name] = inOrder(req.Candidates, response.Outputs[name])
	}
	return outputs, nil
}

// inOrder returns the number of each candidate's pin, or NaN.
func inOrder(list []Candidate, of map[schemas.PinID]float64) []float64 {
	values := slices.Repeat([]float64{math.NaN()}, len(list))
	for i := range list {
		if v, ok := of[list[i].Pin]; ok {
			values[i] = v
		}
	}
	return values
}
