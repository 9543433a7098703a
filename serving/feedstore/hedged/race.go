package hedged

import (
	"context"
	"errors"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"github.com/smartfeed/smartfeed/internal/tracing"
	"github.com/smartfeed/smartfeed/serving/feed"
	"github.com/smartfeed/smartfeed/serving/feedstore"
)

// kind is a kind of read: the properties of its answers, and the latency of each store.
type kind[T any] struct {
	name     string
	topic    string            // the topic whose records make up the answers, for reads in which lag matters; "": it does not
	complete func(T) bool      // reports that the answer has no hole; nil: no answer can have one
	further  func(a, b T) bool // reports that a goes further than b, both with holes
	same     func(a, b T) bool
	took     [2]latency // by side
}

func (k *kind[T]) isComplete(v T) bool { return k.complete == nil || k.complete(v) }

// after returns the time after which the second store is also queried.
func (k *kind[T]) after(first side, cfg Config) time.Duration {
	p := k.took[first].p999()
	if p == 0 {
		return cfg.MaxDelay
	}
	return min(max(p, cfg.MinDelay), cfg.MaxDelay)
}

// readFunc is a read of one store.
type readFunc[T any] func(ctx context.Context, from feed.Store) (T, error)

// answer is the result of a readFunc.
type answer[T any] struct {
	from  side
	value T
	err   error
	took  time.Duration
}

// race is a read in flight.
type race[T any] struct {
	s        *Store
	kind     *kind[T]
	read     readFunc[T]
	ctx      context.Context // of the calls, canceled when the race is decided
	first    side
	lags     [2]bool        // by side: the store lacks records that the other one has
	answers  chan answer[T] // capacity for both
	running  int
	second   bool             // the second store was queried
	borrowed bool             // the second store was queried on credit
	fallback *answer[T]       // with a hole
	enough   <-chan time.Time // fires when the other answer is no longer waited for; nil: not set
	errs     []error
}

// read runs a race. keys are the keys of the records that make up the answer.
func read[T any](ctx context.Context, s *Store, k *kind[T], f readFunc[T], keys ...string) (T, error) {
	first, warm := s.balance.begin()
	lags := s.lagging(k.topic, keys)
	if lags[first] && !lags[first.other()] {
		first = first.other()
	}
	calls, decided := context.WithCancel(ctx)
	defer decided()
	r := &race[T]{s: s, kind: k, read: f, ctx: calls, first: first, lags: lags, answers: make(chan answer[T], 2)}
	began := time.Now()
	r.start(first)
	won, err := r.run(ctx)
	s.metrics.seconds.WithLabelValues(k.name).Observe(time.Since(began).Seconds())
	r.describe(trace.SpanFromContext(ctx), won, err)
	if err != nil {
		return won.value, err
	}
	if warm && !r.second && lags == [2]bool{} {
		r.warm(context.WithoutCancel(ctx), won)
	}
	return won.value, nil
}

// lagging reports for each side whether the store lacks records with the keys.
func (s *Store) lagging(topic string, keys []string) (lags [2]bool) {
	if s.lag == nil || topic == "" {
		return lags
	}
	for _, of := range []side{primary, standby} {
		lags[of] = s.lag.Lags(of.String(), topic, keys...)
	}
	return lags
}

// describe records in the trace which store's answer was taken, and whether both were queried.
func (r *race[T]) describe(span trace.Span, won answer[T], err error) {
	if err == nil && span.IsRecording() {
		span.SetAttributes(attribute.String("smartfeed.store.won", won.from.String()), attribute.Bool("smartfeed.store.hedged", r.second))
	}
}

func (r *race[T]) start(from side) {
	r.running++
	r.s.calls.Go(func() {
		a := r.call(r.ctx, from)
		r.answers <- a
	})
}

// call queries a store and measures the latency. A call can be canceled because the other store was faster or the read's
// time ran out. Its latency would have been at least the measured one.
func (r *race[T]) call(ctx context.Context, from side) answer[T] {
	ctx, span := tracing.Start(ctx, "feedstore "+r.kind.name, trace.SpanKindClient, attribute.String("smartfeed.store", from.String()))
	began := time.Now()
	value, err := r.read(ctx, r.s.stores[from])
	a := answer[T]{from: from, value: value, err: err, took: time.Since(began)}
	tracing.End(span, err)
	if err == nil || ctx.Err() != nil && a.took >= r.s.cfg.MinDelay {
		r.kind.took[from].record(a.took)
	}
	borrowed := from != r.first && r.borrowed // read second: only the second call comes after borrowed is set
	switch b := r.s.balance; {
	case err == nil && a.took <= r.s.cfg.LateAfter:
		b.inTime(from, borrowed)
	case a.took > r.s.cfg.LateAfter || ctx.Err() == nil:
		b.late(from, borrowed)
	case borrowed: // a call that was canceled earlier says nothing about the store
		b.returnCredit(from)
	}
	return a
}

// againAfter is the interval at which a late read checks for credit or budget again.
const againAfter = 5 * time.Millisecond

// run waits for the first success and queries the second store when it is time.
func (r *race[T]) run(ctx context.Context) (answer[T], error) {
	hedge := time.NewTimer(r.kind.after(r.first, r.s.cfg))
	defer hedge.Stop()
	late := time.NewTimer(r.s.cfg.LateAfter)
	defer late.Stop()
	for {
		select {
		case a := <-r.answers:
			r.running--
			if done, err := r.take(ctx, a); done {
				return a, err
			}
			if r.running == 0 {
				return r.settle()
			}
		case <-r.enough:
			r.s.balance.miss(r.fallback.from.other())
			return r.settle()
		case <-hedge.C:
			r.querySecond("slow", false)
		case <-late.C:
			if r.querySecond("late", true); !r.second {
				late.Reset(againAfter)
			}
		case <-ctx.Done():
			return answer[T]{}, ctx.Err()
		}
	}
}

// take handles an answer. It reports whether the answer decides the race.
func (r *race[T]) take(ctx context.Context, a answer[T]) (done bool, err error) {
	switch {
	case a.err == nil && r.kind.isComplete(a.value) && !r.lags[a.from]:
		r.won(a.from)
		return true, nil
	case ctx.Err() != nil:
		return true, ctx.Err()
	case errors.Is(a.err, feedstore.ErrBadPlace): // the request is wrong, not the store
		return true, a.err
	case a.err != nil:
		r.errs = append(r.errs, a.err)
		if !r.second { // replaces the failed read
			r.startSecond("failed")
		}
	default:
		if r.fallback == nil || r.kind.further != nil && r.kind.further(a.value, r.fallback.value) {
			r.fallback = &a
		}
		if !r.lags[a.from.other()] && r.s.balance.answers(r.first.other()) {
			r.querySecond("stale", false)
		}
		r.enough = time.After(r.fallbackWait(ctx, a.from.other()))
	}
	return false, nil
}

// fallbackWait returns how long an answer with a hole waits for the other store's: as long as that store usually takes,
// but at most half of the remaining time. Otherwise a store that hangs would cost the caller the answer that it already
// has.
func (r *race[T]) fallbackWait(ctx context.Context, other side) time.Duration {
	usual := r.kind.after(other, r.s.cfg)
	if deadline, ok := ctx.Deadline(); ok {
		return min(usual, time.Until(deadline)/2)
	}
	return usual
}

// querySecond queries the second store at most once, if there is budget. With credit set, it may also use the second
// store's credit. If the second store has become the first, it may use the allowance for reads after a swap. why is the
// label of the metric.
func (r *race[T]) querySecond(why string, credit bool) {
	b, second := r.s.balance, r.first.other()
	if r.second {
		return
	}
	switch {
	case !b.isFirst(r.first) && b.follow():
	case credit && b.borrow(second):
		r.borrowed = true
	case b.spend():
	default:
		return
	}
	r.startSecond(why)
}

func (r *race[T]) startSecond(why string) {
	r.second = true
	r.s.metrics.extra.WithLabelValues(why).Inc()
	r.start(r.first.other())
}

func (r *race[T]) won(by side) {
	r.s.metrics.answered.WithLabelValues(by.String()).Inc()
	if by == r.first {
		r.s.balance.win(by)
	} else if r.s.balance.lose(r.first) {
		r.s.metrics.failovers.Inc()
	}
}

// settle returns the result if no store has succeeded, or if the read no longer waits for the one that may.
func (r *race[T]) settle() (answer[T], error) {
	if r.fallback != nil {
		r.s.metrics.stale.Inc()
		if r.lags[r.fallback.from] {
			return *r.fallback, feed.ErrStale
		}
		return *r.fallback, nil
	}
	r.s.metrics.failed.Inc()
	return answer[T]{}, errors.Join(r.errs...)
}

// warm sends the same read to the second store without a waiting caller, and compares the answers.
func (r *race[T]) warm(ctx context.Context, won answer[T]) {
	select {
	case r.s.warming <- struct{}{}:
	default:
		return // at the limit
	}
	r.s.metrics.extra.WithLabelValues("warm").Inc()
	r.s.calls.Go(func() {
		defer func() { <-r.s.warming }()
		ctx, cancel := context.WithTimeout(ctx, r.s.cfg.LateAfter)
		defer cancel()
		a := r.call(ctx, won.from.other())
		ok := a.err == nil && a.took <= r.s.cfg.MaxDelay && (r.kind.isComplete(a.value) || !r.kind.isComplete(won.value))
		if r.s.balance.probe(a.from, ok) {
			r.s.metrics.failovers.Inc()
		}
		if a.err == nil {
			r.s.metrics.compare(r.kind.same(a.value, won.value))
		}
	})
}
