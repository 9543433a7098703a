package generator

import (
	"cmp"
	"context"
	"slices"

	"github.com/smartfeed/smartfeed/processors/external"
	"github.com/smartfeed/smartfeed/processors/rules"
	"github.com/smartfeed/smartfeed/schemas"
)

// Extensions holds the extensions that the embedding program adds to a generator in Go. The zero value adds nothing. Its
// functions are called during visits, concurrently.
//
// Offer and Score must return before their context ends: after half of the visit's remaining time, and after
// external.MaxTimeout at the latest. A later result is ignored. An error means a failure; a result may be empty. After
// external.Failures consecutive failures, including late results, a function is not called for external.OpenFor. The chunk is
// made without it and is degraded, as with external sources and the model.
type Extensions struct {
	Sources []ExtensionSource
	// Score adds to the scores of candidates, like a model, which it replaces. Feeds multiply the result by their
	// weight of the model. A pin without a result gets no addition. nil: no score is added.
	Score func(ctx context.Context, user schemas.UserID, feed string, candidates []Scored) (map[schemas.PinID]float64, error)
	// Admit reports whether a candidate may be in a chunk of the feed now. If not, the candidate waits. During a visit it
	// must return the same result for the same arguments. nil: all candidates are admitted.
	Admit func(user schemas.UserID, feed string, c rules.Candidate) bool
}

// ExtensionSource is a candidate source that is implemented as a function.
type ExtensionSource struct {
	Name  schemas.Source // not one of the built-in sources; 1 to 64 bytes
	Limit int            // requested candidates, 1 to 1000
	Share float64        // share in feeds that do not name the source; 0: the share of others
	// Offer returns at most limit candidates. Each source has its own scale of scores.
	Offer func(ctx context.Context, user schemas.UserID, feed string, limit int) ([]schemas.Candidate, error)
}

// Scored is a candidate in a call of Extensions.Score. A pin occurs once for each of its sources.
type Scored struct {
	Source schemas.Source
	rules.Candidate
}

// inProcess returns the configuration for validating an extension like an external source.
func inProcess() external.Config {
	return external.Config{URL: "http://127.0.0.1", Timeout: external.MaxTimeout}
}

// validate validates the sources together with the configured ones.
func (e Extensions) validate(c Config) error {
	for _, s := range e.Sources {
		c.ExternalSources = append(slices.Clone(c.ExternalSources), ExternalSource{Name: s.Name, Config: inProcess(), MaxCandidates: s.Limit, Share: s.Share})
	}
	return c.validateExternal()
}

// guarded returns Offer behind a circuit breaker.
func (s ExtensionSource) guarded() fetcher {
	breaker := external.NewGuard(inProcess().Timeout)
	return func(ctx context.Context, user schemas.UserID, feed string, limit int) (list []schemas.Candidate, err error) {
		err = breaker.Do(ctx, func(ctx context.Context) (err error) {
			list, err = s.Offer(ctx, user, feed, limit)
			return err
		})
		return list, err
	}
}

// scorer returns Score for the n best candidates, behind a circuit breaker.
func (e Extensions) scorer(n int) scorer {
	breaker := external.NewGuard(inProcess().Timeout)
	return func(ctx context.Context, c *composition) (scores map[schemas.PinID]float64, err error) {
		err = breaker.Do(ctx, func(ctx context.Context) (err error) {
			scores, err = e.Score(ctx, c.User, c.Feed, scored(c.pools, n))
			return err
		})
		return scores, err
	}
}

// admitted returns the pools of a composition without the candidates that Admit rejects.
func (e Extensions) admitted(c *composition) []rules.Pool {
	if e.Admit == nil {
		return c.pools
	}
	left := make([]rules.Pool, len(c.pools))
	for i, p := range c.pools {
		left[i].Source = p.Source
		for _, candidate := range p.Candidates {
			if e.Admit(c.User, cmp.Or(c.Feed, rules.Home), candidate) {
				left[i].Candidates = append(left[i].Candidates, candidate)
			}
		}
	}
	return left
}

// rejects reports whether a pin is in the pools and Admit rejects all of its candidates.
func (e Extensions) rejects(c *composition, pin schemas.PinID) bool {
	has := func(pools []rules.Pool) bool {
		return slices.ContainsFunc(pools, func(p rules.Pool) bool {
			return slices.ContainsFunc(p.Candidates, func(c rules.Candidate) bool { return c.Pin == pin })
		})
	}
	return has(c.pools) && !has(e.admitted(c))
}
