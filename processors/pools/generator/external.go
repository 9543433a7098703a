package generator

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/smartfeed/smartfeed/internal/settings"
	"github.com/smartfeed/smartfeed/processors/external"
	"github.com/smartfeed/smartfeed/processors/pools/layout"
	"github.com/smartfeed/smartfeed/processors/rules"
	"github.com/smartfeed/smartfeed/schemas"
)

// ExternalSource is a source of candidates with an HTTP API, which is called while a chunk is composed. Its candidates are
// filtered like all others: pins that the user has seen, blocked or published are omitted.
//
// The request is {"user", "feed", "limit"}. The response is {"candidates": [{"pin", "created", "score"}…]}, with the fields of
// schemas.Facets in each candidate. created is RFC 3339 or a number of microseconds. Each source has its own scale of scores.
// A response has at most 4 MiB and 128 JSON values per requested candidate.
type ExternalSource struct {
	Name            schemas.Source `yaml:"name" help:"name of the source, 1 to 64 bytes, not that of a built-in source"`
	external.Config `yaml:",inline"`
	MaxCandidates   int     `yaml:"max_candidates" range:"1..1000" help:"maximum number of candidates requested"`
	Share           float64 `yaml:"share" help:"share in feeds that do not name the source, 0 to 1e9; 0: default_share of the feed"`
}

func (c Config) validateExternal() error {
	var problems settings.Problems
	names := map[schemas.Source]bool{}
	for i, s := range c.ExternalSources {
		problems.Add(settings.Under(fmt.Sprintf("external_sources[%d]", i), s.validate()))
		problems.Want(!names[s.Name], "external_sources[%d].name: %q: want a unique name", i, s.Name)
		names[s.Name] = true
	}
	problems.Add(settings.Under("model", c.Model.Validate()))
	return problems.Err()
}

func (s ExternalSource) validate() error {
	problems := settings.Problems{s.Config.Validate(), settings.Validate(s)}
	if err := s.Name.CheckOffered(); err != nil {
		problems.Add(fmt.Errorf("name: %q: %w", s.Name, err))
	}
	problems.Want(s.Share >= 0 && s.Share <= 1e9, "share: %v: want 0 to 1e9", s.Share)
	return problems.Err()
}

// withShares returns feeds with the shares of external sources and extensions, unless a feed names the source.
func (c Config) withShares(feeds rules.Feeds, extensions Extensions) rules.Feeds {
	given := map[schemas.Source]float64{}
	for _, s := range c.ExternalSources {
		given[s.Name] = s.Share
	}
	for _, s := range extensions.Sources {
		given[s.Name] = s.Share
	}
	maps.DeleteFunc(given, func(_ schemas.Source, share float64) bool { return share == 0 })
	all := rules.Feeds{}
	for name, feed := range feeds {
		shares := maps.Clone(given)
		maps.Copy(shares, feed.Shares)
		feed.Shares = shares
		all[name] = feed
	}
	return all
}

// externalCalls holds the external services and the extensions that a generator calls.
type externalCalls struct {
	sources  []candidateSource
	scorer   scorer // nil: no model
	services []*external.Service
}

// candidateSource is an external source or the source of an extension.
type candidateSource struct {
	name  schemas.Source
	limit int
	fetch fetcher
}

// fetcher requests at most limit candidates.
type fetcher func(ctx context.Context, user schemas.UserID, feed string, limit int) ([]schemas.Candidate, error)

// scorer returns additions to the scores of the candidates of a composition: the external model, or Extensions.Score.
type scorer func(ctx context.Context, c *composition) (map[schemas.PinID]float64, error)

func newExternalCalls(cfg Config, deps Deps) *externalCalls {
	x := &externalCalls{}
	service := func(c external.Config) *external.Service {
		s := external.New(c, deps.Dial)
		x.services = append(x.services, s)
		return s
	}
	for _, s := range cfg.ExternalSources {
		x.sources = append(x.sources, candidateSource{s.Name, s.MaxCandidates, fetchFrom(service(s.Config))})
	}
	for _, s := range deps.Extensions.Sources {
		x.sources = append(x.sources, candidateSource{s.Name, s.Limit, s.guarded()})
	}
	switch {
	case deps.Extensions.Score != nil:
		x.scorer = deps.Extensions.scorer(cfg.Model.MaxCandidates)
	case cfg.Model.URL != "":
		x.scorer = modelScorer(cfg.Model, service(cfg.Model.Config), deps.Features)
	}
	return x
}

// gatherOffers requests candidates from all external sources that the feed uses, in parallel. It also adds the popular pins if
// they have a share.
func (g *Generator) gatherOffers(ctx context.Context, c *composition) {
	c.offers = map[schemas.Source][]layout.Candidate{}
	if c.rules.Share(schemas.FromPopular) > 0 {
		g.offerPopular(c)
	}
	var mu sync.Mutex
	var requests sync.WaitGroup
	for _, s := range g.external.sources {
		if c.rules.Share(s.name) == 0 && !c.rules.Fills(s.name) {
			continue
		}
		requests.Go(func() {
			list, err := g.request(ctx, s, c)
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				c.degrade(degradedSource + string(s.name))
				return
			}
			c.offers[s.name] = list
		})
	}
	requests.Wait()
	slices.Sort(c.degraded)
}
