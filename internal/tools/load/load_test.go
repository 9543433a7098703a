package load

import (
	"context"
	"errors"
	"iter"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/smartfeed/smartfeed/internal/testkit/expect"
	"github.com/smartfeed/smartfeed/schemas"
)

// broker acknowledges events from other goroutines, except the rejected ones.
type broker struct {
	inFlight sync.WaitGroup
	sent     atomic.Int64
	refused  map[string]error // by key
	flush    error
}

func (b *broker) Send(ctx context.Context, line schemas.Line, done func(error)) {
	b.sent.Add(1)
	b.inFlight.Go(func() {
		if ctx.Err() != nil {
			done(ctx.Err())
			return
		}
		done(b.refused[line.Key])
	})
}

func (b *broker) Flush(context.Context) error {
	b.inFlight.Wait()
	return b.flush
}

// keys yields events with these keys.
func keys(keys ...string) iter.Seq[schemas.Line] {
	return func(yield func(schemas.Line) bool) {
		for _, k := range keys {
			if !yield(schemas.Line{Key: k}) {
				return
			}
		}
	}
}

func TestAll_ReturnsFirstError(t *testing.T) {
	refused, broken := errors.New("record too large"), errors.New("broken")
	canceled, stop := context.WithCancel(t.Context())
	stop()
	endless := func(yield func(schemas.Line) bool) {
		for n := 0; yield(schemas.Line{Key: string(rune('a' + n%26))}); n++ {
		}
	}
	for name, c := range map[string]struct {
		ctx    context.Context
		broker *broker
		events iter.Seq[schemas.Line]
		want   error
		sent   int64 // -1: any number
	}{
		"all acknowledged": {t.Context(), &broker{}, keys("a", "b", "c"), nil, 3},
		"one refused":      {t.Context(), &broker{refused: map[string]error{"b": refused}}, endless, refused, -1},
		"canceled context": {canceled, &broker{}, keys("a", "b"), context.Canceled, 0},
		"flush fails":      {t.Context(), &broker{flush: broken}, keys("a"), broken, 1},
	} {
		var acknowledged atomic.Int64
		err := All(c.ctx, c.broker, c.events, func(schemas.Line) { acknowledged.Add(1) })
		if sent := c.broker.sent.Load(); !errors.Is(err, c.want) || c.sent >= 0 && (sent != c.sent || acknowledged.Load() != sent) {
			t.Errorf("%s: got %v, %d sent, %d acknowledged, want %v, %d", name, err, sent, acknowledged.Load(), c.want, c.sent)
		}
	}
}

func TestConcat(t *testing.T) {
	var got []string
	for line := range Concat(keys("a", "b"), keys(), keys("c", "d")) {
		if got = append(got, line.Key); line.Key == "c" {
			break
		}
	}
	expect.NoDiff(t, got, []string{"a", "b", "c"}, "yielded")
}
