package inference

import (
	"context"
	"math"

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
		return Outputs{}, err
	}
	outputs, of := Outputs{Names: req.Outputs, Rows: make([][]float64, len(req.Candidates))}, response.Outputs
	if len(req.Outputs) == 0 {
		outputs.Names, of = []string{onlyOutput}, map[string]map[schemas.PinID]float64{onlyOutput: response.Scores}
	}
	for i := range req.Candidates {
		for _, name := range outputs.Names {
			n, returned := of[name][req.Candidates[i].Pin]
			if !returned {
				n = math.NaN()
			}
			outputs.Rows[i] = append(outputs.Rows[i], n)
		}
	}
	return outputs, nil
}
