package feed

import (
	"encoding/json"
	"math"
	"testing"

	"github.com/smartfeed/smartfeed/internal/testkit/expect"
	"github.com/smartfeed/smartfeed/internal/testkit/golden"
	"github.com/smartfeed/smartfeed/internal/testkit/must"
	"github.com/smartfeed/smartfeed/schemas"
)

func TestJSON(t *testing.T) {
	r := newRig(t, nil)
	r.store.follow("user:friend", true)
	full := schemas.FeedEntry{User: viewer, Position: 2, ServedItem: schemas.ServedItem{
		Pin: "pin:42", Source: schemas.FromInterest, RankScore: -0.25, Created: 1795168800123456}}
	r.store.materialize(full, entry(1))
	r.store.follow("interest:x", true)
	r.store.cards["pin:42"] = schemas.Card{Title: "A <title>", Link: "https://example.com/?a=1&b", PinVersion: schemas.PinVersion{
		Pin: "pin:42", PinContent: schemas.PinContent{Created: full.Created, Facets: schemas.Facets{Author: "user:2", Board: "board:9", Interests: []schemas.InterestID{"interest:x", "interest:y"}}}}}
	r.gen.chunk.Head = 2
	r.gen.chunk.Served.Items = []schemas.ServedItem{item("new")}
	page := must.Get(r.Visit(t.Context(), viewer, "home", 2))(t)
	matches(t, "testdata/visit.json", page)
	r.store.feed.err = errFake
	matches(t, "testdata/nothing.json", r.older(t, 3, 5))
	r.store.lists["board:9"] = []schemas.PinVersion{{Pin: "pin:42"}}
	list := must.Get(r.List(t.Context(), "board:9", "", "", 5))(t)
	matches(t, "testdata/list.json", list)
}

func matches(t *testing.T, file string, v any) {
	t.Helper()
	got := must.Get(json.MarshalIndent(v, "", "  "))(t)
	golden.Text(t, file, string(got)+"\n")
}

// Event times have no lower bound, and JSON cannot represent all of them. The age of a pin must not make an answer fail.
func TestPage_EncodesEveryTime(t *testing.T) {
	const yearOne, last schemas.Micros = -62135596800 * 1e6, 253402300800*1e6 - 1
	for _, created := range []schemas.Micros{math.MinInt64, yearOne - 1, yearOne, 0, last, last + 1, math.MaxInt64} {
		p := pinOf(&schemas.Card{PinVersion: schemas.PinVersion{Pin: "pin:1", PinContent: schemas.PinContent{Created: created}}})
		expect.Error(t, expect.ErrorOf(json.Marshal(p)), "", "created %d", created)
		expect.False(t, created >= yearOne && created <= last && schemas.MicrosOf(p.Time) != created, "created %d: got %s", created, p.Time)
	}
}
