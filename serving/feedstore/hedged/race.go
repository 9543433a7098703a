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

// kind is one kind of read: what is known of its answers, and how long each store takes.
type kind[T any] struct {
	name    string
	topic   string            // whose records the answers are made of, if a store that lags may not answer; "": it may
	whole   func(T) bool      // the answer has no hole; nil: none can have
	further func(a, b T) bool // a goes further than b, both with holes
	same    func(a, b T) bool
	took    [2]latency // by side
}

func (k *kind[T]) isWhole(v T) bool { return k.whole == nil || k.whole(v) }

// after is when the second store is asked, too.
func (k *kind[T]) after(first side, cfg Config) time.Duration {
	p := k.took[first].p999()
	if p == 0 {
		return cfg.Most
	}
	return min(max(p, cfg.Least), cfg.Most)
}

// ask is one read of one store.
type ask[T any] func(ctx context.Context, from feed.Store) (T, error)

// answer is what came of it.
type answer[T any] struct {
	from  side
	value T
	err   error
	took  time.Duration
}

// race is one read under way.
type race[T any] struct {
	s        *Store
	kind     *kind[T]
	ask      ask[T]
	ctx      context.Context // of the calls, ended when the race is decided
	first    side
	lags     [2]bool        // the store lacks records that the other one has
	answers  chan answer[T] // room for both
	running  int
	second   bool             // the second store was asked
	borrowed bool             // … on credit
	fallback *answer[T]       // with a hole
	enough   <-chan time.Time // when the other answer is not waited for any longer; nil: it is
	errs     []error
}

// read asks until a store succeeds. keys are those of the records that the answer is made of.
func read[T any](ctx context.Context, s *Store, k *kind[T], f ask[T], keys ...string) (T, error) {
	first, warm := s.balance.begin()
	lags := s.lagging(k.topic, keys)
	if lags[first] && !lags[first.other()] {
		first = first.other()
	}
	calls, decided := context.WithCancel(ctx)
	defer decided()
	r := &race[T]{s: s, kind: k, ask: f, ctx: calls, first: first, lags: lags, answers: make(chan answer[T], 2)}
	began := time.Now()
	r.start(first)
	won, err := r.run(ctx)
	s.metrics.seconds.WithLabelValues(k.name).Observe(time.Since(began).Seconds())
	s.metrics.reads.WithLabelValues(k.name).Inc()
	r.tell(trace.SpanFromContext(ctx), won, err)
	if err != nil {
		return won.value, err
	}
	if warm && !r.second && lags == [2]bool{} {
		r.warm(context.WithoutCancel(ctx), won)
	}
	return won.value, nil
}

// lagging returns by side which stores lack records with the keys.
func (s *Store) lagging(topic string, keys []string) (lags [2]bool) {
	if s.lag == nil || topic == "" {
		return lags
	}
	for _, of := range []side{primary, standby} {
		lags[of] = s.lag.Behind(of.String(), topic, keys...)
	}
	return lags
}

// tell says in the trace which store's answer was taken, and whether both were asked.
func (r *race[T]) tell(span trace.Span, won answer[T], err error) {
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

// call asks a store and measures it. A call that was cut off, because the other store was faster or the read had no more
// time, would have taken at least what is measured.
func (r *race[T]) call(ctx context.Context, from side) answer[T] {
	ctx, span := tracing.Start(ctx, "feedstore "+r.kind.name, trace.SpanKindClient, attribute.String("smartfeed.store", from.String()))
	began := time.Now()
	value, err := r.ask(ctx, r.s.stores[from])
	a := answer[T]{from: from, value: value, err: err, took: time.Since(began)}
	tracing.End(span, err)
	if err == nil || ctx.Err() != nil && a.took >= r.s.cfg.Least {
		r.kind.took[from].record(a.took)
	}
	borrowed := from != r.first && r.borrowed // in this order: only the second call comes after it is set
	switch b := r.s.balance; {
	case err == nil && a.took <= r.s.cfg.Late:
		b.inTime(from, borrowed)
	case a.took > r.s.cfg.Late || ctx.Err() == nil:
		b.late(from, borrowed)
	case borrowed: // a call that was cut off earlier tells nothing
		b.giveBack(from)
	}
	return a
}

// againAfter is how long a late read waits until it looks for credit or budget again.
const againAfter = 5 * time.Millisecond

// run waits for the first success, and asks the second store when it is time.
func (r *race[T]) run(ctx context.Context) (answer[T], error) {
	hedge := time.NewTimer(r.kind.after(r.first, r.s.cfg))
	defer hedge.Stop()
	late := time.NewTimer(r.s.cfg.Late)
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
			r.askSecond("slow", false)
		case <-late.C:
			if r.askSecond("late", true); !r.second {
				late.Reset(againAfter)
			}
		case <-ctx.Done():
			return answer[T]{}, ctx.Err()
		}
	}
}

// take judges an answer; done: it is the read's.
func (r *race[T]) take(ctx context.Context, a answer[T]) (done bool, err error) {
	switch {
	case a.err == nil && r.kind.isWhole(a.value) && !r.lags[a.from]:
		r.won(a.from)
		return true, nil
	case ctx.Err() != nil:
		return true, ctx.Err()
	case errors.Is(a.err, feedstore.ErrBadPlace): // it is the question that is wrong
		return true, a.err
	case a.err != nil:
		r.errs = append(r.errs, a.err)
		if !r.second { // instead of the first
			r.startSecond("failed")
		}
	default:
		if r.fallback == nil || r.kind.further != nil && r.kind.further(a.value, r.fallback.value) {
			r.fallback = &a
		}
		if !r.lags[a.from.other()] && r.s.balance.answers(r.first.other()) {
			r.askSecond("stale", false)
		}
		r.enough = time.After(r.patience(ctx, a.from.other()))
	}
	return false, nil
}

// patience is how long an answer with a hole waits for the other store's: as long as that usually takes, and not for all the
// time that the read has, or a store that hangs would cost its reader what is known already.
func (r *race[T]) patience(ctx context.Context, other side) time.Duration {
	usual := r.kind.after(other, r.s.cfg)
	if deadline, ok := ctx.Deadline(); ok {
		return min(usual, time.Until(deadline)/2)
	}
	return usual
}

// askSecond asks the second store, once, if there is budget; credit: or on its credit; or, if it is the first by now, after
// the change of places. why goes into the metrics.
func (r *race[T]) askSecond(why string, credit bool) {
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
	r.s.metrics.wins.WithLabelValues(by.String()).Inc()
	if by == r.first {
		r.s.balance.win(by)
	} else if r.s.balance.lose(r.first) {
		r.s.metrics.changes.Inc()
	}
}

// settle is for when no store has succeeded, or the one that may is not waited for.
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

// warm asks the second store the same, with nobody waiting, and compares.
func (r *race[T]) warm(ctx context.Context, won answer[T]) {
	select {
	case r.s.warming <- struct{}{}:
	default:
		return // enough of them are under way
	}
	r.s.metrics.extra.WithLabelValues("warm").Inc()
	r.s.calls.Go(func() {
		defer func() { <-r.s.warming }()
		ctx, cancel := context.WithTimeout(ctx, r.s.cfg.Late)
		defer cancel()
		a := r.call(ctx, won.from.other())
		ok := a.err == nil && a.took <= r.s.cfg.Most && (r.kind.isWhole(a.value) || !r.kind.isWhole(won.value))
		if r.s.balance.probe(a.from, ok) {
			r.s.metrics.changes.Inc()
		}
		if a.err == nil {
			r.s.metrics.compare(r.kind.same(a.value, won.value))
		}
	})
}
