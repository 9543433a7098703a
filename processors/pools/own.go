package pools

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/smartfeed/smartfeed/processors/outside"
	"github.com/smartfeed/smartfeed/processors/rules"
	"github.com/smartfeed/smartfeed/schemas"
)

// Own is what the program around a generator adds to it in Go: the zero value adds nothing. Its functions are called
// while a visit waits, from many goroutines at once.
//
// Offer and Score must return by the end of their context: it ends when half of the visit's remaining time is over, and after
// outside.MaxTimeout at the latest. A later answer counts for nothing. An error says that something is broken, and
// not that there is nothing. After outside.Failures failures in a row, late answers among them, a function is not called
// for outside.Rest. The chunk goes on without it, and says so as of external sources and the model.
type Own struct {
	Sources []OwnSource
	// Score adds to the scores of candidates, as an ExternalModel does, and instead of it; feeds take it times their weight
	// of the model. A pin that is not in the answer gets nothing. nil: nobody scores.
	Score func(ctx context.Context, user schemas.UserID, feed string, candidates []Scored) (map[schemas.PinID]float64, error)
	// Admit says whether a candidate may be in a chunk of the feed now; where it may not, it waits. It is a rule: for the
	// same question it has the same answer within a visit. nil: every one may.
	Admit func(user schemas.UserID, feed string, c rules.Candidate) bool
}

// OwnSource is a source of candidates that is a function.
type OwnSource struct {
	Name  schemas.Source // none of the pipeline's; 1 to 64 bytes
	Limit int            // candidates asked for, 1 to 1000
	Share float64        // in feeds that do not name the source; 0: that of others
	// Offer returns at most limit candidates, with scores on a scale of the source's own.
	Offer func(ctx context.Context, user schemas.UserID, feed string, limit int) ([]schemas.Candidate, error)
}

// Scored is a candidate as Own.Score is asked about it: a pin stands there once for each source that has it.
type Scored struct {
	Source schemas.Source
	rules.Candidate
}

// inProcess stands for how an own source is reached, where sources are checked.
func inProcess() outside.Config {
	return outside.Config{URL: "http://127.0.0.1", Timeout: outside.MaxTimeout}
}

// guardOfOwn bounds the calls of one own function.
func guardOfOwn(now func() time.Time) *outside.Guard {
	return outside.NewGuard(inProcess().Timeout, now)
}

// validate reports what is wrong with own sources, as of those of the configuration.
func (o Own) validate(c GeneratorConfig) error {
	for _, s := range o.Sources {
		c.Sources = append(slices.Clone(c.Sources), ExternalSource{Name: s.Name, Config: inProcess(), Limit: s.Limit, Share: s.Share})
	}
	return errors.Join(c.externalProblems()...)
}

// external are the sources as a generator holds them.
func (o Own) external(now func() time.Time) []*externalSource {
	var all []*externalSource
	for _, s := range o.Sources {
		all = append(all, &externalSource{
			ExternalSource: ExternalSource{Name: s.Name, Limit: s.Limit, Share: s.Share}, own: s.Offer, guard: guardOfOwn(now),
		})
	}
	return all
}

// scored returns the best candidates in the order of the questions to a model.
func scored(pools []rules.Pool, n int) []Scored {
	var list []Scored
	eachBest(pools, n, func(p rules.Pool, c *rules.Candidate) { list = append(list, Scored{p.Source, *c}) })
	return list
}

// admitted are the pools without the candidates that may not be in a chunk now.
func (o Own) admitted(user schemas.UserID, feed string, pools []rules.Pool) []rules.Pool {
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

// refuses says that a pin is in pools, and that none of these candidates may be in a chunk now.
func (o Own) refuses(user schemas.UserID, feed string, pin schemas.PinID, pools []rules.Pool) bool {
	has := func(pools []rules.Pool) bool {
		return slices.ContainsFunc(pools, func(p rules.Pool) bool {
			return slices.ContainsFunc(p.Candidates, func(c rules.Candidate) bool { return c.Pin == pin })
		})
	}
	return has(pools) && !has(o.admitted(user, feed, pools))
}
