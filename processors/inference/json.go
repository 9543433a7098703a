package inference

import (
	"context"
	"math"

	"github.com/smartfeed/smartfeed/schemas"
)

// jsonRequest and jsonResponse are the request and the response of the protocol JSON.
type jsonRequest struct {
	User       schemas.UserID `json:"user"`
	Feed       string         `json:"feed"`
	Candidates []Candidate    `json:"candidates"` // a pin occurs once for each of its sources
	Outputs    []string       `json:"outputs,omitempty"`
}

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
	request := jsonRequest{req.User, req.Feed, req.Candidates, req.Outputs}
	if err := m.service.Call(ctx, request, &response, responseValues*m.cfg.MaxCandidates); err != nil {
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
	values := make([]float64, len(list))
	for i := range list {
		v, ok := of[list[i].Pin]
		if values[i] = v; !ok {
			values[i] = math.NaN()
		}
	}
	return values
}
