package generator

import (
	"bytes"
	"context"
	"encoding/json"
	"time"

	"github.com/smartfeed/smartfeed/processors/external"
	"github.com/smartfeed/smartfeed/processors/pools/layout"
	"github.com/smartfeed/smartfeed/schemas"
)

// responseValues is the maximum number of JSON values in a response per candidate of the request: the maximum number of
// interests, the other fields, and as many unknown values.
const responseValues = 2 * schemas.MaxInterests

// sourceRequest and sourceResponse are the request and the response of an ExternalSource.
type sourceRequest struct {
	User  schemas.UserID `json:"user"`
	Feed  string         `json:"feed"`
	Limit int            `json:"limit"`
}

type sourceResponse struct {
	Candidates []offeredPin `json:"candidates"`
}

type offeredPin struct {
	schemas.Candidate
	Created moment `json:"created"`
}

// moment is a time in RFC 3339 or as a number of microseconds.
type moment schemas.Micros

// UnmarshalJSON implements json.Unmarshaler.
func (m *moment) UnmarshalJSON(text []byte) error {
	if !bytes.HasPrefix(text, []byte(`"`)) {
		return json.Unmarshal(text, (*int64)(m))
	}
	var at time.Time
	err := json.Unmarshal(text, &at)
	*m = moment(schemas.MicrosOf(at))
	return err
}

// fetchFrom returns the function that requests candidates from a service.
func fetchFrom(s *external.Service) fetcher {
	return func(ctx context.Context, user schemas.UserID, feed string, limit int) ([]schemas.Candidate, error) {
		var response sourceResponse
		if err := s.Call(ctx, sourceRequest{user, feed, limit}, &response, responseValues*limit); err != nil {
			return nil, err
		}
		list := make([]schemas.Candidate, len(response.Candidates))
		for i, p := range response.Candidates {
			list[i] = p.Candidate
			list[i].Created = schemas.Micros(p.Created)
		}
		return list, nil
	}
}

// request returns the valid candidates of a source, best first, each pin once.
func (g *Generator) request(ctx context.Context, s candidateSource, c *composition) ([]layout.Candidate, error) {
	offered, err := s.fetch(ctx, c.User, c.Feed, s.limit)
	g.metrics.called(string(s.name), err)
	if err != nil {
		return nil, err
	}
	now := schemas.MicrosOf(g.deps.Now())
	var list []layout.Candidate
	for i := range offered {
		c := &offered[i]
		if len(list) == s.limit || c.Validate(now) != nil {
			g.metrics.rejected.WithLabelValues(string(s.name)).Inc()
			continue
		}
		content := layout.NewContent(schemas.PinContent{Facets: c.Facets, Created: c.Created})
		list = append(list, layout.Candidate{Pin: c.Pin, PoolScore: c.PoolScore, Content: content})
	}
	return bestOfEach(list), nil
}
