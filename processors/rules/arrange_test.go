package rules

import (
	"fmt"
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/smartfeed/smartfeed/internal/convert"
	"github.com/smartfeed/smartfeed/internal/testkit/expect"
	"github.com/smartfeed/smartfeed/schemas"
)

// queueOf makes a queue of pins by author, best first: "a a b" is three pins, two of them by user:a.
func queueOf(source schemas.Source, authors ...string) queue {
	q := queue{source: source}
	for i, a := range authors {
		c := &Candidate{
			Pin:    schemas.PinID(fmt.Sprintf("pin:%s-%d", source, i)),
			Facets: schemas.Facets{Author: schemas.UserID("user:" + a), Board: schemas.BoardID("board:" + a)},
		}
		q.items = append(q.items, item{Candidate: c, rankScore: schemas.RankScore(-i)})
	}
	return q
}

var equateEmpty = cmpopts.EquateEmpty()

func pinsOf(items []schemas.ServedItem) []schemas.PinID {
	return convert.All(items, func(it schemas.ServedItem) schemas.PinID { return it.Pin })
}

func TestArrange(t *testing.T) {
	even := Feed{DefaultShare: 1, ShareWindow: 100}
	capped := Feed{DefaultShare: 1, ShareWindow: 100, Caps: Caps{Window: 3, Author: 1}}
	onBoards := Feed{DefaultShare: 1, ShareWindow: 100, Caps: Caps{Window: 3, Author: 2, Board: 1}}
	for name, c := range map[string]struct {
		feed   Feed
		limit  int
		queues []queue
		mix    map[string]float64
		want   []schemas.PinID
	}{
		"no queues": {even, 5, nil, nil, []schemas.PinID{}},
		"one source, best first": {even, 2, []queue{queueOf("s", "a", "b", "c")}, nil,
			[]schemas.PinID{"pin:s-0", "pin:s-1"}},
		"two in turn": {even, 4, []queue{queueOf("s", "a", "b"), queueOf("t", "a", "b")}, nil,
			[]schemas.PinID{"pin:s-0", "pin:t-0", "pin:s-1", "pin:t-1"}},
		"earlier impressions count": {even, 3, []queue{queueOf("s", "a", "b"), queueOf("t", "a", "b")},
			map[string]float64{"s": 1}, []schemas.PinID{"pin:t-0", "pin:s-0", "pin:t-1"}},
		"other sources take the places of an empty source": {even, 4, []queue{queueOf("s", "a"), queueOf("t", "a", "b", "c")}, nil,
			[]schemas.PinID{"pin:s-0", "pin:t-0", "pin:t-1", "pin:t-2"}},
		"an item skipped by a cap is not used later": {capped, 3, []queue{queueOf("s", "a", "a", "b", "c")}, nil,
			[]schemas.PinID{"pin:s-0", "pin:s-2", "pin:s-3"}},
		"the author cap is doubled if the chunk is short": {capped, 4, []queue{queueOf("s", "a", "a", "a", "b", "c")}, nil,
			[]schemas.PinID{"pin:s-0", "pin:s-1", "pin:s-3", "pin:s-4"}},
		"all caps are dropped if the chunk is still short": {capped, 3, []queue{queueOf("s", "a", "a", "a")}, nil,
			[]schemas.PinID{"pin:s-0", "pin:s-1", "pin:s-2"}},
		"the board cap is dropped before the author cap is doubled": {onBoards, 2, []queue{queueOf("s", "a", "a")}, nil,
			[]schemas.PinID{"pin:s-0", "pin:s-1"}},
		"another source fills the place while a cap blocks one": {Feed{DefaultShare: 1, ShareWindow: 100, Caps: Caps{Window: 2, Author: 1}}, 4,
			[]queue{queueOf("s", "a", "a"), queueOf("t", "b", "b")}, map[string]float64{"t": 10},
			[]schemas.PinID{"pin:s-0", "pin:t-0", "pin:s-1", "pin:t-1"}},
		"a chunk with too few candidates keeps its caps": {capped, 9, []queue{queueOf("s", "a", "b", "c")}, nil,
			[]schemas.PinID{"pin:s-0", "pin:s-1", "pin:s-2"}},
	} {
		got, _ := c.feed.arrange(newArrangement(c.feed, c.mix, "", nil), c.limit, c.queues)
		expect.NoDiff(t, pinsOf(got.list), c.want, "%s", name)
	}
}

func TestArrange_KeepsSharesWithin3Percent(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := Feed{DefaultShare: 1, ShareWindow: rapid.IntRange(50, 1000).Draw(t, "memory"), Shares: map[schemas.Source]float64{}}
		names, total := []schemas.Source{"a", "b", "c", "d"}[:rapid.IntRange(1, 4).Draw(t, "sources")], 0.0
		for _, s := range names {
			f.Shares[s] = rapid.Float64Range(0.02, 1).Draw(t, "share")
			total += f.Shares[s]
		}
		const items = 200
		mix, got := map[string]float64{}, map[schemas.Source]float64{}
		for left := items; left > 0; {
			limit := min(left, rapid.IntRange(1, 100).Draw(t, "limit"))
			queues := convert.All(names, func(s schemas.Source) queue { return queueOf(s, make([]string, 100)...) })
			a, _ := f.arrange(newArrangement(f, mix, "", nil), limit, queues)
			for _, it := range a.list {
				got[it.Source]++
			}
			mix = a.mix.after()
			left -= len(a.list)
		}
		for _, s := range names {
			expect.Near(t, got[s]/items, f.Shares[s]/total, 0.03, "%s: share of the impressions", s)
		}
	})
}

// Make reports the relaxation level and relaxes no cap unnecessarily.
func TestMake_ReportsRelaxationLevel(t *testing.T) {
	pool := func(n int, facets func(i int) schemas.Facets) []Pool {
		p := Pool{Source: "s"}
		for i := range n {
			p.Candidates = append(p.Candidates, Candidate{Pin: schemas.PinID(fmt.Sprintf("pin:%d", i)), PoolScore: -schemas.PoolScore(i), Facets: facets(i)})
		}
		return []Pool{p}
	}
	author := func(n int) func(int) schemas.Facets {
		return func(i int) schemas.Facets { return schemas.Facets{Author: schemas.UserID(fmt.Sprintf("user:%d", i%n))} }
	}
	onBoard := func(i int) schemas.Facets {
		f := author(10)(i)
		f.Board = "board:one"
		return f
	}
	ofInterest := func(i int) schemas.Facets {
		f := author(10)(i)
		f.Interests = []schemas.InterestID{"interest:one"}
		return f
	}
	f := Feed{DefaultShare: 1, ShareWindow: 100, Caps: Caps{Window: 6, Author: 1, Board: 2, Interest: 3}}
	for name, c := range map[string]struct {
		pools []Pool
		want  Relaxation
	}{
		"ten authors":        {pool(10, author(10)), NotRelaxed},
		"three authors":      {pool(6, author(3)), TwiceAuthor},
		"two authors":        {pool(6, author(2)), WithoutCaps},
		"one board":          {pool(10, onBoard), WithoutBoard},
		"one interest":       {pool(10, ofInterest), WithoutInterest},
		"too few candidates": {pool(3, author(10)), NotRelaxed},
	} {
		got := f.Make(Visit{User: "user:me", Limit: min(6, len(c.pools[0].Candidates))}, c.pools, Signals{})
		expect.Equal(t, got.Relaxed, c.want, "%s: relaxation level", name)
		expect.Equal(t, len(got.Items), min(6, len(c.pools[0].Candidates)), "%s: items", name)
	}
	c := f.Make(Visit{User: "user:me", Limit: 9}, pool(3, author(10)), Signals{})
	expect.Equal(t, c.Relaxed, NotRelaxed, "too few candidates: relaxation level")
}

func TestTargets_AreSharesOfAll(t *testing.T) {
	home := Default()[Home]
	for name, c := range map[string]struct {
		feed    Feed
		sources []schemas.Source
		want    map[schemas.Source]float64
	}{
		"named": {Feed{Shares: map[schemas.Source]float64{"a": 3, "b": 1}, DefaultShare: 1}, []schemas.Source{"a"},
			map[schemas.Source]float64{"a": 0.75, "b": 0.25}},
		"with others": {Feed{Shares: map[schemas.Source]float64{"a": 3}, DefaultShare: 1}, []schemas.Source{"a", "b"},
			map[schemas.Source]float64{"a": 0.75, "b": 0.25}},
		"zero shares": {Feed{}, []schemas.Source{"a"}, map[schemas.Source]float64{"a": 0}},
		"home, with exploration": {home, nil, map[schemas.Source]float64{
			"following": 0.6 / 1.05, "interest": 0.3 / 1.05, "related": 0.1 / 1.05, "explore": 0.05 / 1.05}},
	} {
		t.Run(name, func(t *testing.T) {
			near := cmp.Comparer(func(a, b float64) bool { return math.Abs(a-b) < 1e-12 })
			expect.NoDiffBut(t, near, c.feed.Targets(c.sources...), c.want, "targets")
		})
	}
}
