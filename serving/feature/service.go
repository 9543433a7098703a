package feature

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/smartfeed/smartfeed/schemas"
)

// Deps are the collaborators of a Service.
type Deps struct {
	Store       Store
	Definitions []Definition
	Deleted     interface {
		Has(user schemas.UserID) bool
	} // whose features are null, with the reason Erased
	Metrics *Metrics
	Log     *slog.Logger
	Now     func() time.Time
}

// Service answers requests. It is safe for concurrent use.
type Service struct {
	cfg    Config
	deps   Deps
	byName map[string]Definition
	scans  *semaphore.Weighted
	under  sync.WaitGroup // scans under way, also those that nobody waits for any more
}

// NewService makes a service. It fails when cfg is not valid or two definitions have one name.
func NewService(cfg Config, deps Deps) (*Service, error) {
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("feature service: %w", err)
	}
	s := &Service{cfg: cfg, deps: deps, byName: map[string]Definition{}, scans: semaphore.NewWeighted(int64(cfg.Concurrency))}
	for _, d := range deps.Definitions {
		if _, ok := s.byName[d.Name]; ok {
			return nil, fmt.Errorf("feature service: two definitions of %s", d.Name)
		}
		s.byName[d.Name] = d
	}
	return s, nil
}

// Definitions returns what can be asked for, in the order of the file.
func (s *Service) Definitions() []Definition { return slices.Clone(s.deps.Definitions) }

// Close waits for scans that were given up at a deadline. No Answer may be called any more.
func (s *Service) Close() { s.under.Wait() }

// Answer evaluates the features. A request that cannot be answered is a *RequestError; the only other error is that of
// ctx when the caller has gone. When the deadline, of Config or of ctx, passes or the store fails, the values there are
// are answered, and the others are named.
func (s *Service) Answer(ctx context.Context, req Request) (Answer, error) {
	start := s.deps.Now()
	q, err := req.checked(s.byName, schemas.MicrosOf(start))
	if err != nil {
		return Answer{}, err
	}
	within, cancel := context.WithTimeout(ctx, s.cfg.Deadline)
	defer cancel()
	got := s.gather(within, s.tasks(q))
	if err := ctx.Err(); err != nil && !errors.Is(err, context.DeadlineExceeded) {
		return Answer{}, err
	}
	answer := s.assemble(q, got)
	s.deps.Metrics.answered(s.deps.Now().Sub(start), answer.Degraded)
	return answer, nil
}

// findings are what scans brought until the answer is made.
type findings struct {
	mu     sync.Mutex
	closed bool // the answer is being made: what comes now is too late
	users  map[schemas.UserID][]Result
	items  map[schemas.PinID][]Result
	pins   map[schemas.PinID]PinAttributes
	asked  map[schemas.PinID]bool // of pins: looked up
	failed map[string]bool        // users and pins whose scan failed
	err    error                  // the first failure
}

// task is one scan. It returns how to note what it found.
type task struct {
	entities []string // to be named when it fails
	scan     func(ctx context.Context) (note func(*findings), err error)
}

// pinsPerScan bounds what one scan does between two of other requests.
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
		for pins := range slices.Chunk(q.paired(), pinsPerScan) {
			all = append(all, s.pinTask(pins))
		}
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

// defsOf returns what is evaluated over a user's actions in one scan: features of the user, then of its pairs.
func (q query) defsOf() []Definition { return slices.Concat(q.ofUser, q.ofPair) }

// needsPins says that a feature looks something up that is not the pin's id.
func (q query) needsPins() bool {
	return slices.ContainsFunc(q.ofPair, func(d Definition) bool { return d.GroupBy.part != objectPart })
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
		results, err := s.deps.Store.Actions(ctx, user, q.span, q.defsOf())
		return func(f *findings) { f.users[user] = results }, err
	}}
}

func (s *Service) itemTask(pins []schemas.PinID, q query) task {
	return task{entities: texts(pins), scan: func(ctx context.Context) (func(*findings), error) {
		results, err := s.deps.Store.Items(ctx, pins, q.span.Now, q.ofPin)
		return func(f *findings) {
			for i, pin := range pins {
				f.items[pin] = results[i]
			}
		}, err
	}}
}

func (s *Service) pinTask(pins []schemas.PinID) task {
	return task{entities: texts(pins), scan: func(ctx context.Context) (func(*findings), error) {
		known, err := s.deps.Store.Pins(ctx, pins)
		return func(f *findings) {
			for _, pin := range pins {
				f.asked[pin] = true
				if a, ok := known[pin]; ok {
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

// gather runs the tasks, no more at once than Config.Concurrency in the whole process, and returns what they found when
// all are done or ctx has ended. A scan that does not heed ctx goes on behind the back of the answer; it keeps its place
// among the scans until it returns.
func (s *Service) gather(ctx context.Context, tasks []task) *findings {
	f := &findings{
		users: map[schemas.UserID][]Result{}, items: map[schemas.PinID][]Result{},
		pins: map[schemas.PinID]PinAttributes{}, asked: map[schemas.PinID]bool{}, failed: map[string]bool{},
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
	f.mu.Lock()
	defer f.mu.Unlock()
	f.closed = true
	return f
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

// lacking returns why there are no findings about a user or pin.
func (f *findings) lacking(entity string) Result {
	if f.failed[entity] {
		return absent(Failed)
	}
	return absent(Deadline)
}

// assemble makes the answer, in the order of the request.
func (s *Service) assemble(q query, f *findings) Answer {
	b := &builder{Answer{
		Values: map[string]map[string]Value{}, Missing: []Missing{}, Degraded: []string{}, AsOf: floor(q.span.AsOf).time(),
	}}
	for _, u := range q.users {
		for i, d := range q.ofUser {
			b.add(string(u), d.Name, s.ofUser(u, i, f))
		}
		b.entity(string(u))
	}
	for _, p := range q.pins {
		for i, d := range q.ofPin {
			b.add(string(p), d.Name, f.ofItem(p, i))
		}
		b.entity(string(p))
	}
	for _, p := range q.pairs {
		for i, d := range q.ofPair {
			b.add(p.String(), d.Name, s.ofPair(p, d, len(q.ofUser)+i, f))
		}
		b.entity(p.String())
	}
	if f.err != nil {
		s.deps.Log.Warn("features: answer without all values", "error", f.err)
	}
	slices.Sort(b.Degraded)
	return b.Answer
}

// ofUser returns the i-th result of the user's scan.
func (s *Service) ofUser(user schemas.UserID, i int, f *findings) Result {
	if s.deps.Deleted.Has(user) {
		return absent(Erased)
	}
	if results, ok := f.users[user]; ok {
		return results[i]
	}
	return f.lacking(string(user))
}

func (f *findings) ofItem(pin schemas.PinID, i int) Result {
	if results, ok := f.items[pin]; ok {
		return results[i]
	}
	return f.lacking(string(pin))
}

func (s *Service) ofPair(p UserPin, d Definition, i int, f *findings) Result {
	groups := s.ofUser(p.User, i, f)
	if groups.Value != nil && d.GroupBy.part != objectPart && !f.asked[p.Pin] {
		return f.lacking(string(p.Pin))
	}
	own, known := f.pins[p.Pin]
	return pick(d, groups, p.Pin, own, known)
}

// builder fills an answer.
type builder struct{ Answer }

// entity gives an entity its place, also without any feature.
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
		if degrades := reason == Deadline || reason == Failed; degrades && !slices.Contains(b.Degraded, string(reason)) {
			b.Degraded = append(b.Degraded, string(reason))
		}
	}
}
