package limit

import (
	"errors"
	"testing"

	"pgregory.net/rapid"
)

// In any sequence of calls, the limits in total and per named caller hold, and a rejection names the limit that was reached. At
// the end nothing is held or remembered.
func TestBudget_HoldsLimits(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		most, each := rapid.Int64Range(1, 50).Draw(t, "most"), rapid.Int64Range(1, 50).Draw(t, "each")
		b, callers := NewBudget(most, each), []string{"a", "b", ""}
		shares := make([]*Share, 6)
		held := make([]int64, len(shares))
		open := func(i int) { shares[i], held[i] = b.Share(callers[i%3]), 0 }
		of := func(i int) (all, own int64) {
			for j, n := range held {
				if all += n; j%3 == i%3 {
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
			var want error
			switch {
			case more == 0:
			case callers[i%3] != "" && own+more > each:
				want = ErrEach
			case all+more > most:
				want = ErrAll
			}
			if fits, err := shares[i].Fits(to), shares[i].Grow(to); !errors.Is(err, want) || !errors.Is(fits, want) {
				t.Fatalf("with %d held, %d by the caller, %d more: got %v, and before %v, want %v", all, own, more, err, fits, want)
			}
			if want == nil {
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
