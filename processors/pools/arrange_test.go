package pools

import (
	"fmt"
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/smartfeed/smartfeed/schemas"
)

// queueOf makes a queue of pins by author, best first: "a a b" are three pins, two of user:a.
func queueOf(source schemas.Source, authors ...string) queue {
	q := queue{source: source}
	for i, a := range authors {
		q.items = append(q.items, item{
			pin: schemas.PinID(fmt.Sprintf("pin:%s-%d", source, i)), score: float64(-i),
			Facets: schemas.Facets{Author: schemas.UserID("user:" + a), Board: schemas.BoardID("board:" + a)},
		})
	}
	return q
}

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
			got, _ := arrange(c.limit, c.queues, c.feed, c.mix)
			if diff := cmp.Diff(c.want, pinsOf(got)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestAnotherSourceFillsInWhileACapHoldsOneBack(t *testing.T) {
	f := Feed{Others: 1, Memory: 100, Caps: Caps{Window: 2, Author: 1}}
	got, _ := arrange(4, []queue{queueOf("s", "a", "a"), queueOf("t", "b", "b")}, f, map[string]float64{"t": 10})
	want := []schemas.PinID{"pin:s-0", "pin:t-0", "pin:s-1", "pin:t-1"}
	if diff := cmp.Diff(want, pinsOf(got)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// drawQueues draws sources whose pins overlap.
func drawQueues(t *rapid.T) []queue {
	var queues []queue
	for _, source := range []schemas.Source{schemas.Following, schemas.FromInterest, "editors"} {
		q := queue{source: source}
		for i, n := range rapid.SliceOfNDistinct(rapid.IntRange(0, 60), 0, 40, rapid.ID[int]).Draw(t, "pins") {
			q.items = append(q.items, item{
				pin: pinID(n), score: float64(-i / 2),
				Facets: schemas.Facets{Author: schemas.UserID(fmt.Sprintf("user:%d", n%5)), Board: schemas.BoardID(fmt.Sprintf("board:%d", n%9))},
			})
		}
		queues = append(queues, q)
	}
	return queues
}

func TestAChunkHoldsNoPinTwiceAndEachSourceDescends(t *testing.T) {
	home := DefaultGeneratorConfig().Feeds["home"]
	rapid.Check(t, func(t *rapid.T) {
		queues := drawQueues(t)
		limit := rapid.IntRange(1, 100).Draw(t, "limit")
		got, _ := arrange(limit, queues, home, map[string]float64{"following": rapid.Float64Range(0, 100).Draw(t, "mix")})
		all := map[schemas.PinID]bool{}
		for _, q := range queues {
			for _, it := range q.items {
				all[it.pin] = true
			}
		}
		if want := min(limit, len(all)); len(got) != want {
			t.Errorf("%d items, want %d: a chunk is never shorter than it has to be", len(got), want)
		}
		last := map[schemas.Source]float64{}
		for _, it := range got {
			if !all[it.Pin] {
				t.Errorf("%s stands there twice, or came from nowhere", it.Pin)
			}
			delete(all, it.Pin)
			if before, ok := last[it.Source]; ok && it.Score > before {
				t.Errorf("%s: %v behind the weaker %v of %s", it.Pin, it.Score, before, it.Source)
			}
			last[it.Source] = it.Score
		}
	})
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
			var list []schemas.ServedItem
			list, mix = arrange(limit, queues, f, mix)
			for _, it := range list {
				got[it.Source]++
			}
			left -= len(list)
		}
		for _, s := range names {
			if share, want := got[s]/items, f.Shares[s]/total; math.Abs(share-want) > 0.03 {
				t.Errorf("%s: %.3f of the impressions, want %.3f within 0.03", s, share, want)
			}
		}
	})
}

func TestRescore(t *testing.T) {
	candidates := []candidate{
		{pin: "pin:1", score: 10, candidateBody: candidateBody{Facets: schemas.Facets{Author: "user:a", Board: "board:z"}}},
		{pin: "pin:2", score: 9.5, candidateBody: candidateBody{Facets: schemas.Facets{Author: "user:b", Interests: []schemas.InterestID{"interest:x"}}}},
		{pin: "pin:0", score: 9, candidateBody: candidateBody{Facets: schemas.Facets{Author: "user:c"}}},
	}
	top := []schemas.Affinity{{Facet: "interest:x", Value: 4}, {Facet: "user:b", Value: 2}, {Facet: "board:z", Value: -1}}
	for name, c := range map[string]struct {
		top      []schemas.Affinity
		strength float64
		want     []waitingPin
	}{
		"no affinities":      {nil, 1, []waitingPin{{"pin:1", 10}, {"pin:2", 9.5}, {"pin:0", 9}}},
		"none asked for":     {top, 0, []waitingPin{{"pin:1", 10}, {"pin:2", 9.5}, {"pin:0", 9}}},
		"strongest of each":  {top, 1, []waitingPin{{"pin:2", 10.5}, {"pin:1", 9.75}, {"pin:0", 9}}},
		"ties go by pin":     {top, 4, []waitingPin{{"pin:2", 13.5}, {"pin:0", 9}, {"pin:1", 9}}},
		"only aversions":     {top[2:], 1, []waitingPin{{"pin:2", 9.5}, {"pin:0", 9}, {"pin:1", 9}}},
		"zeroes are nothing": {[]schemas.Affinity{{Facet: "user:a"}}, 1, []waitingPin{{"pin:1", 10}, {"pin:2", 9.5}, {"pin:0", 9}}},
	} {
		t.Run(name, func(t *testing.T) {
			var got []waitingPin
			for _, it := range rescore(candidates, c.top, c.strength) {
				got = append(got, waitingPin{it.pin, it.score})
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestConfig(t *testing.T) {
	if err := DefaultConfig().Validate(); err != nil {
		t.Errorf("the default is not valid: %v", err)
	}
	if err := DefaultGeneratorConfig().Validate(); err != nil {
		t.Errorf("the generator's default is not valid: %v", err)
	}
	err := Config{Cap: 9, Sources: 101, SeenCap: 1, Frozen: 99, Expiry: 1}.Validate()
	want := "cap 9: from 10 to 1000000\nsources 101: from 3 to 100\nseen_cap 1: from 1000 to 1000000\n" +
		"frozen 99: from 100 to 1000\nexpiry 1ns: at least 1m, or 0 for none"
	if got := err.Error(); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	err = GeneratorConfig{Head: 100, Feeds: map[string]Feed{
		"x": {Shares: map[schemas.Source]float64{"s": -1}, Memory: 10, Affinity: math.NaN(), Caps: Caps{Author: -1}},
	}}.Validate()
	want = "feed_max 0: from 10 to 1000000000\nfeeds.x.caps.author -1: from 0 to 100\nfeeds.x.others 0: must be positive\n" +
		"feeds.x.affinity NaN: from 0 to 100\nfeeds.x.shares.s -1: must be positive"
	if got := err.Error(); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
