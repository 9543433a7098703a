package generator

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"github.com/smartfeed/smartfeed/processors/outside"
	"github.com/smartfeed/smartfeed/processors/rules"
	"github.com/smartfeed/smartfeed/schemas"
)

// Extensions holds the extensions that the embedding program adds to a generator in Go. The zero value adds nothing. Its functions
// are called during visits, concurrently.
//
// Offer and Score must return before their context ends: after half of the visit's remaining time, and after
// outside.MaxTimeout at the latest. A later result is ignored. An error means that something is broken, not that there is
// nothing to return. After outside.Failures consecutive failures, including late results, a function is not called for
// outside.OpenFor. The chunk is made without it and is degraded, as with external sources and the model.
type Extensions struct {
	Sources []ExtensionSource
	// Score adds to the scores of candidates, like an ExternalModel, which it replaces. Feeds multiply the result by their
	// weight of the model. A pin that is not in the result gets nothing. nil: no score is added.
	Score func(ctx context.Context, user schemas.UserID, feed string, candidates []Scored) (map[schemas.PinID]float64, error)
	// Admit reports whether a candidate may be in a chunk of the feed now. If not, the candidate waits. Within a visit it
	// must return the same result for the same arguments. nil: all candidates are admitted.
	Admit func(user schemas.UserID, feed string, c rules.Candidate) bool
}

// ExtensionSource is a candidate source that is implemented as a function.
type ExtensionSource struct {
	Name  schemas.Source // not one of the built-in sources; 1 to 64 bytes
	Limit int            // requested candidates, 1 to 1000
	Share float64        // share in feeds that do not name the source; 0: the share of others
	// Offer returns at most limit candidates. The scores are on a scale of the source's own.
	Offer func(ctx context.Context, user schemas.UserID, feed string, limit int) ([]schemas.Candidate, error)
}

// Scored is a candidate in a call of Own.Score. A pin occurs once per source that has it.
type Scored struct {
	Source schemas.Source
	rules.Candidate
}

// inProcess returns the configuration with which an own source is validated like an external one.
func inProcess() outside.Config {
	return outside.Config{URL: "http://127.0.0.1", Timeout: outside.MaxTimeout}
}

// extensionBreaker returns the circuit breaker of one own function.
func extensionBreaker() *outside.Guard {
	return outside.NewGuard(inProcess().Timeout)
}

// validate validates the own sources together with the configured ones.
func (o Extensions) validate(c Config) error {
	for _, s := range o.Sources {
		c.Sources = append(slices.Clone(c.Sources), ExternalSource{Name: s.Name, Config: inProcess(), Limit: s.Limit, Share: s.Share})
	}
	return errors.Join(c.externalProblems()...)
}

// external returns the own sources in the form that a generator uses.
func (o Extensions) external() []*externalSource {
	var all []*externalSource
	for _, s := range o.Sources {
		all = append(all, &externalSource{
			ExternalSource: ExternalSource{Name: s.Name, Limit: s.Limit, Share: s.Share}, own: s.Offer, guard: extensionBreaker(),
		})
	}
	return all
}

// scored returns the best candidates, in the order of a model request.
func scored(pools []rules.Pool, n int) []Scored {
	var list []Scored
	eachBest(pools, n, func(p rules.Pool, c *rules.Candidate) { list = append(list, Scored{p.Source, *c}) })
	return list
}

// admitted returns the pools without the candidates that Admit rejects.
func (o Extensions) admitted(user schemas.UserID, feed string, pools []rules.Pool) []rules.Pool {
	if o.Admit == nil {
		return pools
	}
	left := make([]rules.Pool, len(pools))
	for i, p := range pools {
		left[i].Source = p.Source
		for _, c := range p.Candidates {
			if o.Admit(user, cmp.Or(feed, rules.Home), c) {
				left[i].Candidates = append(left[i].Candidates, c)
			}
		}
	}
	return left
}

// refuses reports whether a pin is in the pools and Admit rejects all of its candidates.
func (o Extensions) refuses(user schemas.UserID, feed string, pin schemas.PinID, pools []rules.Pool) bool {
	has := func(pools []rules.Pool) bool {
		return slices.ContainsFunc(pools, func(p rules.Pool) bool {
			return slices.ContainsFunc(p.Candidates, func(c rules.Candidate) bool { return c.Pin == pin })
		})
	}
	return has(pools) && !has(o.admitted(user, feed, pools))
}
