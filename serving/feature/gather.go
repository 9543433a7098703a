package feature

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/smartfeed/smartfeed/internal/convert"
	"github.com/smartfeed/smartfeed/schemas"
)

// within runs work within the deadline, unless the circuit breaker is open. It returns the error of ctx if the caller
// has canceled.
func (s *Service) within(ctx context.Context, work func(context.Context, *findings)) (*findings, error) {
	done, err := s.breaker.Allow()
	if err != nil {
		return unread(), nil
	}
	f, err := s.run(ctx, work)
	switch {
	case err != nil:
		done(errInconclusive)
	case f.err != nil || f.late:
		done(errIncomplete)
	default:
		done(nil)
	}
	return f, err
}

// run is within, without the circuit breaker.
func (s *Service) run(ctx context.Context, work func(context.Context, *findings)) (*findings, error) {
	f := newFindings()
	limited, cancel := context.WithTimeout(ctx, s.cfg.Timeout)
	defer cancel()
	work(limited, f)
	f.close()
	if err := ctx.Err(); err != nil && !errors.Is(err, context.DeadlineExceeded) {
		return nil, err
	}
	return f, nil
}

// unread returns findings without reading from the store.
func unread() *findings {
	f := newFindings()
	f.closed, f.allFailed = true, true
	return f
}

// findings collects the results of scans until the answer is assembled.
type findings struct {
	mu       sync.Mutex
	closed   bool // the answer is being assembled: later results are ignored
	users    map[schemas.UserID][]Result
	fresh    []time.Time // one per scan, if the store reports it
	items    map[schemas.PinID][]Result
	pins     map[schemas.PinID]PinAttributes
	lookedUp map[schemas.PinID]bool
	failed   map[string]Reason // users and pins whose scan failed, or whose embedding was too large
	bytes    int               // of the results; see MaxAnswerBytes
	err      error             // the first failure
	late     bool              // scans were still running at the deadline

	allFailed bool // the store was not read
}

func newFindings() *findings {
	return &findings{
		users: map[schemas.UserID][]Result{}, items: map[schemas.PinID][]Result{},
		pins: map[schemas.PinID]PinAttributes{}, lookedUp: map[schemas.PinID]bool{}, failed: map[string]Reason{},
	}
}

// leastFresh returns the oldest of the scans' freshness times, or nil if the store did not report one of them.
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

// admit counts the bytes of a result, and reports whether it fits into the answer.
func (f *findings) admit(bytes int) bool {
	if f.bytes+bytes > MaxAnswerBytes {
		return false
	}
	f.bytes += bytes
	return true
}

// bounded returns the result, without its value if it does not fit into the answer.
func (f *findings) bounded(r Result) Result {
	if !f.admit(size(r.Value)) {
		return absent(TooLarge)
	}
	return r
}

func (f *findings) allBounded(results []Result) []Result {
	for i, r := range results {
		results[i] = f.bounded(r)
	}
	return results
}

// task is one scan. scan returns a function that records its result.
type task struct {
	entities []string // reported if the scan fails
	scan     func(ctx context.Context) (note func(*findings), err error)
}

func (s *Service) tasks(q query) []task {
	var all []task
	for _, u := range q.scanned() {
		all = append(all, s.userTask(u, q))
	}
	if len(q.ofPin) > 0 {
		for pins := range slices.Chunk(q.pins, s.deps.PinsPerScan) {
			all = append(all, s.itemTask(pins, q))
		}
	}
	if q.needsPins() {
		all = append(all, s.pinTasks(q.paired(), q.compares())...)
	}
	return all
}

func (s *Service) pinTasks(pins []schemas.PinID, embeddings bool) []task {
	var all []task
	for pins := range slices.Chunk(pins, s.deps.PinsPerScan) {
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
func (d Definition) needsPin() bool {
	return len(d.GroupBy) == 0 || slices.ContainsFunc(d.GroupBy, func(p Path) bool { return p.part != objectPart })
}

// compares reports whether a feature needs the embeddings of the pairs' pins.
func (q query) compares() bool {
	return slices.ContainsFunc(q.ofPair, func(d Definition) bool { return d.Aggregate == Cosine })
}

func (q query) paired() []schemas.PinID {
	pins := convert.All(q.pairs, func(p UserPin) schemas.PinID { return p.Pin })
	slices.Sort(pins)
	return slices.Compact(pins)
}

func (s *Service) userTask(user schemas.UserID, q query) task {
	return task{entities: []string{string(user)}, scan: func(ctx context.Context) (func(*findings), error) {
		results, fresh, err := s.deps.Store.Actions(ctx, user, q.span, q.actions.scanned)
		return func(f *findings) { f.users[user], f.fresh = f.allBounded(results), append(f.fresh, fresh) }, err
	}}
}

func (s *Service) itemTask(pins []schemas.PinID, q query) task {
	return task{entities: schemas.Strings(pins), scan: func(ctx context.Context) (func(*findings), error) {
		results, fresh, err := s.deps.Store.Items(ctx, pins, q.span.Now, q.items.scanned)
		return func(f *findings) {
			f.fresh = append(f.fresh, fresh)
			for i, pin := range pins {
				f.items[pin] = f.allBounded(results[i])
			}
		}, err
	}}
}

func (s *Service) pinTask(pins []schemas.PinID, embeddings bool) task {
	return task{entities: schemas.Strings(pins), scan: func(ctx context.Context) (func(*findings), error) {
		known, fresh, err := s.deps.Store.Pins(ctx, pins, embeddings)
		return func(f *findings) {
			f.fresh = append(f.fresh, fresh)
			for _, pin := range pins {
				a, ok := known[pin]
				if !f.admit(len(a.Embedding) * numberBytes) {
					f.failed[string(pin)] = TooLarge
					continue
				}
				f.lookedUp[pin] = true
				if ok && !s.deps.Deleted.Has(a.Author) {
					f.pins[pin] = a
				}
			}
		}, err
	}}
}

// gather runs the tasks and returns when all are done or ctx is done. At most Config.MaxConcurrentScans tasks run in the
// process at the same time. A scan that ignores ctx keeps running after the answer and holds its slot until it returns.
func (s *Service) gather(ctx context.Context, f *findings, tasks []task) {
	done := make(chan struct{})
	s.under.Go(func() {
		defer close(done)
		var running sync.WaitGroup
		for _, t := range tasks {
			if s.scans.Acquire(ctx, 1) != nil {
				break
			}
			running.Go(func() {
				note, err := t.scan(ctx)
				s.scans.Release(1)
				f.note(ctx, t, note, err)
			})
		}
		running.Wait()
	})
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

func (f *findings) note(ctx context.Context, t task, note func(*findings), err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case f.closed, err != nil && ctx.Err() != nil:
	case err != nil:
		for _, e := range t.entities {
			f.failed[e] = Failed
		}
		f.err = cmp.Or(f.err, err)
	default:
		note(f)
	}
}

// missingResult returns the reason why there is no result for a user or pin.
func (f *findings) missingResult(entity string) Result {
	if f.allFailed {
		return absent(Failed)
	}
	return absent(cmp.Or(f.failed[entity], Deadline))
}
