package rules

import (
	"fmt"
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

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
	list := []schemas.PinID{}
	for _, it := range items {
		list = append(list, it.Pin)
	}
	return list
}

func TestArrange(t *testing.T) {
	even := Feed{Others: 1, Memory: 100}
	capped := Feed{Others: 1, Memory: 100, Caps: Caps{Window: 3, Author: 1}}
	onBoards := Feed{Others: 1, Memory: 100, Caps: Caps{Window: 3, Author: 2, Board: 1}}
	for name, c := range map[string]struct {
		feed   Feed
		limit  int
		queues []queue
		mix    map[string]float64
		want   []schemas.PinID
	}{
		"nothing": {even, 5, nil, nil, []schemas.PinID{}},
		"one source, best first": {even, 2, []queue{queueOf("s", "a", "b", "c")}, nil,
			[]schemas.PinID{"pin:s-0", "pin:s-1"}},
		"two in turn": {even, 4, []queue{queueOf("s", "a", "b"), queueOf("t", "a", "b")}, nil,
			[]schemas.PinID{"pin:s-0", "pin:t-0", "pin:s-1", "pin:t-1"}},
		"what was shown before counts": {even, 3, []queue{queueOf("s", "a", "b"), queueOf("t", "a", "b")},
			map[string]float64{"s": 1}, []schemas.PinID{"pin:t-0", "pin:s-0", "pin:t-1"}},
		"the others take the place of one that is empty": {even, 4, []queue{queueOf("s", "a"), queueOf("t", "a", "b", "c")}, nil,
			[]schemas.PinID{"pin:s-0", "pin:t-0", "pin:t-1", "pin:t-2"}},
		"a cap passes an item over for good": {capped, 3, []queue{queueOf("s", "a", "a", "b", "c")}, nil,
			[]schemas.PinID{"pin:s-0", "pin:s-2", "pin:s-3"}},
		"and is doubled where it leaves the chunk short": {capped, 4, []queue{queueOf("s", "a", "a", "a", "b", "c")}, nil,
			[]schemas.PinID{"pin:s-0", "pin:s-1", "pin:s-3", "pin:s-4"}},
		"and given up where that does not help": {capped, 3, []queue{queueOf("s", "a", "a", "a")}, nil,
			[]schemas.PinID{"pin:s-0", "pin:s-1", "pin:s-2"}},
		"the board's gives way first": {onBoards, 2, []queue{queueOf("s", "a", "a")}, nil,
			[]schemas.PinID{"pin:s-0", "pin:s-1"}},
		"a short chunk keeps its caps": {capped, 9, []queue{queueOf("s", "a", "b", "c")}, nil,
			[]schemas.PinID{"pin:s-0", "pin:s-1", "pin:s-2"}},
	} {
		t.Run(name, func(t *testing.T) {
			got, _ := c.feed.arrange(c.limit, c.queues, c.mix, "")
			if diff := cmp.Diff(c.want, pinsOf(got.list)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestAnotherSourceFillsInWhileACapHoldsOneBack(t *testing.T) {
	f := Feed{Others: 1, Memory: 100, Caps: Caps{Window: 2, Author: 1}}
	got, _ := f.arrange(4, []queue{queueOf("s", "a", "a"), queueOf("t", "b", "b")}, map[string]float64{"t": 10}, "")
	want := []schemas.PinID{"pin:s-0", "pin:t-0", "pin:s-1", "pin:t-1"}
	if diff := cmp.Diff(want, pinsOf(got.list)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestSharesHoldWithinThreePointsOver200Items(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := Feed{Others: 1, Memory: rapid.IntRange(50, 1000).Draw(t, "memory"), Shares: map[schemas.Source]float64{}}
		names, total := []schemas.Source{"a", "b", "c", "d"}[:rapid.IntRange(1, 4).Draw(t, "sources")], 0.0
		for _, s := range names {
			f.Shares[s] = rapid.Float64Range(0.02, 1).Draw(t, "share")
			total += f.Shares[s]
		}
		const items = 200
		mix, got := map[string]float64{}, map[schemas.Source]float64{}
		for left := items; left > 0; {
			limit := min(left, rapid.IntRange(1, 100).Draw(t, "limit"))
			var queues []queue
			for _, s := range names {
				queues = append(queues, queueOf(s, make([]string, 100)...))
			}
			a, _ := f.arrange(limit, queues, mix, "")
			for _, it := range a.list {
				got[it.Source]++
			}
			mix = a.mix.after()
			left -= len(a.list)
		}
		for _, s := range names {
			if share, want := got[s]/items, f.Shares[s]/total; math.Abs(share-want) > 0.03 {
				t.Errorf("%s: %.3f of the impressions, want %.3f within 0.03", s, share, want)
			}
		}
	})
}
