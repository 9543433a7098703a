package ranked_test

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"math"
	"testing"

	"pgregory.net/rapid"

	"github.com/smartfeed/smartfeed/internal/testkit/expect"
	"github.com/smartfeed/smartfeed/internal/testkit/must"
	"github.com/smartfeed/smartfeed/processors/ranked"
	"github.com/smartfeed/smartfeed/schemas"
)

func TestAppendScore_SortsBestFirst(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		finite := rapid.Float64().Filter(func(x float64) bool { return !math.IsInf(x, 0) && !math.IsNaN(x) })
		a, b := finite.Draw(t, "a"), finite.Draw(t, "b")
		rowA, rowB := ranked.AppendScore(nil, a), ranked.AppendScore(nil, b)
		expect.False(t, a > b && bytes.Compare(rowA, rowB) >= 0, "%v is not before %v: %x, %x", a, b, rowA, rowB)
		expect.Equal(t, math.Float64bits(ranked.Score[float64](string(rowA))), math.Float64bits(a), "bits of the decoded score")
	})
}

func TestAppendScore_Golden(t *testing.T) {
	for score, want := range map[float64]string{
		0:               "7fffffffffffffff",
		1:               "400fffffffffffff",
		-1:              "bff0000000000000",
		20371.5:         "3f2c1b1fffffffff",
		math.MaxFloat64: "0010000000000000",
	} {
		expect.Equal(t, hex.EncodeToString(ranked.AppendScore(nil, score)), want, "score %v", score)
	}
}

func TestAppendVersion_SortsAscending(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := schemas.Version(rapid.Int64().Draw(t, "a")), schemas.Version(rapid.Int64().Draw(t, "b"))
		rowA, rowB := ranked.AppendVersion(nil, a), ranked.AppendVersion(nil, b)
		expect.Equal(t, bytes.Compare(rowA, rowB) < 0, a < b, "%d before %d", a, b)
		expect.Equal(t, ranked.Version(string(rowA)), a, "decoded version")
	})
}

var pottery = schemas.PinContent{
	Facets: schemas.Facets{
		Author: "user:ada", Board: "board:b", Interests: []schemas.InterestID{"interest:x", "interest:é"},
	},
	Created: 1_700_000_000_000_000,
}

func TestAppendBody_Golden(t *testing.T) {
	gone := schemas.PinContent{Facets: schemas.Facets{Author: "user:ada"}, Created: -1, Deleted: true}
	for name, c := range map[string]struct {
		body schemas.PinContent
		want string
	}{
		"all": {pottery, "04" + "00060a24181e4000" + "02" + "08757365723a616461" + "07626f6172643a62" + "02" +
			"0a696e7465726573743a78" + "0b696e7465726573743ac3a9"},
		"deleted": {gone, "05" + "ffffffffffffffff" + "01" + "08757365723a616461" + "00"},
	} {
		t.Run(name, func(t *testing.T) {
			row := ranked.AppendBody(nil, &c.body)
			expect.Equal(t, hex.EncodeToString(row), c.want, "row")
			got := must.Get(ranked.ParseBody(string(row)))(t)
			expect.NoDiff(t, got, c.body, "decoded body")
		})
	}
}

func TestParseBody_RejectsTruncationsAndTrailingBytes(t *testing.T) {
	row := string(ranked.AppendBody(nil, &pottery))
	for n := range len(row) {
		expect.Fails(t, expect.ErrorOf(ranked.ParseBody(row[:n])), "%d of %d bytes", n, len(row))
	}
	expect.Fails(t, expect.ErrorOf(ranked.ParseBody(row+"\x00")), "one byte too many")
}

func FuzzParseBody(f *testing.F) {
	f.Add(string(ranked.AppendBody(nil, &pottery)))
	f.Add("\x00\x00\x00\x00\x00\x00\x00\x00\x00\xff\xff\xff\xff\x0f")
	f.Fuzz(func(t *testing.T, row string) {
		body, err := ranked.ParseBody(row)
		if err != nil {
			return
		}
		again := must.Get(ranked.ParseBody(string(ranked.AppendBody(nil, &body))))(t)
		expect.NoDiff(t, again, body, "body")
	})
}

func TestTrimDue_OneRowInN(t *testing.T) {
	const rows, n = 200_000, 500
	for _, list := range []string{"user:1", "user:2", "user:ada\x00following"} {
		due := 0
		for i := range rows {
			if ranked.TrimDue(ranked.Hash(list), ranked.Hash(fmt.Sprintf("pin:%d", i)), n) {
				due++
			}
		}
		expect.Between(t, due, rows/n*3/4, rows/n*5/4, "%q: due rows of %d", list, rows)
	}
}
