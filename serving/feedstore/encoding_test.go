package feedstore

import (
	"bytes"
	"fmt"
	"math"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/smartfeed/smartfeed/internal/packed"
	"github.com/smartfeed/smartfeed/internal/testkit/expect"
	"github.com/smartfeed/smartfeed/internal/testkit/golden"
	"github.com/smartfeed/smartfeed/schemas"
)

func sampleEntry() schemas.FeedEntry {
	return schemas.FeedEntry{User: "user:1", Position: 7, Time: 1795168800123456, ServedItem: schemas.ServedItem{
		Pin: "pin:42", Source: schemas.Related, RankScore: -0.25, Created: -3,
		Facets: schemas.Facets{Author: "user:2", Board: "board:9", Interests: []schemas.InterestID{"interest:x", "interest:y"}}}}
}

func sampleCard() schemas.Card {
	return schemas.Card{Title: "Ein Titel, größer", Link: "https://example.com", PinVersion: schemas.PinVersion{
		Pin: "pin:42", Version: 1795168800123456, Quality: 1.5, PinContent: schemas.PinContent{Created: 9, Facets: schemas.Facets{Author: "user:2"}}}}
}

// TestEncoding_Golden pins the layout on disk. A change requires another format number.
func TestEncoding_Golden(t *testing.T) {
	e, c := sampleEntry(), sampleCard()
	swept := schemas.FeedEntry{User: "user:1", Position: 7, Time: 5}
	explored := sampleEntry()
	explored.Source, explored.Pool = schemas.Explore, schemas.Related
	follow := schemas.Edge{User: "user:1", Other: "board:9", Kind: schemas.FollowEdge, Live: true, Time: 5}
	unfollow, blocked := follow, schemas.Edge{User: "user:1", Other: "user:2", Kind: schemas.BlockedEdge, Live: true, Time: -5}
	unfollow.Live = false
	var b strings.Builder
	for _, row := range []struct {
		name       string
		key, value []byte
	}{
		{"entry", entryKey(e.User, e.Position), appendEntry(nil, &e)},
		{"explored", entryKey(explored.User, explored.Position), appendEntry(nil, &explored)},
		{"swept", entryKey(swept.User, swept.Position), appendEntry(nil, &swept)},
		{"trimmed", trimPositionKey(e.User), packed.AppendOrdered(nil, int64(12))},
		{"card", cardKey(c.Pin), appendCard(nil, &c)},
		{"listing", listingKey("user:2", c.Pin), appendVersion(nil, &c.PinVersion)},
		{"place", placeKey("user:2", Place{c.Created, c.Pin}), nil},
		{"follow", edgeKey(follow.User, follow.Other, 'f'), appendEdge(nil, &follow)},
		{"unfollow", edgeKey(follow.User, follow.Other, 'f'), appendEdge(nil, &unfollow)},
		{"blocked", edgeKey(blocked.User, blocked.Other, 'x'), appendEdge(nil, &blocked)},
		{"deleted", deletedUserKey("user:3"), packed.AppendOrdered(nil, int64(1))},
	} {
		fmt.Fprintf(&b, "%-8s %q\n         %x\n", row.name, row.key, row.value)
	}
	golden.Text(t, "testdata/rows.golden", b.String())
}

// decodeAny decodes a value as every kind of row.
func decodeAny(value []byte) (errs []error) {
	_, err1 := decodeEntry("user:1", 1, value)
	_, err2 := decodeCard("pin:1", value)
	_, err3 := decodeListing("pin:1", value)
	return []error{err1, err2, err3, decodeEdge(&schemas.Edge{Kind: schemas.FollowEdge}, value)}
}

func TestDecode_RejectsTruncatedRows(t *testing.T) {
	e, c := sampleEntry(), sampleCard()
	edge := schemas.Edge{Kind: schemas.BlockEdge, Time: 5}
	for i, value := range [][]byte{appendEntry(nil, &e), appendCard(nil, &c), appendVersion(nil, &c.PinVersion), appendEdge(nil, &edge)} {
		expect.Error(t, decodeAny(value)[i], "", "row %d", i)
		for n := range value {
			expect.Is(t, decodeAny(value[:n])[i], packed.ErrTorn, "row %d cut to %d of %d bytes", i, n, len(value))
		}
		expect.Is(t, decodeAny(append(value, 0))[i], packed.ErrTorn, "row %d and a byte", i)
	}
}

func FuzzDecode(f *testing.F) {
	e, c := sampleEntry(), sampleCard()
	f.Add(appendEntry(nil, &e))
	f.Add(appendCard(nil, &c))
	f.Add(bytes.Repeat([]byte{0xff}, 40))
	f.Fuzz(func(t *testing.T, value []byte) { _ = decodeAny(value) })
}

func TestEncoding_RoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		e := schemas.FeedEntry{
			User: "user:1", Position: rapid.Int64().Draw(t, "position"), Time: schemas.Micros(rapid.Int64().Draw(t, "time")),
			ServedItem: schemas.ServedItem{
				Pin: schemas.PinID(rapid.String().Draw(t, "pin")), Source: schemas.Source(rapid.String().Draw(t, "source")),
				RankScore: schemas.RankScore(rapid.Float64().Draw(t, "score")), Created: schemas.Micros(rapid.Int64().Draw(t, "created")),
				Facets: drawFacets(t),
			}}
		got, err := decodeEntry(e.User, positionOf(entryKey(e.User, e.Position)), appendEntry(nil, &e))
		check(t, got, e, err)
		c := schemas.Card{Title: rapid.String().Draw(t, "title"), Link: rapid.String().Draw(t, "link"), PinVersion: schemas.PinVersion{
			Pin: "pin:1", Version: schemas.Version(rapid.Int64().Draw(t, "version")), PinContent: schemas.PinContent{Facets: drawFacets(t), Created: e.Created, Deleted: rapid.Bool().Draw(t, "deleted")}, Quality: float64(e.RankScore)}}
		card, err := decodeCard(c.Pin, appendCard(nil, &c))
		check(t, card, c, err)
		edge := schemas.Edge{Kind: rapid.SampledFrom([]schemas.EdgeKind{schemas.FollowEdge, schemas.BlockEdge, schemas.BlockedEdge}).Draw(t, "kind"),
			Live: rapid.Bool().Draw(t, "live"), Time: e.Time}
		gotEdge := schemas.Edge{Kind: edge.Kind}
		err = decodeEdge(&gotEdge, appendEdge(nil, &edge))
		check(t, gotEdge, edge, err)
		at := Place{Created: e.Created, Pin: "pin:/1"}
		again, err := ParsePlace(at.String())
		check(t, again.Created, at.Created, err)
		check(t, again.Pin, at.Pin, nil)
		check(t, placeOf("user:2", placeKey("user:2", at)).Created, at.Created, nil)
	})
}

func drawFacets(t *rapid.T) schemas.Facets {
	f := schemas.Facets{Author: schemas.UserID(rapid.String().Draw(t, "author")), Board: schemas.BoardID(rapid.String().Draw(t, "board"))}
	for _, i := range rapid.SliceOfN(rapid.String(), 0, 3).Draw(t, "interests") {
		f.Interests = append(f.Interests, schemas.InterestID(i))
	}
	return f
}

func check(t *rapid.T, got, want any, err error) {
	t.Helper()
	expect.Error(t, err, "", "decode")
	expect.NoDiff(t, got, want, "decoded")
}

func TestAppendDown_SortsDescending(t *testing.T) {
	numbers := []int64{math.MinInt64, -256, -1, 0, 1, 255, 256, math.MaxInt64}
	for i, n := range numbers {
		expect.Equal(t, down(appendDown(nil, n)), n, "read back")
		if i > 0 && bytes.Compare(appendDown(nil, numbers[i-1]), appendDown(nil, n)) <= 0 {
			t.Errorf("%d is not above %d", numbers[i-1], n)
		}
	}
}
