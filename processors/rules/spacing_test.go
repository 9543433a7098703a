package rules

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/smartfeed/smartfeed/internal/testkit/expect"
	"github.com/smartfeed/smartfeed/schemas"
)

func cosine(v, w []float32) float64 {
	if len(v) != len(w) || len(v) == 0 {
		return 0
	}
	var dot, squares, others float64
	for i := range v {
		dot, squares, others = dot+float64(v[i]*w[i]), squares+float64(v[i]*v[i]), others+float64(w[i]*w[i])
	}
	return dot / math.Sqrt(squares*others)
}

// Each place goes to the candidate with the largest score minus the strength times the largest cosine with an item above.
func TestMake_SpacingIsMaximalMarginalRelevance(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := Feed{DefaultShare: 1, ShareWindow: 100, Spacing: Spacing{Strength: rapid.Float64Range(0.1, 10).Draw(t, "strength")}}
		p, k, embeddings := Pool{Source: "s"}, Signals{Vectors: map[schemas.PinID]Vector{}}, map[schemas.PinID][]float32{}
		for i := range rapid.IntRange(1, 30).Draw(t, "candidates") {
			pin := schemas.PinID(fmt.Sprintf("pin:%02d", i))
			p.Candidates = append(p.Candidates, Candidate{Pin: pin, PoolScore: schemas.PoolScore(rapid.Float64Range(0, 5).Draw(t, "score"))})
			if size := rapid.SampledFrom([]int{0, 2, 3}).Draw(t, "size"); size > 0 {
				embeddings[pin] = rapid.SliceOfN(rapid.Float32Range(0.1, 1), size, size).Draw(t, "embedding")
				embeddings[pin][0] *= float32(rapid.SampledFrom([]int{1, -1}).Draw(t, "sign"))
				k.Vectors[pin] = NewVector(embeddings[pin])
			}
		}
		items := f.Make(Visit{Limit: 20}, []Pool{p}, k).Items
		expect.Equal(t, len(items), min(20, len(p.Candidates)), "items")
		for place, it := range items {
			best, got := math.Inf(-1), 0.0
			for _, c := range p.Candidates {
				most := 0.0
				for _, above := range items[:place] {
					most = max(most, cosine(embeddings[c.Pin], embeddings[above.Pin]))
				}
				relevance := float64(c.PoolScore) - f.Spacing.Strength*most
				if c.Pin == it.Pin {
					got = relevance
				}
				if !slices.ContainsFunc(items[:place], func(above schemas.ServedItem) bool { return above.Pin == c.Pin }) {
					best = max(best, relevance)
				}
			}
			if tolerance := 1e-5 * f.Spacing.Strength; got < best-tolerance || math.Abs(float64(it.RankScore)-got) > tolerance {
				t.Fatalf("place %d: %s with score %v, want the score %v, the maximum of %v", place, it.Pin, it.RankScore, got, best)
			}
		}
	})
}

func TestMake_SpacesSimilarPins(t *testing.T) {
	east, north, wide := NewVector([]float32{1, 0}), NewVector([]float32{0, 3}), NewVector([]float32{1, 0, 0})
	for name, c := range map[string]struct {
		strength float64
		vectors  map[schemas.PinID]Vector
		want     []schemas.PinID
	}{
		"off":                           {0, map[schemas.PinID]Vector{"pin:a": east, "pin:b": east, "pin:c": north}, []schemas.PinID{"pin:a", "pin:b", "pin:c"}},
		"without embeddings":            {2, nil, []schemas.PinID{"pin:a", "pin:b", "pin:c"}},
		"one without an embedding":      {2, map[schemas.PinID]Vector{"pin:a": east, "pin:c": east}, []schemas.PinID{"pin:a", "pin:b", "pin:c"}},
		"similar":                       {2, map[schemas.PinID]Vector{"pin:a": east, "pin:b": east, "pin:c": north}, []schemas.PinID{"pin:a", "pin:c", "pin:b"}},
		"too weak":                      {0.5, map[schemas.PinID]Vector{"pin:a": east, "pin:b": east, "pin:c": north}, []schemas.PinID{"pin:a", "pin:b", "pin:c"}},
		"embeddings of different sizes": {2, map[schemas.PinID]Vector{"pin:a": wide, "pin:b": east, "pin:c": north}, []schemas.PinID{"pin:a", "pin:b", "pin:c"}},
	} {
		f := Feed{DefaultShare: 1, ShareWindow: 100, Spacing: Spacing{Strength: c.strength}}
		p := Pool{Source: schemas.Following, Candidates: []Candidate{{Pin: "pin:a", PoolScore: 3}, {Pin: "pin:b", PoolScore: 2.9}, {Pin: "pin:c", PoolScore: 2}}}
		got := f.Make(Visit{Limit: 3}, []Pool{p}, Signals{Vectors: c.vectors})
		expect.NoDiff(t, pinsOf(got.Items), c.want, "%s", name)
	}
}

// Popular pins that fill places are compared with the items above, too. So are items of other sources.
func TestMake_SpacingIncludesAllItemsAbove(t *testing.T) {
	f := Feed{DefaultShare: 1, ShareWindow: 100, Fill: []schemas.Source{schemas.FromPopular}, Spacing: Spacing{Strength: 5}}
	east, north := NewVector([]float32{1, 0}), NewVector([]float32{0, 1})
	k := Signals{Vectors: map[schemas.PinID]Vector{"pin:a": east, "pin:b": east, "pin:c": north, "pin:d": north}}
	pools := []Pool{
		{Source: "s", Candidates: []Candidate{{Pin: "pin:a"}}},
		{Source: "t", Candidates: []Candidate{{Pin: "pin:b", PoolScore: 1}, {Pin: "pin:c"}}},
		{Source: schemas.FromPopular, Candidates: []Candidate{{Pin: "pin:d", PoolScore: 2}, {Pin: "pin:e"}}},
	}
	want := []schemas.PinID{"pin:a", "pin:c", "pin:b", "pin:e", "pin:d"}
	expect.NoDiff(t, pinsOf(f.Make(Visit{Limit: 5}, pools, k).Items), want, "pins")
	expect.Near(t, reduced(schemas.Explore, 0.5, math.Ln2), 0.25, 1e-12, "reduced exploration draw of 0.5")
}

// The logged choices of a place have the scores that it was drawn with: those of the first place are not reduced.
func TestRandomize_LogsReducedScores(t *testing.T) {
	f := Feed{DefaultShare: 1, ShareWindow: 100, Spacing: Spacing{Strength: 2}, Randomize: Randomize{Candidates: 3, Temperature: 1}}
	east := NewVector([]float32{1, 0})
	k := Signals{Vectors: map[schemas.PinID]Vector{"pin:a": east, "pin:b": east, "pin:c": east}}
	pools := []Pool{{Source: "s", Candidates: []Candidate{{Pin: "pin:a", PoolScore: 3}, {Pin: "pin:b", PoolScore: 2}, {Pin: "pin:c", PoolScore: 1}}}}
	for place, it := range f.Logged(Visit{User: "user:me", Limit: 3}, pools, k).Items {
		for _, choice := range it.Choices {
			want := map[schemas.PinID]schemas.RankScore{"pin:a": 3, "pin:b": 2, "pin:c": 1}[choice.Pin] - schemas.RankScore(2*min(place, 1))
			expect.Near(t, choice.RankScore, want, 1e-6, "place %d: score of %s", place, choice.Pin)
		}
		expect.Equal(t, len(it.Choices), 3-place, "choices of place %d", place)
	}
}

func TestExplain_SimilarPin(t *testing.T) {
	f := Feed{DefaultShare: 1, ShareWindow: 100, Spacing: Spacing{Strength: 2}}
	east, north := NewVector([]float32{1, 0}), NewVector([]float32{0, 1})
	k := Signals{Vectors: map[schemas.PinID]Vector{"pin:a": east, "pin:b": east, "pin:c": north, "pin:d": north}}
	pools := []Pool{{Source: "s", Candidates: []Candidate{
		{Pin: "pin:a", PoolScore: 3}, {Pin: "pin:b", PoolScore: 2.9}, {Pin: "pin:c", PoolScore: 2}, {Pin: "pin:d", PoolScore: 0},
	}}}
	for pin, want := range map[schemas.PinID]struct {
		reason schemas.Reason
		to     schemas.PinID
		score  schemas.RankScore
		part   float64
	}{
		"pin:a": {"", "", 3, 0}, "pin:b": {schemas.ReasonSimilar, "pin:a", 0.9, -2}, "pin:c": {"", "", 2, 0}, "pin:d": {schemas.ReasonOutranked, "pin:c", -2, -2},
	} {
		e := f.Explain(Visit{Limit: 2}, pools, k, pin)
		if s := e.Scores[0]; e.Reason != want.reason || e.SimilarTo != want.to || math.Abs(float64(s.RankScore-want.score)) > 1e-6 || math.Abs(s.Parts["spacing"]-want.part) > 1e-6 {
			t.Errorf("%s: got %+v, want %+v", pin, e, want)
		}
	}
}

func TestNewVector(t *testing.T) {
	for name, embedding := range map[string][]float32{
		"none": nil, "zeros": {0, 0}, "not a number": {1, float32(math.NaN())}, "infinite": {1, float32(math.Inf(1))},
	} {
		expect.NoDiff(t, NewVector(embedding), nil, "%s", name)
	}
	expect.NoDiff(t, NewVector([]float32{3, 4}), (Vector{0.6, 0.8}), "unit vector")
}

// Projections of wide embeddings have nearly the cosines of the embeddings.
func TestNewVector_ProjectionPreservesCosines(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	squares, n := 0.0, 0.0
	for i := range 500 {
		v, w := make([]float32, 512), make([]float32, 512)
		for j := range v {
			v[j] = float32(rng.NormFloat64())
			w[j] = v[j] + float32(1+i%10)*float32(rng.NormFloat64())
		}
		want := cosine(v, w)
		got := NewVector(v).similarity(NewVector(w))
		if want > 0.3 { // far from the minimum of 0
			squares, n = squares+math.Pow((got-want)*8/(1-want*want), 2), n+1
		}
	}
	expect.AtMost(t, math.Sqrt(squares/n), 1.5, "deviation, in those of random projections")
}

// BenchmarkSpacing chooses 25 of 200 candidates with embeddings of 64 numbers. It fails if spacing adds more than a millisecond,
// as the least of many runs, which other processes disturb least.
func BenchmarkSpacing(b *testing.B) {
	rng := rand.New(rand.NewPCG(1, 2))
	p, k := Pool{Source: schemas.Following}, Signals{Vectors: map[schemas.PinID]Vector{}}
	for i := range 200 {
		pin := schemas.PinID(fmt.Sprintf("pin:%d", i))
		embedding := make([]float32, 64)
		for j := range embedding {
			embedding[j] = float32(1 + rng.NormFloat64())
		}
		p.Candidates = append(p.Candidates, Candidate{Pin: pin, PoolScore: schemas.PoolScore(-float64(i) / 200)})
		k.Vectors[pin] = NewVector(embedding)
	}
	least := func(f Feed) time.Duration {
		best := time.Hour
		for range 50 {
			start := time.Now()
			f.Make(Visit{Limit: 25}, []Pool{p}, k)
			best = min(best, time.Since(start))
		}
		return best
	}
	off := Feed{DefaultShare: 1, ShareWindow: 100}
	on := off
	on.Spacing.Strength = 2
	added := time.Hour
	for b.Loop() {
		added = min(added, least(on)-least(off))
	}
	b.ReportMetric(float64(added.Microseconds()), "added-µs/chunk")
	expect.AtMost(b, added, time.Millisecond, "time that spacing adds to a chunk")
}
