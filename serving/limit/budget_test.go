package limit

import (
	"errors"
	"fmt"
	"testing"

	"pgregory.net/rapid"
)

func TestBudget(t *testing.T) {
	b := NewBudget(10, 6)
	first, second, other, unbounded := b.Share("a"), b.Share("a"), b.Share("b"), b.Share("")
	for i, c := range []struct {
		share *Share
		bytes int64
		want  error
	}{
		{first, 4, nil}, {first, 4, nil}, {first, 3, nil}, {second, 2, nil}, {second, 3, ErrEach}, {first, 5, ErrEach},
		{other, 4, nil}, {other, 5, ErrAll}, {unbounded, 1, ErrAll},
	} {
		if fits, err := c.share.Fits(c.bytes), c.share.Grow(c.bytes); !errors.Is(err, c.want) || !errors.Is(fits, c.want) {
			t.Errorf("step %d: got %v, and before %v, want %v", i, err, fits, c.want)
		}
	}
	first.End()
	if err := unbounded.Grow(4); err != nil {
		t.Errorf("after End: got %v, want nil", err)
	}
	if err := second.Grow(2); err != nil {
		t.Errorf("already held: got %v, want nil", err)
	}
}

// In any sequence of calls, the limits in total and per caller hold, and a rejection means that a limit was reached. At the
// end nothing is held or remembered.
func TestBudget_HoldsLimits(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		most, each := rapid.Int64Range(1, 50).Draw(t, "most"), rapid.Int64Range(1, 50).Draw(t, "each")
		b := NewBudget(most, each)
		shares := make([]*Share, 6)
		held := make([]int64, len(shares))
		open := func(i int) { shares[i], held[i] = b.Share(fmt.Sprint(i%2)), 0 }
		of := func(i int) (all, own int64) {
			for j, n := range held {
				if all += n; j%2 == i%2 {
					own += n
				}
			}
			return all, own
		}
		for i := range shares {
			open(i)
		}
		for range 100 {
			i, to := rapid.IntRange(0, len(shares)-1).Draw(t, "share"), rapid.Int64Range(0, 30).Draw(t, "bytes")
			if to == 0 {
				shares[i].End()
				open(i)
				continue
			}
			all, own := of(i)
			more := max(to-held[i], 0)
			want := more == 0 || all+more <= most && own+more <= each
			if err := shares[i].Grow(to); (err == nil) != want {
				t.Fatalf("with %d held, %d by the caller, %d more: got %v", all, own, more, err)
			}
			if want {
				held[i] += more
			}
		}
		for _, s := range shares {
			s.End()
		}
		if b.all != 0 || len(b.held) != 0 {
			t.Fatalf("got %d bytes held at the end, and %d callers remembered", b.all, len(b.held))
		}
	})
}
