package load

import (
	"context"
	"errors"
	"iter"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/smartfeed/smartfeed/schemas"
)

// broker acknowledges events from other goroutines, unless refuse returns an error.
type broker struct {
	flying sync.WaitGroup
	sent   atomic.Int64
	refuse func(key string) error
	flush  error
}

func (b *broker) Send(ctx context.Context, line schemas.Line, done func(error)) {
	b.sent.Add(1)
	b.flying.Go(func() {
		if ctx.Err() != nil {
			done(ctx.Err())
			return
		}
		done(b.refuse(line.Key))
	})
}

func (b *broker) Flush(context.Context) error {
	b.flying.Wait()
	return b.flush
}

func accept(string) error { return nil }

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

func TestAll(t *testing.T) {
	b := broker{refuse: accept}
	var acknowledged atomic.Int64
	if err := All(t.Context(), &b, keys("a", "b", "c"), func() { acknowledged.Add(1) }); err != nil {
		t.Fatal(err)
	}
	if got := acknowledged.Load(); got != 3 {
		t.Errorf("%d acknowledged, want 3", got)
	}
}

func TestRefusalStopsAll(t *testing.T) {
	refused := errors.New("record too large")
	b := broker{}
	b.refuse = func(key string) error {
		if key == "b" {
			return refused
		}
		return nil
	}
	endless := func(yield func(schemas.Line) bool) {
		for n := 0; yield(schemas.Line{Key: string(rune('a' + n%26))}); n++ {
		}
	}
	if err := All(t.Context(), &b, endless, func() {}); !errors.Is(err, refused) {
		t.Errorf("error %v, want %v", err, refused)
	}
}

func TestEndOfContextStopsAll(t *testing.T) {
	b := broker{refuse: accept}
	ctx, stop := context.WithCancel(t.Context())
	stop()
	if err := All(ctx, &b, keys("a", "b"), func() {}); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want that of the context", err)
	}
	if got := b.sent.Load(); got != 0 {
		t.Errorf("%d sent after the end", got)
	}
}

func TestFlushError(t *testing.T) {
	broken := errors.New("broken")
	b := broker{refuse: accept, flush: broken}
	if err := All(t.Context(), &b, keys("a"), func() {}); !errors.Is(err, broken) {
		t.Errorf("error %v, want %v", err, broken)
	}
}

func TestConcat(t *testing.T) {
	var got []string
	for line := range Concat(keys("a", "b"), keys(), keys("c", "d")) {
		if got = append(got, line.Key); line.Key == "c" {
			break
		}
	}
	if want := []string{"a", "b", "c"}; !slices.Equal(got, want) {
		t.Errorf("yielded %v, want %v", got, want)
	}
}
