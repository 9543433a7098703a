package feature

import (
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

// Deps are the dependencies of a Service.
type Deps struct {
	Store       Store
	Definitions []Definition // initial definitions; see Service.Replace
	Deleted     interface {
		Has(user schemas.UserID) bool
	} // deleted users: their features are null with the reason Erased, and their pins are unknown
	Fresh   func() (arrived time.Time, known bool) // for Answer.Fresh; nil: the store's answers say it
	Record  func(Request, Answer, time.Time)       // called with every answer; must not block; may be nil
	Metrics *Metrics
	Log     *slog.Logger
	Now     func() time.Time
}

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
	s := &Service{
		cfg: cfg, deps: deps, scans: semaphore.NewWeighted(int64(cfg.Concurrency)), trials: semaphore.NewWeighted(maxTrials),
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
	got, err := s.within(ctx, s.steps(q))
	if err != nil {
		return Answer{}, err
	}
	s.assemble(&answer, q, got)
	end := s.deps.Now()
	s.deps.Metrics.answered(end.Sub(start), answer.Degraded)
	if s.deps.Record != nil {
		s.deps.Record(req, answer, start)
	}
	return answer, nil
}

// steps returns the reads from the store for an answer.
func (s *Service) steps(q query) func(context.Context, *findings) {
	return func(ctx context.Context, f *findings) {
		s.gather(ctx, f, s.tasks(q))
		s.gather(ctx, f, s.lookups(q, f))
	}
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

// findings collects the results of scans until the answer is assembled.
type findings struct {
	mu     sync.Mutex
	closed bool // the answer is being assembled: later results are ignored
	users  map[schemas.UserID][]Result
	fresh  []time.Time // one per user, if the store reports it
	items  map[schemas.PinID][]Result
	pins   map[schemas.PinID]PinAttributes
	asked  map[schemas.PinID]bool // pins that were looked up
	failed map[string]bool        // users and pins whose scan failed
	err    error                  // the first failure
	late   bool                   // scans were still running at the deadline

	allFailed bool // the store was not read
}

func newFindings() *findings {
	return &findings{
		users: map[schemas.UserID][]Result{}, items: map[schemas.PinID][]Result{},
		pins: map[schemas.PinID]PinAttributes{}, asked: map[schemas.PinID]bool{}, failed: map[string]bool{},
	}
}

// leastFresh returns the oldest of the users' freshness times, or nil if the store did not report one of them.
func (f *findings) leastFresh() *time.Time {
	if len(f.fresh) == 0 {
		return nil
	}
	least := slices.MinFunc(f.fresh, time.Time.Compare).UTC()
	if least.IsZero() {
		return nil
	}
	return &least
}

func (f *findings) close() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.closed = true
}

// task is one scan. scan returns a function that records its result.
type task struct {
	entities []string // reported if the scan fails
	scan     func(ctx context.Context) (note func(*findings), err error)
}

// pinsPerScan limits the pins of a scan, so that scans of other requests can run in between.
const pinsPerScan = 50

func (s *Service) tasks(q query) []task {
	var all []task
	for _, u := range q.scanned() {
		all = append(all, s.userTask(u, q))
	}
	if len(q.ofPin) > 0 {
		for pins := range slices.Chunk(q.pins, pinsPerScan) {
			all = append(all, s.itemTask(pins, q))
		}
	}
	if q.needsPins() {
		all = append(all, s.pinTasks(q.paired(), q.compares())...)
	}
	return all
}

// lookups returns the tasks of the second step: reading the embeddings of the pins in the first step's actions.
func (s *Service) lookups(q query, f *findings) []task {
	f.mu.Lock()
	defer f.mu.Unlock()
	var pins []schemas.PinID
	for _, results := range f.users {
		for i := range q.actions.defs {
			pins = append(pins, q.actions.lookups(i, results)...)
		}
	}
	slices.Sort(pins)
	return s.pinTasks(slices.Compact(pins), true)
}

func (s *Service) pinTasks(pins []schemas.PinID, embeddings bool) []task {
	var all []task
	for pins := range slices.Chunk(pins, pinsPerScan) {
		all = append(all, s.pinTask(pins, embeddings))
	}
	return all
}

// scanned returns the users whose actions are needed.
func (q query) scanned() []schemas.UserID {
	var users []schemas.UserID
	if len(q.ofUser) > 0 {
		users = append(users, q.users...)
	}
	if len(q.ofPair) > 0 {
		for _, p := range q.pairs {
			users = append(users, p.User)
		}
	}
	slices.Sort(users)
	return slices.Compact(users)
}

// needsPins reports whether a feature of a pair needs more of the pin than its id.
func (q query) needsPins() bool {
	return slices.ContainsFunc(q.ofPair, Definition.needsPin)
}

// needsPin reports whether the definition, of entity pair, needs data of the pin.
func (d Definition) needsPin() bool { return d.GroupBy.part != objectPart }

// compares reports whether a feature needs the embeddings of the pairs' pins.
func (q query) compares() bool {
	return slices.ContainsFunc(q.ofPair, func(d Definition) bool { return d.Aggregate == Cosine })
}

func (q query) paired() []schemas.PinID {
	var pins []schemas.PinID
	for _, p := range q.pairs {
		pins = append(pins, p.Pin)
	}
	slices.Sort(pins)
	return slices.Compact(pins)
}

func (s *Service) userTask(user schemas.UserID, q query) task {
	return task{entities: []string{string(user)}, scan: func(ctx context.Context) (func(*findings), error) {
		results, fresh, err := s.deps.Store.Actions(ctx, user, q.span, q.actions.scanned)
		return func(f *findings) { f.users[user], f.fresh = results, append(f.fresh, fresh) }, err
	}}
}

func (s *Service) itemTask(pins []schemas.PinID, q query) task {
	return task{entities: texts(pins), scan: func(ctx context.Context) (func(*findings), error) {
		results, err := s.deps.Store.Items(ctx, pins, q.span.Now, q.items.scanned)
		return func(f *findings) {
			for i, pin := range pins {
				f.items[pin] = results[i]
			}
		}, err
	}}
}

func (s *Service) pinTask(pins []schemas.PinID, embeddings bool) task {
	return task{entities: texts(pins), scan: func(ctx context.Context) (func(*findings), error) {
		known, err := s.deps.Store.Pins(ctx, pins, embeddings)
		return func(f *findings) {
			for _, pin := range pins {
				f.asked[pin] = true
				if a, ok := known[pin]; ok && !s.deps.Deleted.Has(a.Author) {
					f.pins[pin] = a
				}
			}
		}, err
	}}
}

func texts(pins []schemas.PinID) []string {
	out := make([]string, len(pins))
	for i, p := range pins {
		out[i] = string(p)
	}
	return out
}

// gather runs the tasks and returns when all are done or ctx is done. At most Config.Concurrency tasks run in the
// process at the same time. A scan that ignores ctx keeps running after the answer and holds its slot until it returns.
func (s *Service) gather(ctx context.Context, f *findings, tasks []task) {
	if len(tasks) == 0 {
		return
	}
	queue := make(chan task, len(tasks))
	for _, t := range tasks {
		queue <- t
	}
	close(queue)
	var workers sync.WaitGroup
	for range min(len(tasks), s.cfg.Concurrency) {
		workers.Add(1)
		s.under.Go(func() {
			defer workers.Done()
			s.work(ctx, queue, f)
		})
	}
	done := make(chan struct{})
	s.under.Go(func() { workers.Wait(); close(done) })
	select {
	case <-done:
	case <-ctx.Done():
	}
	if ctx.Err() != nil {
		f.mu.Lock()
		f.late = true
		f.mu.Unlock()
	}
}

func (s *Service) work(ctx context.Context, queue <-chan task, f *findings) {
	for t := range queue {
		if err := s.scans.Acquire(ctx, 1); err != nil {
			return
		}
		note, err := t.scan(ctx)
		s.scans.Release(1)
		f.note(ctx, t, note, err)
	}
}

func (f *findings) note(ctx context.Context, t task, note func(*findings), err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case f.closed, err != nil && ctx.Err() != nil:
	case err != nil:
		for _, e := range t.entities {
			f.failed[e] = true
		}
		if f.err == nil {
			f.err = err
		}
	default:
		note(f)
	}
}

// lacking returns the reason why there is no result for a user or pin.
func (f *findings) lacking(entity string) Result {
	if f.allFailed || f.failed[entity] {
		return absent(Failed)
	}
	return absent(Deadline)
}

// assemble fills the answer, in the order of the request.
func (s *Service) assemble(answer *Answer, q query, f *findings) {
	if s.deps.Fresh == nil {
		answer.Fresh = f.leastFresh()
	}
	b := &builder{answer}
	b.Values, b.Missing, b.Degraded, b.AsOf = map[string]map[string]Value{}, []Missing{}, []string{}, floor(q.span.AsOf).time()
	users := s.settleUsers(q, f)
	for _, u := range q.users {
		for i, d := range q.ofUser {
			b.add(string(u), d.Name, users[u][i])
		}
		b.entity(string(u))
	}
	for _, p := range q.pins {
		for i, r := range f.ofItem(p, q.items) {
			b.add(string(p), q.ofPin[i].Name, r)
		}
		b.entity(string(p))
	}
	for _, p := range q.pairs {
		for i, d := range q.ofPair {
			b.add(p.String(), d.Name, f.ofPair(p, d, users[p.User][len(q.ofUser)+i]))
		}
		b.entity(p.String())
	}
	if f.err != nil {
		s.deps.Log.Warn("features: answer without all values", "error", f.err)
	}
	slices.Sort(b.Degraded)
}

// settleUsers returns the results of q.actions for each requested user, alone or in a pair.
func (s *Service) settleUsers(q query, f *findings) map[schemas.UserID][]Result {
	vectors := make(map[schemas.PinID][]float32, len(f.pins))
	for pin, a := range f.pins {
		vectors[pin] = a.Embedding
	}
	all := map[schemas.UserID][]Result{}
	for _, u := range q.users {
		all[u] = s.settleUser(u, q, f, vectors)
	}
	for _, p := range q.pairs {
		if _, ok := all[p.User]; !ok {
			all[p.User] = s.settleUser(p.User, q, f, vectors)
		}
	}
	return all
}

func (s *Service) settleUser(u schemas.UserID, q query, f *findings, vectors map[schemas.PinID][]float32) []Result {
	scanned, ok := f.users[u]
	switch {
	case s.deps.Deleted.Has(u):
		return repeated(absent(Erased), len(q.actions.defs))
	case !ok:
		return repeated(f.lacking(string(u)), len(q.actions.defs))
	}
	results := q.actions.settled(scanned, vectors)
	for i := range results {
		for _, pin := range q.actions.lookups(i, scanned) {
			if !f.asked[pin] {
				results[i] = f.lacking(string(pin))
			}
		}
	}
	return results
}

func repeated(r Result, n int) []Result {
	all := make([]Result, n)
	for i := range all {
		all[i] = r
	}
	return all
}

func (f *findings) ofItem(pin schemas.PinID, items compiled) []Result {
	if results, ok := f.items[pin]; ok {
		return items.settled(results, nil)
	}
	return repeated(f.lacking(string(pin)), len(items.defs))
}

func (f *findings) ofPair(p UserPin, d Definition, ofUser Result) Result {
	if ofUser.Value != nil && d.needsPin() && !f.asked[p.Pin] {
		return f.lacking(string(p.Pin))
	}
	own, known := f.pins[p.Pin]
	return pick(d, ofUser, p.Pin, own, known)
}

// builder fills an answer.
type builder struct{ *Answer }

// entity adds an entity to the answer, even if it has no features.
func (b *builder) entity(name string) map[string]Value {
	if b.Values[name] == nil {
		b.Values[name] = map[string]Value{}
	}
	return b.Values[name]
}

func (b *builder) add(entity, feature string, r Result) {
	b.entity(entity)[feature] = r.Value
	for _, reason := range r.Reasons {
		b.Missing = append(b.Missing, Missing{Entity: entity, Feature: feature, Reason: reason})
		b.Degraded = degraded(b.Degraded, reason)
	}
}

// degraded adds a reason that concerns the store, and not the data in it.
func degraded(list []string, reason Reason) []string {
	if (reason == Deadline || reason == Failed) && !slices.Contains(list, string(reason)) {
		list = append(list, string(reason))
	}
	return list
}
