package layout

import (
	"encoding/hex"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/smartfeed/smartfeed/internal/testkit/expect"
	"github.com/smartfeed/smartfeed/internal/testkit/golden"
	"github.com/smartfeed/smartfeed/internal/testkit/memrows"
	"github.com/smartfeed/smartfeed/internal/testkit/must"
	"github.com/smartfeed/smartfeed/processors/ranked"
	"github.com/smartfeed/smartfeed/schemas"
)

func TestAppendCandidate_Golden(t *testing.T) {
	row := AppendCandidate(nil, KindFirstVersion, schemas.Following, 1, "pin:a", 2)
	want := "63" + hex.EncodeToString([]byte("following")) + "00" + "400fffffffffffff" +
		hex.EncodeToString([]byte("pin:a")) + "00" + "8000000000000002"
	expect.Equal(t, hex.EncodeToString(row), want, "row")
}

func TestParseCandidate_RoundTrip(t *testing.T) {
	body := schemas.PinContent{Facets: schemas.Facets{Author: "user:a"}, Created: 3, Deleted: true}
	name := string(AppendCandidate(nil, KindLaterVersion, "related", -7.5, "pin:\u00e9", -1))
	value := string(ranked.AppendBody(nil, &body))
	prefix := len(SourcePrefix(KindLaterVersion, "related"))
	got := must.Get(ParseCandidate(prefix, name, value))(t)
	want := CandidateRow{Pin: "pin:\u00e9", Version: -1, PoolScore: -7.5, Created: 3, deleted: true, Name: name, body: value}
	expect.NoDiffBut(t, cmp.AllowUnexported(CandidateRow{}), got, want, "row")
	for n := prefix; n < len(name); n++ {
		expect.Fails(t, expect.ErrorOf(ParseCandidate(prefix, name[:n], value)), "%d of %d bytes of a name", n, len(name))
	}
}

func TestCandidateRows_BestFirstTiesByPin(t *testing.T) {
	m := memrows.Table{}
	for _, r := range []struct {
		source  schemas.Source
		score   schemas.PoolScore
		pin     schemas.PinID
		version schemas.Version
	}{
		{"following", 1, "pin:1", 5}, {"following", 1, "pin:12", 1}, {"following", 1, "pin:1", 1},
		{"following", -2, "pin:0", 1}, {"following", 30, "pin:9", 1}, {"followin", 99, "pin:x", 1}, {"following2", 99, "pin:y", 1},
	} {
		m[string(AppendCandidate(nil, KindFirstVersion, r.source, r.score, r.pin, r.version))] = ranked.AppendBody(nil, &schemas.PinContent{})
	}
	list := must.Get(CandidateRows(m, schemas.Following))(t)
	type place struct {
		Pin     schemas.PinID
		Version schemas.Version
	}
	var got []place
	for _, r := range list {
		got = append(got, place{r.Pin, r.Version})
	}
	want := []place{{"pin:9", 1}, {"pin:1", 1}, {"pin:1", 5}, {"pin:12", 1}, {"pin:0", 1}}
	expect.NoDiff(t, got, want, "row")
	all := must.Get(Sources(m))(t)
	expect.NoDiff(t, all, []schemas.Source{"followin", "following", "following2"}, "sources")
}

func TestRows_KeepTheirFormats(t *testing.T) {
	golden.Row(t, Seen{Position: 1, Time: 300, Created: -1}, "01"+"02"+"d804"+"01")
	golden.Row(t, Activity{
		LastSeen: 1, Inactive: true, CheckAt: 2, BackfillID: 3, Expected: 5, Received: 4,
		Notification: Notification{After: "user:a", Source: "x", Unawaited: true},
	}, "0203"+"0204060a08"+"06757365723a61"+"0178")
	golden.Row(t, State{
		Head: 1, SeenTrimmed: 2, Refused: -1, Trimmed: 3, ServedBy: []string{"v"}, Memory: schemas.Memory{
			Mix: map[string]float64{"b": 2, "a": 1}, Draws: 4, Began: 6, Visited: 7, Weak: 5, Best: map[string]schemas.RankScore{"c": -1},
			Deferred: []schemas.Deferred{{Pin: "p", Since: 8}},
		},
	}, "01"+"020406080a"+"010c0e"+"010176"+"0201613ff0000000000000"+"01624000000000000000"+"010163bff0000000000000"+"01017010")
	golden.Row(t, State{}, "01"+"0000000000"+"000000"+"00000000")
}

func TestFollow_KeepsItsFormat(t *testing.T) {
	for want, f := range map[string]struct {
		at     schemas.Micros
		weight float32
	}{
		"01" + "8000000000000007":              {7, 1},
		"01" + "7fffffffffffffff" + "3f000000": {-1, 0.5},
	} {
		value := AppendFollow(nil, f.at, f.weight)
		expect.Equal(t, hex.EncodeToString(value), want, "%+v encodes to", f)
		if at, weight, err := ParseFollow(value); err != nil || at != f.at || weight != f.weight {
			t.Errorf("%s decodes to %d, %v, %v, want %+v", want, at, weight, err, f)
		}
		for n := range value {
			if _, _, err := ParseFollow(value[:n]); err == nil && n != 9 {
				t.Errorf("%d bytes of %s: want an error", n, want)
			}
		}
	}
}
