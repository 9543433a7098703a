package layout

import (
	"encoding/hex"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/smartfeed/smartfeed/internal/testkit/memrows"
	"github.com/smartfeed/smartfeed/processors/ranked"
	"github.com/smartfeed/smartfeed/schemas"
)

func TestCandidateRowGolden(t *testing.T) {
	row := AppendCandidate(nil, KindFirstVersion, schemas.Following, 1, "pin:a", 2)
	want := "63" + hex.EncodeToString([]byte("following")) + "00" + "400fffffffffffff" +
		hex.EncodeToString([]byte("pin:a")) + "00" + "8000000000000002"
	if got := hex.EncodeToString(row); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestCandidateRowComesBack(t *testing.T) {
	body := schemas.PinContent{Facets: schemas.Facets{Author: "user:a"}, Created: 3, Deleted: true}
	name := string(AppendCandidate(nil, KindLaterVersion, "related", -7.5, "pin:\u00e9", -1))
	value := string(ranked.AppendBody(nil, &body))
	prefix := len(SourcePrefix(KindLaterVersion, "related"))
	got, err := ParseCandidate(prefix, name, value)
	if err != nil {
		t.Fatal(err)
	}
	want := CandidateRow{Pin: "pin:\u00e9", Version: -1, PoolScore: -7.5, Created: 3, deleted: true, Name: name, body: value}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(CandidateRow{})); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for n := prefix; n < len(name); n++ {
		if got, err := ParseCandidate(prefix, name[:n], value); err == nil {
			t.Errorf("%d of %d bytes of a name were read as %+v", n, len(name), got)
		}
	}
}

func TestCandidatesAreReadBestFirstAndTiesByPin(t *testing.T) {
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
	list, err := CandidateRows(m, schemas.Following)
	if err != nil {
		t.Fatal(err)
	}
	type place struct {
		Pin     schemas.PinID
		Version schemas.Version
	}
	var got []place
	for _, r := range list {
		got = append(got, place{r.Pin, r.Version})
	}
	want := []place{{"pin:9", 1}, {"pin:1", 1}, {"pin:1", 5}, {"pin:12", 1}, {"pin:0", 1}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	all, err := Sources(m)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]schemas.Source{"followin", "following", "following2"}, all); diff != "" {
		t.Errorf("sources (-want +got):\n%s", diff)
	}
}

func TestSeen_KeepsItsFormat(t *testing.T) {
	s := Seen{Position: 1, Time: 300, Created: -1}
	value := AppendSeen(nil, s)
	if got, want := hex.EncodeToString(value), "01"+"02"+"d804"+"01"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if got, err := ParseSeen(value); err != nil || got != s {
		t.Errorf("read as %+v, %v, want %+v", got, err, s)
	}
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
		if got := hex.EncodeToString(value); got != want {
			t.Errorf("%+v is written as %s, want %s", f, got, want)
		}
		if at, weight, err := ParseFollow(value); err != nil || at != f.at || weight != f.weight {
			t.Errorf("%s is read as %d, %v, %v, want %+v", want, at, weight, err, f)
		}
		for n := range value {
			if _, _, err := ParseFollow(value[:n]); err == nil && n != 9 {
				t.Errorf("%d bytes of %s are read", n, want)
			}
		}
	}
}
