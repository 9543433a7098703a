package feature

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sony/gobreaker/v2"
	"golang.org/x/sync/semaphore"

	"github.com/smartfeed/smartfeed/schemas"
)

// DeletedUsers is the set of deleted users.
type DeletedUsers interface {
	Has(user schemas.UserID) bool
}

// Deps are the dependencies of a Service.
type Deps struct {
	Store       Store
	PinsPerScan int                                    // pins of one read; 0: DefaultPinsPerScan
	Definitions []Definition                           // initial definitions; see Service.Replace
	Deleted     DeletedUsers                           // their features are null with the reason Erased, and their pins are unknown
	Fresh       func() (arrived time.Time, known bool) // for Answer.Fresh; nil: the store's answers say it
	Record      func(Request, Answer, time.Time)       // called with every answer; must not block; may be nil
	Metrics     *Metrics
	Log         *slog.Logger
	Now         func() time.Time
}

// DefaultPinsPerScan is small, so that reads of other requests can run in between.
const DefaultPinsPerScan = 50

// Service answers requests. It is safe for concurrent use.
type Service struct {
	cfg         Config
	deps        Deps
	definitions atomic.Pointer[definitionSet]
	scans       *semaphore.Weighted
	trials      *semaphore.Weighted // see Try
	under       sync.WaitGroup      // running scans, including those whose answer has been returned
	breaker     *gobreaker.TwoStepCircuitBreaker[any]
}

// NewService returns a service. It returns an error if cfg is invalid or two definitions have the same name.
func NewService(cfg Config, deps Deps) (*Service, error) {
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("feature service: %w", err)
	}
	deps.PinsPerScan = cmp.Or(deps.PinsPerScan, DefaultPinsPerScan)
	s := &Service{
		cfg: cfg, deps: deps, scans: semaphore.NewWeighted(int64(cfg.MaxConcurrentScans)), trials: semaphore.NewWeighted(maxTrials),
		breaker: newBreaker(cfg, deps.Metrics),
	}
	if err := s.Replace(deps.Definitions); err != nil {
		return nil, err
	}
	return s, nil
}

// Replace replaces the definitions. Answers in flight keep the definitions that they started with. It returns an error,
// and changes nothing, if two definitions have the same name.
func (s *Service) Replace(defs []Definition) error {
	set, err := newDefinitionSet(defs)
	if err != nil {
		return fmt.Errorf("feature service: %w", err)
	}
	s.definitions.Store(set)
	return nil
}

// Definitions returns the present definitions, in the order of the file.
func (s *Service) Definitions() []Definition { return slices.Clone(s.definitions.Load().inOrder) }

// Close waits for scans that outlived their deadline. Answer must not be called after it.
func (s *Service) Close() { s.under.Wait() }

// Answer evaluates the features of a request. It returns a *RequestError for an invalid request, and the error of ctx
// if the caller has canceled. It returns no other error. If the deadline of Config or of ctx passes, or the store
// fails, the answer has the available values and lists the others in missing.
func (s *Service) Answer(ctx context.Context, req Request) (Answer, error) {
	start := s.deps.Now()
	q, err := req.checked(s.definitions.Load(), schemas.MicrosOf(start))
	if err != nil {
		return Answer{}, err
	}
	answer := Answer{Fresh: s.fresh()}
	got, err := s.within(ctx, s.read(q))
	if err != nil {
		return Answer{}, err
	}
	s.assemble(&answer, q, got)
	end := s.deps.Now()
	s.deps.Metrics.answered(end.Sub(start), answer.Degraded)
	if s.deps.Record != nil && !req.Unrecorded {
		s.deps.Record(req, answer, start)
	}
	return answer, nil
}

// read returns the reads from the store for an answer.
func (s *Service) read(q query) func(context.Context, *findings) {
	return func(ctx context.Context, f *findings) { s.gather(ctx, f, s.tasks(q)) }
}

func (s *Service) fresh() *time.Time {
	if s.deps.Fresh == nil {
		return nil
	}
	arrived, known := s.deps.Fresh()
	if !known {
		return nil
	}
	arrived = arrived.UTC()
	return &arrived
}

// leastFresh returns the freshness at the start of an answer, or, if the store's answers say it, that of the least fresh one.
func (s *Service) leastFresh(atStart *time.Time, f *findings) *time.Time {
	if s.deps.Fresh == nil {
		return f.leastFresh()
	}
	return atStart
}

// assemble fills the answer, in the order of the request.
func (s *Service) assemble(answer *Answer, q query, f *findings) {
	answer.Fresh = s.leastFresh(answer.Fresh, f)
	answer.Values, answer.Missing, answer.Degraded = map[string]map[string]Value{}, []Missing{}, []string{}
	answer.AsOf = floor(q.span.AsOf).time()
	users := s.settleUsers(q, f)
	for _, u := range q.users {
		answer.add(string(u), q.ofUser, users[u])
	}
	for _, p := range q.pins {
		answer.add(string(p), q.ofPin, f.ofItem(p, q.items))
	}
	for _, p := range q.pairs {
		results := slices.Clone(users[p.User][len(q.ofUser):])
		for i, d := range q.ofPair {
			results[i] = f.bounded(f.ofPair(p, d, results[i]))
		}
		answer.add(p.String(), q.ofPair, results)
	}
	if f.err != nil {
		s.deps.Log.Warn("feature answer is incomplete", "error", f.err)
	}
	slices.Sort(answer.Degraded)
}

// settleUsers returns the results of q.actions for each requested user, alone or in a pair.
func (s *Service) settleUsers(q query, f *findings) map[schemas.UserID][]Result {
	users := slices.Clone(q.users)
	for _, p := range q.pairs {
		users = append(users, p.User)
	}
	all := map[schemas.UserID][]Result{}
	for _, u := range users {
		if all[u] == nil {
			all[u] = s.settleUser(u, q, f)
		}
	}
	return all
}

func (s *Service) settleUser(u schemas.UserID, q query, f *findings) []Result {
	scanned, ok := f.users[u]
	switch {
	case s.deps.Deleted.Has(u):
		return slices.Repeat([]Result{absent(Erased)}, len(q.actions.defs))
	case !ok:
		return slices.Repeat([]Result{f.missingResult(string(u))}, len(q.actions.defs))
	}
	return q.actions.settled(scanned)
}

func (f *findings) ofItem(pin schemas.PinID, items compiled) []Result {
	if results, ok := f.items[pin]; ok {
		return items.settled(results)
	}
	return slices.Repeat([]Result{f.missingResult(string(pin))}, len(items.defs))
}

func (f *findings) ofPair(p UserPin, d Definition, ofUser Result) Result {
	if ofUser.Value != nil && d.needsPin() && !f.lookedUp[p.Pin] {
		return f.missingResult(string(p.Pin))
	}
	own, known := f.pins[p.Pin]
	return pick(d, ofUser, p.Pin, own, known)
}

// add adds an entity with the results of its features, in the order of the definitions.
func (a *Answer) add(entity string, defs []Definition, results []Result) {
	values := make(map[string]Value, len(defs))
	for i, d := range defs {
		values[d.Name] = results[i].Value
		for _, reason := range results[i].Reasons {
			a.Missing = append(a.Missing, Missing{Entity: entity, Feature: d.Name, Reason: reason})
			a.Degraded = degraded(a.Degraded, reason)
		}
	}
	a.Values[entity] = values
}

// degraded adds a reason that concerns the answer, and not the data in the store.
func degraded(list []string, reason Reason) []string {
	if (reason == Deadline || reason == Failed || reason == TooLarge) && !slices.Contains(list, string(reason)) {
		list = append(list, string(reason))
	}
	return list
}
