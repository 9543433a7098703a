package conformance

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/smartfeed/smartfeed/internal/convert"
	"github.com/smartfeed/smartfeed/internal/testkit/expect"
	"github.com/smartfeed/smartfeed/internal/testkit/must"
	"github.com/smartfeed/smartfeed/schemas"
	"github.com/smartfeed/smartfeed/serving/feedstore"
)

func publication(followee schemas.Followee, pin schemas.PinID, v schemas.Version, created schemas.Micros) schemas.Publication {
	return schemas.Publication{Followee: followee, PinVersion: schemas.PinVersion{
		Pin: pin, Version: v, PinContent: schemas.PinContent{Created: created, Facets: schemas.Facets{Author: schemas.UserID(followee)}}, Quality: 1}}
}

// listAll reads all pages of a list, n pins at a time.
func listAll(t testing.TB, s store, followee schemas.Followee, n int) (all []schemas.PinVersion) {
	t.Helper()
	for from, turns := "", 0; ; turns++ {
		pins, next, err := s.List(t.Context(), followee, from, n)
		must.OK(t, err)
		if len(pins) > n || turns > 10_000 {
			t.Fatalf("List(%s, %q, %d): %d pins on page %d", followee, from, n, len(pins), turns)
		}
		if all = append(all, pins...); next == "" {
			return all
		}
		from = next
	}
}

func testListPaging(t *testing.T, open opener) {
	s, author := open(t, 100), schemas.Followee(newUser())
	var b feedstore.Batch
	for i := range 23 {
		// Three pins share each creation time, and one is before 1970.
		p := publication(author, schemas.PinID(fmt.Sprintf("pin:%02d/x", i)), 1, schemas.Micros(i/3-1)*1e6)
		b.Publications = append(b.Publications, p)
	}
	write(t, s, b)
	want := sortedPins(b.Publications)
	for _, n := range []int{1, 2, 23, 24, 100} {
		same(t, fmt.Sprintf("by %d", n), listAll(t, s, author, n), want)
	}
	pins, next, err := s.List(t.Context(), author, "", 23)
	if len(pins) != 23 || next != "" || err != nil {
		t.Errorf("complete list: %d pins, next %q, %v: want 23, none", len(pins), next, err)
	}
	newer := publication(author, "pin:new", 1, 99e6)
	_, next, _ = s.List(t.Context(), author, "", 5)
	write(t, s, feedstore.Batch{Publications: []schemas.Publication{newer}})
	rest, _, err := s.List(t.Context(), author, next, 100)
	must.OK(t, err)
	same(t, "page two after a new pin", rest, want[5:])
}

func sortedPins(pubs []schemas.Publication) []schemas.PinVersion {
	pins := convert.All(pubs, func(p schemas.Publication) schemas.PinVersion { return p.PinVersion })
	slices.SortFunc(pins, func(a, b schemas.PinVersion) int {
		if a.Created != b.Created {
			return int(b.Created - a.Created)
		}
		return strings.Compare(string(a.Pin), string(b.Pin))
	})
	return pins
}

func testListManyDead(t *testing.T, open opener) {
	s, author := open(t, 100), schemas.Followee(newUser())
	var b feedstore.Batch
	for i := range 1200 {
		p := publication(author, schemas.PinID(fmt.Sprintf("pin:%04d", i)), 1, schemas.Micros(i))
		b.Publications = append(b.Publications, p)
		if i > 2 {
			p.Version, p.Deleted = 2, true
			b.Publications = append(b.Publications, p)
		}
	}
	write(t, s, b)
	same(t, "remaining pins", listAll(t, s, author, 2), sortedPins(b.Publications[:3]))
}

func testListBadPlace(t *testing.T, open opener) {
	s := open(t, 100)
	for _, from := range []string{"x", "/", "1", "one/pin:1", "99999999999999999999/pin:1"} {
		_, _, err := s.List(t.Context(), "user:1", from, 10)
		expect.Is(t, err, feedstore.ErrBadPlace, "list from %q", from)
	}
}
