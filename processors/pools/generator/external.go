package generator

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"time"

	"github.com/smartfeed/smartfeed/internal/settings"
	"github.com/smartfeed/smartfeed/processors/outside"
	"github.com/smartfeed/smartfeed/processors/pools/layout"
	"github.com/smartfeed/smartfeed/processors/rules"
	"github.com/smartfeed/smartfeed/schemas"
)

// ExternalSource is a source of candidates that is asked over HTTP while a chunk is composed. Its candidates are filtered
// like all others: pins that the user has seen, blocked or published are left out.
//
// The request is {"user", "feed", "limit"}. The response is {"candidates": [{"pin", "author", "board", "interests",
// "created", "score"}…]}. created is RFC 3339 or a number of microseconds. Scores are on a scale of the source's own. A
// response has at most 4 MiB and 128 JSON values per requested candidate.
type ExternalSource struct {
	Name           schemas.Source `yaml:"name" help:"name of the source, not a built-in one; 1 to 64 bytes"`
	outside.Config `yaml:",inline"`
	Limit          int     `yaml:"limit" range:"1..1000" help:"candidates requested"`
	Share          float64 `yaml:"share" help:"share in feeds that do not name the source; 0: the share of others"`
}

// ExternalModel adds to the scores of candidates while a chunk is composed.
//
// The request is {"user", "feed", "candidates": [{"pin", "source", "score", "created", "author", "board", "interests"}…]}.
// The response is {"scores": {pin: number…}}. A pin without a score gets nothing. The bounds of the response are those of
// ExternalSource.
type ExternalModel struct {
	outside.Config `yaml:",inline"` // without a URL there is no model
	Candidates     int              `yaml:"candidates" default:"200" range:"1..1000" help:"best candidates of all sources that are sent"`
}

func (c Config) externalProblems() []error {
	var errs []error
	names := map[schemas.Source]bool{}
	for i, s := range c.Sources {
		errs = append(errs, under(fmt.Sprintf("sources: %d. ", i+1), s.validate())...)
		if names[s.Name] {
			errs = append(errs, fmt.Errorf("sources: %d. name %q: there are two", i+1, s.Name))
		}
		names[s.Name] = true
	}
	if c.Model.URL != "" {
		errs = append(errs, under("model.", c.Model.validate())...)
	}
	return errs
}

func (s ExternalSource) validate() error {
	errs := []error{s.Config.Validate(), settings.Validate(s)}
	if err := s.Name.CheckOffered(); err != nil {
		errs = append(errs, fmt.Errorf("name %q: %w", s.Name, err))
	}
	if !(s.Share >= 0 && s.Share <= 1e9) {
		errs = append(errs, fmt.Errorf("share: %v: want 0 or more", s.Share))
	}
	return errors.Join(errs...)
}

func (m ExternalModel) validate() error {
	return errors.Join(m.Config.Validate(), settings.Validate(m))
}

// under prefixes each of the joined errors.
func under(prefix string, err error) []error {
	if err == nil {
		return nil
	}
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok {
		return []error{fmt.Errorf("%s%w", prefix, err)}
	}
	var errs []error
	for _, e := range joined.Unwrap() {
		errs = append(errs, under(prefix, e)...)
	}
	return errs
}

// withShares adds the shares of external sources and own sources to the feeds that do not name them.
func (c Config) withShares(own Extensions) rules.Feeds {
	given := map[schemas.Source]float64{}
	for _, s := range c.Sources {
		given[s.Name] = s.Share
	}
	for _, s := range own.Sources {
		given[s.Name] = s.Share
	}
	feeds := rules.Feeds{}
	for name, feed := range c.Feeds {
		feed.Shares = maps.Clone(feed.Shares)
		for source, share := range given {
			if _, named := feed.Shares[source]; !named && share > 0 {
				if feed.Shares == nil {
					feed.Shares = map[schemas.Source]float64{}
				}
				feed.Shares[source] = share
			}
		}
		feeds[name] = feed
	}
	return feeds
}

// external holds the external services and the extensions that a generator calls.
type external struct {
	sources  []*candidateSource
	scorer   scorer // nil: no model
	services []*outside.Service
}

// candidateSource is an external source or the source of an extension.
type candidateSource struct {
	Name    schemas.Source
	Limit   int
	fetch   func(ctx context.Context, user schemas.UserID, feed string, limit int) ([]schemas.Candidate, error)
	metrics metrics
	now     func() time.Time
}

func newExternal(cfg Config, deps Deps, m metrics) *external {
	x := &external{}
	service := func(c outside.Config) *outside.Service {
		s := outside.New(c, deps.Dial)
		x.services = append(x.services, s)
		return s
	}
	for _, s := range cfg.Sources {
		x.sources = append(x.sources, &candidateSource{s.Name, s.Limit, fetchFrom(service(s.Config)), m, deps.Now})
	}
	for _, s := range deps.Extensions.Sources {
		x.sources = append(x.sources, &candidateSource{s.Name, s.Limit, s.guarded(), m, deps.Now})
	}
	switch {
	case deps.Extensions.Score != nil:
		x.scorer = deps.Extensions.scorer(cfg.Model.Candidates)
	case cfg.Model.URL != "":
		x.scorer = scorerOf(service(cfg.Model.Config), cfg.Model.Candidates)
	}
	return x
}

func (x *external) close() {
	for _, s := range x.services {
		s.Close()
	}
}

// responseValues is the maximum number of JSON values in a response per candidate of the request: the maximum number of
// interests, the other fields, and as many values that are not read.
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
	Pin schemas.PinID `json:"pin"`
	schemas.Facets
	Created moment            `json:"created"`
	Score   schemas.PoolScore `json:"score"`
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
func fetchFrom(s *outside.Service) func(context.Context, schemas.UserID, string, int) ([]schemas.Candidate, error) {
	return func(ctx context.Context, user schemas.UserID, feed string, limit int) ([]schemas.Candidate, error) {
		var response sourceResponse
		if err := s.Ask(ctx, sourceRequest{user, feed, limit}, &response, responseValues*limit); err != nil {
			return nil, err
		}
		list := make([]schemas.Candidate, len(response.Candidates))
		for i, p := range response.Candidates {
			list[i] = schemas.Candidate{Pin: p.Pin, Facets: p.Facets, Created: schemas.Micros(p.Created), PoolScore: p.Score}
		}
		return list, nil
	}
}

// scorerOf returns the scorer that requests the scores of the n best candidates from a service.
func scorerOf(s *outside.Service, n int) scorer {
	return func(ctx context.Context, user schemas.UserID, feed string, pools []rules.Pool) (map[schemas.PinID]float64, error) {
		var response modelResponse
		err := s.Ask(ctx, modelRequest{user, feed, modelCandidates(pools, n)}, &response, responseValues*n)
		return response.Scores, err
	}
}

// request returns the valid candidates of a source, best first, each pin once.
func (s *candidateSource) request(ctx context.Context, user schemas.UserID, feed string) ([]layout.Candidate, error) {
	offered, err := s.fetch(ctx, user, feed, s.Limit)
	s.metrics.called(string(s.Name), err)
	if err != nil {
		return nil, err
	}
	now := schemas.MicrosOf(s.now())
	var list []layout.Candidate
	for i := range offered {
		c := &offered[i]
		if len(list) == s.Limit || c.Validate(now) != nil {
			s.metrics.refused.WithLabelValues(string(s.Name)).Inc()
			continue
		}
		list = append(list, layout.Candidate{Pin: c.Pin, PoolScore: c.PoolScore, Content: layout.NewContent(schemas.PinContent{Facets: c.Facets, Created: c.Created})})
	}
	return bestOfEach(list), nil
}
