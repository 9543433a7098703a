package schemas

import (
	"fmt"
	"math"
	"testing"

	"pgregory.net/rapid"

	"github.com/smartfeed/smartfeed/internal/testkit/expect"
)

func TestSketch_EstimateIsWithinError(t *testing.T) {
	for _, n := range []int{0, 1, 2, 10, 50, 100, 300, 1000, 3000, 10_000, 100_000} {
		// The error of the mean over several sets is that of one set, divided by the square root of their number.
		const sets = 8
		sum, worst := 0.0, 0.0
		for set := range sets {
			u := &Union{}
			for i := range n {
				u.Add(fmt.Sprintf("user:%d-%d", set, i))
			}
			off := u.Estimate() - float64(n)
			sum += off
			worst = max(worst, math.Abs(off))
		}
		sigma := max(0.016*float64(n), 0.5)
		expect.AtMost(t, math.Abs(sum/sets), 3*sigma/math.Sqrt(sets), "%d texts: mean error", n)
		expect.AtMost(t, worst, 4*sigma+0.5, "%d texts: largest error", n)
	}
}

func TestSketch_SameTextsSameBytes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.SampledFrom([]int{0, 5, 900, 1023, 1100, 5000}).Draw(t, "texts")
		texts := make([]string, n)
		for i := range texts {
			texts[i] = fmt.Sprint(i)
		}
		var one, other, half Sketch
		union, parts := &Union{}, &Union{}
		for i, text := range texts {
			one = one.Add(text)
			union.Add(text)
			if i%2 == 0 {
				half = half.Add(text)
			} else {
				parts.Add(text)
			}
		}
		for _, text := range rapid.Permutation(texts).Draw(t, "order") {
			other = other.Add(text).Add(text)
		}
		expect.NoDiff(t, other, one, "%d texts in two orders", n)
		if len(one) > sketchDense || n < 100 && len(one) > 2*n {
			t.Fatalf("%d texts take %d bytes", n, len(one))
		}
		parts.Merge(half)
		merged := &Union{}
		merged.Merge(one)
		if *merged != *union || *parts != *union {
			t.Fatalf("a sketch of %d texts, its halves and the union of the texts differ", n)
		}
	})
}

func TestUnion_AcceptsAnyBytes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		u := &Union{}
		u.Merge(rapid.SliceOfN(rapid.Byte(), 0, 3000).Draw(t, "bytes"))
		if got := u.Estimate(); math.IsNaN(got) || got < 0 {
			t.Fatalf("estimate %v", got)
		}
	})
}
