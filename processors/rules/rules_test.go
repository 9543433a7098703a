package rules

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/smartfeed/smartfeed/internal/convert"
	"github.com/smartfeed/smartfeed/internal/testkit/expect"
	"github.com/smartfeed/smartfeed/internal/testkit/must"
	"github.com/smartfeed/smartfeed/schemas"
)

// countsOf is a Counts with fixed numbers; missing ids were never shown.
type countsOf map[schemas.ID]Count

func (c countsOf) Pin(pin schemas.PinID) Count        { return c[schemas.ID(pin)] }
func (c countsOf) Author(author schemas.UserID) Count { return c[schemas.ID(author)] }

var allSources = []schemas.Source{schemas.Following, schemas.FromInterest, schemas.Related, "editors"}

// drawPools draws sources with overlapping pins. A pin has the same facets in all of them.
func drawPools(t *rapid.T) []Pool {
	spread := rapid.Float64Range(1, 40).Draw(t, "spread of scores")
	var pools []Pool
	for _, source := range allSources {
		p := Pool{Source: source}
		for i, n := range rapid.SliceOfNDistinct(rapid.IntRange(0, 80), 0, 40, rapid.ID[int]).Draw(t, string(source)) {
			p.Candidates = append(p.Candidates, Candidate{
				Pin: schemas.PinID(fmt.Sprintf("pin:%d", n)), PoolScore: schemas.PoolScore(100 - spread*float64(i)/40), Created: schemas.Micros(n),
				Facets: facetsOf(n),
			})
		}
		pools = append(pools, p)
	}
	return pools
}

func facetsOf(n int) schemas.Facets {
	f := schemas.Facets{Author: schemas.UserID(fmt.Sprintf("user:%d", n%7))}
	if n%3 > 0 {
		f.Board = schemas.BoardID(fmt.Sprintf("board:%d", n%11))
	}
	for i := range n % 4 {
		f.Interests = append(f.Interests, schemas.InterestID(fmt.Sprintf("interest:%d", (n+i)%6)))
	}
	return f
}

// drawFeed draws rules.
func drawFeed(t *rapid.T) Feed {
	f := Feed{
		Shares: map[schemas.Source]float64{}, DefaultShare: rapid.Float64Range(0, 1).Draw(t, "others"),
		ShareWindow:    rapid.IntRange(10, 200).Draw(t, "memory"),
		AffinityWeight: rapid.Float64Range(0, 3).Draw(t, "affinity"), PopularityWeight: rapid.Float64Range(0, 3).Draw(t, "popularity"),
		Caps: Caps{
			Window: rapid.IntRange(0, 12).Draw(t, "window"), Author: rapid.IntRange(0, 4).Draw(t, "author cap"),
			Board: rapid.IntRange(0, 4).Draw(t, "board cap"), Interest: rapid.IntRange(0, 4).Draw(t, "interest cap"),
		},
		Defer: Defer{
			Margin: rapid.SampledFrom([]float64{0, 1, 5, 20}).Draw(t, "margin"), Budget: rapid.IntRange(0, 20).Draw(t, "budget"),
			SessionTimeout: time.Minute, Expiry: time.Hour,
		},
		Spacing: Spacing{Strength: rapid.SampledFrom([]float64{0, 1, 50}).Draw(t, "spacing")},
		Explore: Explore{PinImpressions: rapid.Int64Range(0, 50).Draw(t, "new pin"), AuthorImpressions: rapid.Int64Range(0, 50).Draw(t, "new author")},
		Randomize: Randomize{
			Candidates: rapid.SampledFrom([]int{0, 0, 1, 7}).Draw(t, "randomized"), Temperature: rapid.SampledFrom([]float64{0.1, 10}).Draw(t, "temperature"),
		},
	}
	for _, s := range append(slices.Clone(allSources), schemas.Explore) {
		if rapid.Bool().Draw(t, "named "+string(s)) {
			f.Shares[s] = rapid.SampledFrom([]float64{0, 0.1, 1}).Draw(t, "share of "+string(s))
		}
	}
	return f
}

func drawSignals(t *rapid.T) Signals {
	counts, vectors := countsOf{}, map[schemas.PinID]Vector{}
	for n := range 90 {
		if n%4 > 0 {
			vectors[schemas.PinID(fmt.Sprintf("pin:%d", n))] = NewVector([]float32{1, rapid.Float32Range(-2, 2).Draw(t, "embedding")})
		}
		shown := rapid.Int64Range(0, 100).Draw(t, "shown")
		counts[schemas.ID(fmt.Sprintf("pin:%d", n))] = Count{shown, shown / 5}
		counts[schemas.ID(facetsOf(n).Author)] = Count{shown, shown / 5}
	}
	return Signals{Counts: counts, Vectors: vectors, Affinities: schemas.Affinities{Top: []schemas.Affinity{{Facet: "user:1", Value: 3}, {Facet: "interest:2", Value: -1}}}}
}

// For any pools, rules and earlier impressions, a chunk repeats no pin and contains only candidates. Each source is in
// descending order, unless the feed is randomized. The caps hold at the reported relaxation level, and the chunk is as long as possible.
func TestMake_Invariants(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f, pools, k := drawFeed(t), drawPools(t), drawSignals(t)
		v := Visit{User: "user:me", Time: 1e9, Limit: rapid.IntRange(1, 100).Draw(t, "limit")}
		for range 3 {
			before := v.Memory
			before.Mix, before.Best, before.Deferred = maps.Clone(before.Mix), maps.Clone(before.Best), slices.Clone(before.Deferred)
			c := f.Make(v, pools, k)
			expect.NoDiff(t, v.Memory, before, "the memory was changed (-before +after)")
			checkChunk(t, f, v, pools, k, c)
			expect.NoDiff(t, f.Make(v, pools, k), c, "the second chunk differs (-first +second)")
			pools = without(pools, c.Items)
			v.Memory, v.Time = c.Memory, v.Time+schemas.Micros(rapid.Int64Range(1, 5*3600e6).Draw(t, "until the next visit"))
		}
	})
}

// without returns the pools without the shown pins.
func without(pools []Pool, shown []schemas.ServedItem) []Pool {
	var rest []Pool
	for _, p := range pools {
		p.Candidates = slices.DeleteFunc(slices.Clone(p.Candidates), func(c Candidate) bool {
			return slices.ContainsFunc(shown, func(it schemas.ServedItem) bool { return it.Pin == c.Pin })
		})
		rest = append(rest, p)
	}
	return rest
}

func checkChunk(t *rapid.T, f Feed, v Visit, pools []Pool, k Signals, c Chunk) {
	expect.Equal(t, len(c.Items), min(v.Limit, len(f.Waiting(v, pools, k))), "items")
	offered := map[schemas.PinID][]schemas.Source{}
	for _, p := range pools {
		for _, cand := range p.Candidates {
			offered[cand.Pin] = append(offered[cand.Pin], p.Source)
		}
	}
	last := map[schemas.Source]schemas.RankScore{}
	for _, it := range c.Items {
		sources := offered[it.Pin]
		if delete(offered, it.Pin); it.Source != schemas.Explore && !slices.Contains(sources, it.Source) || len(sources) == 0 {
			t.Fatalf("%s of %s: repeated, or not a candidate", it.Pin, it.Source)
		}
		expect.False(t, f.Share(it.Source) == 0, "%s: source %s has no share", it.Pin, it.Source)
		if before, ok := last[it.Source]; ok && it.RankScore > before && !f.randomizes() {
			t.Fatalf("%s: score %v after the lower %v of %s", it.Pin, it.RankScore, before, it.Source)
		}
		last[it.Source] = it.RankScore
	}
	checkCaps(t, f.Caps, c)
}

// checkCaps checks every window of a chunk.
func checkCaps(t *rapid.T, caps Caps, c Chunk) {
	for end := range c.Items {
		n := map[schemas.ID]int{}
		for _, it := range c.Items[max(0, end-caps.Window+1) : end+1] {
			interests := convert.All(it.Interests, func(i schemas.InterestID) schemas.ID { return schemas.ID(i) })
			for _, id := range append([]schemas.ID{schemas.ID(it.Author), schemas.ID(it.Board)}, interests...) {
				n[id]++
			}
		}
		it := c.Items[end]
		limit := func(id schemas.ID, cap int, unless ...Relaxation) {
			if caps.Window > 0 && cap > 0 && id != "" && n[id] > cap && !slices.Contains(unless, c.Relaxed) {
				t.Fatalf("%d of %s up to item %d, want at most %d (relaxed: %q)", n[id], id, end, cap, c.Relaxed)
			}
		}
		limit(schemas.ID(it.Author), caps.Author, TwiceAuthor, WithoutCaps)
		limit(schemas.ID(it.Author), 2*caps.Author, WithoutCaps)
		limit(schemas.ID(it.Board), caps.Board, WithoutBoard, TwiceAuthor, WithoutCaps)
		for _, id := range it.Interests {
			limit(schemas.ID(id), caps.Interest, WithoutInterest, WithoutBoard, TwiceAuthor, WithoutCaps)
		}
	}
}

// With every rule enabled and enough admissible candidates, each source including exploration has its share over 200 items,
// in visits of any size.
func TestMake_KeepsSharesWithAllRules(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f, counts := Default()[Home], countsOf{}
		var pools []Pool
		for s, source := range allSources[:3] {
			p := Pool{Source: source}
			for i := range 500 {
				author := schemas.UserID(fmt.Sprintf("user:%d-%d", s, i%100))
				p.Candidates = append(p.Candidates, Candidate{
					Pin: schemas.PinID(fmt.Sprintf("pin:%d-%d", s, i)), PoolScore: schemas.PoolScore(-float64(i) / 1000), Facets: schemas.Facets{Author: author},
				})
				counts[schemas.ID(author)] = Count{Impressions: int64(i % 2000)}
			}
			pools = append(pools, p)
		}
		const items = 200
		got, v := map[schemas.Source]float64{}, Visit{User: "user:me"}
		for left := items; left > 0; v.Time += 1e6 {
			v.Limit = min(left, rapid.IntRange(1, 100).Draw(t, "limit"))
			c := f.Make(v, pools, Signals{Counts: counts})
			for _, it := range c.Items {
				got[it.Source]++
			}
			expect.Equal(t, c.Relaxed, NotRelaxed, "relaxation level")
			v.Memory, pools, left = c.Memory, without(pools, c.Items), left-len(c.Items)
		}
		for source, share := range f.Shares {
			expect.Near(t, got[source]/items, share/1.05, 0.03, "%s: share of the impressions", source)
		}
	})
}

// poolOf makes n candidates by as many authors, best first.
func poolOf(source schemas.Source, n int) Pool {
	p := Pool{Source: source}
	for i := range n {
		p.Candidates = append(p.Candidates, Candidate{
			Pin: schemas.PinID(fmt.Sprintf("pin:%s-%03d", source, i)), PoolScore: schemas.PoolScore(-float64(i)),
			Facets: schemas.Facets{Author: schemas.UserID(fmt.Sprintf("user:%s-%d", source, i))},
		})
	}
	return p
}

// Explain agrees with Make for every candidate.
func TestExplain_AgreesWithMake(t *testing.T) {
	seen := map[schemas.Reason]bool{}
	rapid.Check(t, func(t *rapid.T) {
		f, pools, k := drawFeed(t), drawPools(t), drawSignals(t)
		f.Defer.Margin = rapid.SampledFrom([]float64{0, 1}).Draw(t, "low margin")
		v := Visit{User: "user:me", Time: 1e9, Limit: rapid.IntRange(1, 60).Draw(t, "limit")}
		for range 4 {
			c := f.Make(v, pools, k)
			for n := range 81 {
				pin := schemas.PinID(fmt.Sprintf("pin:%d", n))
				e := f.Explain(v, pools, k, pin)
				capped := strings.HasPrefix(string(e.Reason), "cap_") // not every cap is the cause in each run of the test
				seen[e.Reason], seen["cap"] = true, seen["cap"] || capped
				checkExplanation(t, f, pin, pools, c, e)
			}
			v.Memory, pools = c.Memory, without(pools, c.Items)
			v.Time += schemas.Micros(rapid.SampledFrom([]time.Duration{time.Second, 2 * time.Hour}).Draw(t, "pause") / time.Microsecond)
		}
	})
	for _, reason := range []schemas.Reason{"", schemas.ReasonOutranked, "cap", schemas.ReasonSimilar, schemas.ReasonNoShare} {
		expect.True(t, seen[reason], "candidates have the reason %q", reason)
	}
}

func checkExplanation(t *rapid.T, f Feed, pin schemas.PinID, pools []Pool, c Chunk, e Explanation) {
	at := slices.IndexFunc(c.Items, func(it schemas.ServedItem) bool { return it.Pin == pin })
	isShown := e.Fate == schemas.FateNext
	if isShown != (at >= 0) || isShown != (e.Reason == "") || isShown && (e.Place != at+1 || e.RankScore != c.Items[at].RankScore || e.Source != c.Items[at].Source) {
		t.Fatalf("%s is item %d of the chunk; got %+v", pin, at, e)
	}
	must.Equal(t, e.Fate == schemas.FateOut, slices.Contains(c.Expired, pin), "%s is out, in %+v", pin, e)
	for _, s := range e.Scores {
		if s.Rank < 1 || f.Share(s.Source) == 0 || isShown && s.Source == e.Source && math.Abs(float64(s.RankScore-e.RankScore)) > 1e-9 {
			t.Fatalf("%s: got %+v", pin, e)
		}
	}
	offered := false
	for _, p := range pools {
		offered = offered || f.Share(p.Source) > 0 && slices.ContainsFunc(p.Candidates, func(c Candidate) bool { return c.Pin == pin })
	}
	if offered != (len(e.Scores) > 0) || !offered && e.Reason != schemas.ReasonNoShare && e.Reason != schemas.ReasonDeferralExpired {
		t.Fatalf("%s: offered is %v; got %+v", pin, offered, e)
	}
}
