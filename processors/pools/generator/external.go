package generator

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/smartfeed/smartfeed/internal/bounds"
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
	Name           schemas.Source `yaml:"name"` // not one of the built-in sources; 1 to 64 bytes
	outside.Config `yaml:",inline"`
	Limit          int     `yaml:"limit"` // requested candidates, 1 to 1000
	Share          float64 `yaml:"share"` // share in feeds that do not name the source; 0: the share of others
}

// ExternalModel adds to the scores of candidates while a chunk is composed.
//
// The request is {"user", "feed", "candidates": [{"pin", "source", "score", "created", "author", "board", "interests"}…]}.
// The response is {"scores": {pin: number…}}. A pin without a score gets nothing. The bounds of the response are those of
// ExternalSource.
type ExternalModel struct {
	outside.Config `yaml:",inline"` // without a URL there is no model
	Candidates     int              `yaml:"candidates"` // the best of all sources that are sent, 1 to 1000
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
	errs := []error{s.Config.Validate(), bounds.Within("limit", s.Limit, 1, schemas.MaxCandidates)}
	if err := s.Name.CheckOffered(); err != nil {
		errs = append(errs, fmt.Errorf("name %q: %w", s.Name, err))
	}
	if !(s.Share >= 0 && s.Share <= 1e9) {
		errs = append(errs, fmt.Errorf("share: %v: want 0 or more", s.Share))
	}
	return errors.Join(errs...)
}

func (m ExternalModel) validate() error {
	return errors.Join(m.Config.Validate(), bounds.Within("candidates", m.Candidates, 1, 1000))
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

// external holds the external services that a generator calls.
type external struct {
	sources []*externalSource
	model   *outside.Service // nil: no model
	own     Extensions
	scoring *outside.Guard // bounds the calls of own.Score
	limit   int            // candidates that the model is asked about
	metrics generatorMetrics
	now     func() time.Time
}

type externalSource struct {
	ExternalSource
	service *outside.Service // nil: the source is the function own
	own     func(ctx context.Context, user schemas.UserID, feed string, limit int) ([]schemas.Candidate, error)
	guard   *outside.Guard // bounds the calls of own
}

func newExternal(cfg Config, own Extensions, dial outside.Dial, metrics generatorMetrics, now func() time.Time) *external {
	x := &external{limit: cfg.Model.Candidates, own: own, scoring: extensionBreaker(), metrics: metrics, now: now}
	for _, s := range cfg.Sources {
		x.sources = append(x.sources, &externalSource{ExternalSource: s, service: outside.New(s.Config, dial)})
	}
	x.sources = append(x.sources, own.external()...)
	if cfg.Model.URL != "" {
		x.model = outside.New(cfg.Model.Config, dial)
	}
	return x
}

func (x *external) close() {
	for _, s := range x.sources {
		if s.service != nil {
			s.service.Close()
		}
	}
	if x.model != nil {
		x.model.Close()
	}
}

// offers are the candidates of external sources for one chunk, best first, each pin once.
type offers struct {
	by       map[schemas.Source][]layout.Candidate
	degraded []string // sources that did not answer
}

// ask asks all sources that have a share in the feed, in parallel.
func (x *external) ask(ctx context.Context, o *order) offers {
	all := offers{by: map[schemas.Source][]layout.Candidate{}}
	var mu sync.Mutex
	var asked sync.WaitGroup
	for _, s := range x.sources {
		if o.feed.Share(s.Name) == 0 {
			continue
		}
		asked.Go(func() {
			list, err := x.askSource(ctx, s, o)
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				all.degraded = append(all.degraded, degradedSource+string(s.Name))
				return
			}
			all.by[s.Name] = list
		})
	}
	asked.Wait()
	slices.Sort(all.degraded)
	return all
}

// answerValues is the maximum number of JSON values in a response per candidate of the request: the maximum number of
// interests, the other fields, and as many values that are not read.
const answerValues = 2 * schemas.MaxInterests

// sourceQuestion and sourceAnswer are the request and the response of an ExternalSource.
type sourceQuestion struct {
	User  schemas.UserID `json:"user"`
	Feed  string         `json:"feed"`
	Limit int            `json:"limit"`
}

type sourceAnswer struct {
	Candidates []offeredPin `json:"candidates"`
}

type offeredPin struct {
	Pin schemas.PinID `json:"pin"`
	schemas.Facets
	Created moment  `json:"created"`
	Score   float64 `json:"score"`
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

func (x *external) askSource(ctx context.Context, s *externalSource, o *order) ([]layout.Candidate, error) {
	offered, err := s.offer(ctx, o)
	x.metrics.asked(string(s.Name), err)
	if err != nil {
		return nil, err
	}
	now := schemas.MicrosOf(x.now())
	var list []layout.Candidate
	for i := range offered {
		c := &offered[i]
		if len(list) == s.Limit || c.Validate(now) != nil {
			x.metrics.refused.WithLabelValues(string(s.Name)).Inc()
			continue
		}
		list = append(list, layout.Candidate{Pin: c.Pin, Score: c.Score, Content: layout.NewContent(c.Facets, c.Created, false)})
	}
	return bestOfEach(list), nil
}

// offer asks the source for candidates.
func (s *externalSource) offer(ctx context.Context, o *order) (list []schemas.Candidate, err error) {
	if s.own != nil {
		err = s.guard.Do(ctx, func(ctx context.Context) (err error) {
			list, err = s.own(ctx, o.User, o.Feed, s.Limit)
			return err
		})
		return list, err
	}
	var answer sourceAnswer
	if err := s.service.Ask(ctx, sourceQuestion{o.User, o.Feed, s.Limit}, &answer, answerValues*s.Limit); err != nil {
		return nil, err
	}
	list = make([]schemas.Candidate, len(answer.Candidates))
	for i, p := range answer.Candidates {
		list[i] = schemas.Candidate{Pin: p.Pin, Facets: p.Facets, Created: schemas.Micros(p.Created), Score: p.Score}
	}
	return list, nil
}

// bestOfEach sorts candidates, best first, and keeps the best of each pin. It modifies list.
func bestOfEach(list []layout.Candidate) []layout.Candidate {
	slices.SortFunc(list, func(a, b layout.Candidate) int { return comparePlaces(a.Score, a.Pin, b.Score, b.Pin) })
	taken := make(map[schemas.PinID]bool, len(list))
	return slices.DeleteFunc(list, func(c layout.Candidate) bool {
		again := taken[c.Pin]
		taken[c.Pin] = true
		return again
	})
}

// modelQuestion and modelAnswer are the request and the response of an ExternalModel.
type modelQuestion struct {
	User       schemas.UserID   `json:"user"`
	Feed       string           `json:"feed"`
	Candidates []modelCandidate `json:"candidates"`
}

type modelCandidate struct {
	Pin     schemas.PinID  `json:"pin"`
	Source  schemas.Source `json:"source"`
	Score   float64        `json:"score"`
	Created time.Time      `json:"created"`
	schemas.Facets
}

type modelAnswer struct {
	Scores map[schemas.PinID]float64 `json:"scores"`
}

// score asks the model about the best candidates. It does nothing without a model, or if the feed does not use one.
func (x *external) score(ctx context.Context, o *order, m *material) {
	if x.model == nil && x.own.Score == nil || o.feed.Model == 0 {
		return
	}
	scores, err := x.scores(ctx, o, m.pools)
	x.metrics.asked("model", err)
	if err != nil {
		m.degraded = append(m.degraded, degradedModel)
		return
	}
	maps.DeleteFunc(scores, func(_ schemas.PinID, score float64) bool { return !(math.Abs(score) <= mostModel) })
	m.known.Model = scores
}

// scores asks own.Score if it is set, otherwise the external model.
func (x *external) scores(ctx context.Context, o *order, pools []rules.Pool) (scores map[schemas.PinID]float64, err error) {
	if x.own.Score != nil {
		err = x.scoring.Do(ctx, func(ctx context.Context) (err error) {
			scores, err = x.own.Score(ctx, o.User, o.Feed, scored(pools, x.limit))
			return err
		})
		return maps.Clone(scores), err
	}
	var answer modelAnswer
	err = x.model.Ask(ctx, modelQuestion{o.User, o.Feed, topOf(pools, x.limit)}, &answer, answerValues*x.limit)
	return answer.Scores, err
}

// mostModel is the largest absolute score of a model that counts. Sums with larger ones might not be finite.
const mostModel = 1e6

// topOf returns the candidates that eachBest visits, in the form of a model request.
func topOf(pools []rules.Pool, n int) []modelCandidate {
	list := []modelCandidate{}
	eachBest(pools, n, func(p rules.Pool, c *rules.Candidate) {
		list = append(list, modelCandidate{
			Pin: c.Pin, Source: p.Source, Score: c.Score, Created: c.Created.Writable().Time(), Facets: c.Facets,
		})
	})
	return list
}

// eachBest visits n candidates: the best of each pool, then the second of each, and so on. It visits a pin once per source
// that has it. The model's score of a pin applies to all of these.
func eachBest(pools []rules.Pool, n int, visit func(rules.Pool, *rules.Candidate)) {
	for rank, left := 0, n; left > 0; rank++ {
		before := left
		for _, p := range pools {
			if rank >= len(p.Candidates) || left == 0 {
				continue
			}
			visit(p, &p.Candidates[rank])
			left--
		}
		if left == before {
			break
		}
	}
}

// outcomeOf returns the metric label for the outcome of a call.
func outcomeOf(err error) string {
	switch {
	case err == nil:
		return "answered"
	case errors.Is(err, outside.ErrOpen):
		return "open"
	case errors.Is(err, outside.ErrBusy):
		return "busy"
	case errors.Is(err, context.DeadlineExceeded):
		return "late"
	}
	return "failed"
}
