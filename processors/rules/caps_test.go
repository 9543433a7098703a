package rules

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/smartfeed/smartfeed/schemas"
)

func TestCapsGiveWayInOrder(t *testing.T) {
	for name, c := range map[string]struct {
		caps Caps
		want []looseCaps
	}{
		"none":     {Caps{}, []looseCaps{{}}},
		"a window": {Caps{Window: 5}, []looseCaps{{}}},
		"all": {Caps{5, 1, 2, 3}, []looseCaps{
			{Caps{5, 1, 2, 3}, NotRelaxed}, {Caps{5, 1, 2, 0}, WithoutInterest}, {Caps{5, 1, 0, 0}, WithoutBoard},
			{Caps{5, 2, 0, 0}, TwiceAuthor}, {Caps{}, WithoutCaps},
		}},
		"the author's":   {Caps{5, 1, 0, 0}, []looseCaps{{Caps{5, 1, 0, 0}, NotRelaxed}, {Caps{5, 2, 0, 0}, TwiceAuthor}, {Caps{}, WithoutCaps}}},
		"the interest's": {Caps{5, 0, 0, 1}, []looseCaps{{Caps{5, 0, 0, 1}, NotRelaxed}, {Caps{Window: 5}, WithoutInterest}, {Caps{}, WithoutCaps}}},
	} {
		if diff := cmp.Diff(c.want, c.caps.looser(), cmp.AllowUnexported(looseCaps{})); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// The relaxation level is reported, and no cap is relaxed unnecessarily.
func TestWhatGaveWayIsSaid(t *testing.T) {
	pool := func(n int, facets func(i int) schemas.Facets) []Pool {
		p := Pool{Source: "s"}
		for i := range n {
			p.Candidates = append(p.Candidates, Candidate{Pin: schemas.PinID(fmt.Sprintf("pin:%d", i)), PoolScore: schemas.PoolScore(-float64(i)), Facets: facets(i)})
		}
		return []Pool{p}
	}
	author := func(n int) func(int) schemas.Facets {
		return func(i int) schemas.Facets { return schemas.Facets{Author: schemas.UserID(fmt.Sprintf("user:%d", i%n))} }
	}
	onBoard := func(i int) schemas.Facets {
		f := author(10)(i)
		f.Board = "board:one"
		return f
	}
	ofInterest := func(i int) schemas.Facets {
		f := author(10)(i)
		f.Interests = []schemas.InterestID{"interest:one"}
		return f
	}
	f := Feed{Others: 1, Memory: 100, Caps: Caps{Window: 6, Author: 1, Board: 2, Interest: 3}}
	for name, c := range map[string]struct {
		pools []Pool
		want  Relaxation
	}{
		"ten authors":    {pool(10, author(10)), NotRelaxed},
		"three authors":  {pool(6, author(3)), TwiceAuthor},
		"two authors":    {pool(6, author(2)), WithoutCaps},
		"one board":      {pool(10, onBoard), WithoutBoard},
		"one interest":   {pool(10, ofInterest), WithoutInterest},
		"too few anyway": {pool(3, author(10)), NotRelaxed},
	} {
		got := f.Make(Visit{User: "user:me", Limit: min(6, len(c.pools[0].Candidates))}, c.pools, Known{})
		if got.Relaxed != c.want || len(got.Items) != min(6, len(c.pools[0].Candidates)) {
			t.Errorf("%s: %d items, relaxed %q, want %q", name, len(got.Items), got.Relaxed, c.want)
		}
	}
	if got := f.Make(Visit{User: "user:me", Limit: 9}, pool(3, author(10)), Known{}); got.Relaxed != NotRelaxed {
		t.Errorf("too few candidates: relaxed %q", got.Relaxed)
	}
}
