package fanout

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"github.com/smartfeed/smartfeed/internal/testkit/expect"
	"github.com/smartfeed/smartfeed/schemas"
)

func TestRegister_LastWriteWins(t *testing.T) {
	at := func(live bool, time schemas.Micros, id string) register { return register{live, time, id} }
	for name, c := range map[string]struct {
		was, event, want register
		tie              bool
		what             change
	}{
		"the first event counts":                       {register{}, at(false, -5, "a"), at(false, -5, "a"), false, newer},
		"later wins":                                   {at(true, 1, "a"), at(false, 2, "b"), at(false, 2, "b"), true, newer},
		"later wins in the same state":                 {at(true, 1, "a"), at(true, 2, "b"), at(true, 2, "b"), false, newer},
		"earlier loses":                                {at(true, 2, "b"), at(false, 1, "a"), at(true, 2, "b"), false, none},
		"unfollow wins at the same time":               {at(true, 1, "a"), at(false, 1, "b"), at(false, 1, "b"), false, newer},
		"follow loses at the same time":                {at(false, 1, "b"), at(true, 1, "a"), at(false, 1, "b"), false, none},
		"block wins at the same time":                  {at(false, 1, "b"), at(true, 1, "a"), at(true, 1, "a"), true, newer},
		"a repeat has no effect":                       {at(true, 1, "a"), at(true, 1, "a"), at(true, 1, "a"), false, none},
		"another body under the same id has no effect": {at(true, 1, "a"), at(false, 9, "a"), at(true, 1, "a"), false, none},
		"the smaller id of an equal event is kept":     {at(true, 1, "b"), at(true, 1, "a"), at(true, 1, "a"), false, renamed},
		"the larger id of an equal event loses":        {at(true, 1, "a"), at(true, 1, "b"), at(true, 1, "a"), false, none},
	} {
		got, what := c.was.apply(c.event, c.tie)
		expect.Equal(t, got, c.want, "%s: register", name)
		expect.Equal(t, what, c.what, "%s: effect", name)
	}
}

func TestRegister_ConvergesInAnyOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		tie := rapid.Bool().Draw(t, "tie")
		events := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) register {
			return register{live: rapid.Bool().Draw(t, "live"), time: schemas.Micros(rapid.IntRange(1, 4).Draw(t, "time"))}
		}), 1, 8).Draw(t, "events")
		var want register
		for i := range events {
			e := &events[i]
			e.id = fmt.Sprintf("e%d", i)
			wins := e.time > want.time || e.time == want.time && e.live != want.live && e.live == tie
			if i == 0 || wins {
				want = *e // ids ascend: the later of two equal events has the larger id
			}
		}
		order := append(events, rapid.SliceOf(rapid.SampledFrom(events)).Draw(t, "repeats")...)
		var got register
		for _, e := range rapid.Permutation(order).Draw(t, "order") {
			got, _ = got.apply(e, tie)
		}
		expect.Equal(t, got, want, "register")
	})
}

func TestWeight_LastWriteWins(t *testing.T) {
	for name, c := range map[string]struct {
		was, sent, want weight
		changed         bool
	}{
		"the first":                    {defaultWeight, weight{0.5, -7}, weight{0.5, -7}, true},
		"later wins":                   {weight{3, 1}, weight{2, 2}, weight{2, 2}, true},
		"earlier loses":                {weight{2, 2}, weight{3, 1}, weight{2, 2}, false},
		"larger wins at the same time": {weight{2, 2}, weight{3, 2}, weight{3, 2}, true},
		"a repeat":                     {weight{2, 2}, weight{2, 2}, weight{2, 2}, false},
	} {
		got, changed := c.was.apply(c.sent)
		expect.Equal(t, got, c.want, "%s: register", name)
		expect.Equal(t, changed, c.changed, "%s: changed", name)
	}
}
