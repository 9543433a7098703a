package pools

import (
	"encoding/hex"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/smartfeed/smartfeed/processors/ranked"
	"github.com/smartfeed/smartfeed/schemas"
)

func TestCandidateRowGolden(t *testing.T) {
	row := appendCandidate(nil, rowCandidate, schemas.Following, 1, "pin:a", 2)
	want := "63" + hex.EncodeToString([]byte("following")) + "00" + "400fffffffffffff" +
		hex.EncodeToString([]byte("pin:a")) + "00" + "8000000000000002"
	if got := hex.EncodeToString(row); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestCandidateRowComesBack(t *testing.T) {
	body := ranked.Body{Facets: schemas.Facets{Author: "user:a"}, Created: 3, Deleted: true}
	name := string(appendCandidate(nil, rowChanged, "related", -7.5, "pin:\u00e9", -1))
	value := string(ranked.AppendBody(nil, &body))
	prefix := len(sourcePrefix(rowChanged, "related"))
	got, err := parseCandidate(prefix, name, value)
	if err != nil {
		t.Fatal(err)
	}
	want := candidateRow{pin: "pin:\u00e9", version: -1, score: -7.5, created: 3, deleted: true, name: name, body: value}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(candidateRow{})); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for n := prefix; n < len(name); n++ {
		if got, err := parseCandidate(prefix, name[:n], value); err == nil {
			t.Errorf("%d of %d bytes of a name were read as %+v", n, len(name), got)
		}
	}
}

func TestCandidatesAreReadBestFirstAndTiesByPin(t *testing.T) {
	m := memory{}
	for _, r := range []struct {
		source  schemas.Source
		score   float64
		pin     schemas.PinID
		version schemas.Version
	}{
		{"following", 1, "pin:1", 5}, {"following", 1, "pin:12", 1}, {"following", 1, "pin:1", 1},
		{"following", -2, "pin:0", 1}, {"following", 30, "pin:9", 1}, {"followin", 99, "pin:x", 1}, {"following2", 99, "pin:y", 1},
	} {
		m[string(appendCandidate(nil, rowCandidate, r.source, r.score, r.pin, r.version))] = ranked.AppendBody(nil, &ranked.Body{})
	}
	list, err := candidateRows(m, schemas.Following)
	if err != nil {
		t.Fatal(err)
	}
	type place struct {
		Pin     schemas.PinID
		Version schemas.Version
	}
	var got []place
	for _, r := range list {
		got = append(got, place{r.pin, r.version})
	}
	want := []place{{"pin:9", 1}, {"pin:1", 1}, {"pin:1", 5}, {"pin:12", 1}, {"pin:0", 1}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	all, err := sources(m)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]schemas.Source{"followin", "following", "following2"}, all); diff != "" {
		t.Errorf("sources (-want +got):\n%s", diff)
	}
}

func TestSeenGolden(t *testing.T) {
	s := seen{position: 1, time: 2, created: -1}
	value := appendSeen(nil, s)
	if got, want := hex.EncodeToString(value), "0000000000000001"+"0000000000000002"+"ffffffffffffffff"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	got, err := parseSeen(value)
	if err != nil || got != s {
		t.Errorf("came back as %+v, %v", got, err)
	}
	for n := range len(value) {
		if _, err := parseSeen(value[:n]); err == nil {
			t.Errorf("%d bytes were read", n)
		}
	}
}
