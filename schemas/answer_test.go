package schemas

import (
	"encoding/json"
	"math"
	"testing"

	"github.com/smartfeed/smartfeed/internal/testkit/expect"
	"github.com/smartfeed/smartfeed/internal/testkit/must"
)

func TestAnswers_EncodeListsAndTimes(t *testing.T) {
	for name, test := range map[string]struct {
		value any
		want  string
	}{
		"no list":     {List[int](nil), `[]`},
		"a list":      {List[string]{"a", "<"}, `["a","\u003c"]`},
		"time":        {Timestamp(1_795_168_800_120_000), `"2026-11-20T10:00:00.12Z"`},
		"least time":  {Timestamp(math.MinInt64), `"0001-01-01T00:00:00Z"`},
		"latest time": {Timestamp(math.MaxInt64), `"9999-12-31T23:59:59.999999Z"`},
		"pool item, no board": {PoolItem{Pin: "pin:1", PoolScore: 0.5, Facets: Facets{Author: "user:a"}},
			`{"pin":"pin:1","score":0.5,"time":"1970-01-01T00:00:00Z","author":"user:a","board":null,"interests":[]}`},
		"deferred": {FeedState{Feed: "home", Deferred: List[DeferredCandidate]{{Pin: "pin:1", Reason: ReasonWeak}, {Pin: "pin:2", Reason: ReasonDeferredEarlier, Since: 1}}},
			`{"feed":"home","sources":[],"deferred":[{"pin":"pin:1","reason":"weak"},` +
				`{"pin":"pin:2","reason":"deferred_earlier","since":"1970-01-01T00:00:00.000001Z"}],"affinities":[],"degraded":[]}`},
		"why": {Why{User: "user:1", Pin: "pin:1", Feed: "home", Fate: FateOut, Candidates: List[WhyCandidate]{{Source: Related}}},
			`{"user":"user:1","pin":"pin:1","feed":"home","fate":"out","by":[],"shown":null,` +
				`"candidates":[{"source":"related","edges":[],"score":0,"parts":null}],"degraded":[]}`},
	} {
		got, err := json.Marshal(test.value)
		expect.Error(t, err, "", "%s", name)
		expect.NoDiff(t, string(got), test.want, "%s: JSON", name)
	}
}

func TestPoolItem_RoundTrip(t *testing.T) {
	for _, want := range []PoolItem{
		{Pin: "pin:1", PoolScore: -2, Time: 5, Facets: Facets{Author: "user:a", Interests: []InterestID{}}},
		{Pin: "pin:1", Time: -1, Facets: Facets{Author: "user:a", Board: "board:b", Interests: []InterestID{"interest:x"}}},
	} {
		text := must.Get(json.Marshal(want))(t)
		var got PoolItem
		err := json.Unmarshal(text, &got)
		expect.Error(t, err, "", "item")
		expect.NoDiff(t, got, want, "item")
	}
}
