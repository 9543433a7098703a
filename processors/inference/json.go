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

// responseValues is the maximum number of JSON values in a response for a candidate and an output, and as many unknown ones.
const responseValues = 8

func (m *Model) inferJSON(ctx context.Context, req Request) (Outputs, error) {
	list := make([]Candidate, len(req.Candidates))
	for i, c := range req.Candidates {
		if list[i] = c; len(m.cfg.Features) > 0 {
			list[i].Features = make(map[string]float32, len(m.cfg.Features))
			for j, name := range m.cfg.Features {
				list[i].Features[name] = req.Values[i][j]
			}
		}
	}
	var response jsonResponse
	values := 64 + responseValues*len(list)*max(1, len(req.Outputs))
	if err := m.service.Call(ctx, jsonRequest{req.User, req.Feed, list, req.Outputs}, &response, values); err != nil {
		return nil, err
	}
	if len(req.Outputs) == 0 {
		return Outputs{onlyOutput: inOrder(list, response.Scores)}, nil
	}
	outputs := make(Outputs, len(req.Outputs))
	for _, name := range req.Outputs {
		outputs[name] = inOrder(list, response.Outputs[name])
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
