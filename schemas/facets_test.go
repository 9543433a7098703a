package schemas

import (
	"errors"
	"reflect"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/smartfeed/smartfeed/internal/testkit/expect"
	"github.com/smartfeed/smartfeed/internal/testkit/must"
)

func TestFacets_FolloweesOmitsEmptyIDs(t *testing.T) {
	for name, test := range map[string]struct {
		facets Facets
		want   []Followee
	}{
		"none":          {Facets{}, nil},
		"author":        {Facets{Author: "user:a"}, []Followee{"user:a"}},
		"without board": {Facets{Author: "user:a", Interests: []InterestID{"interest:x", "interest:y"}}, []Followee{"user:a", "interest:x", "interest:y"}},
		"all":           {Facets{Author: "user:a", Board: "board:b", Interests: []InterestID{"interest:x"}}, []Followee{"user:a", "board:b", "interest:x"}},
	} {
		t.Run(name, func(t *testing.T) {
			expect.NoDiff(t, slices.Collect(test.facets.Followees), test.want, "followees")
			for _, followee := range []Followee{"", "user:a", "board:b", "interest:x", "interest:z"} {
				expect.Equal(t, test.facets.Has(followee), slices.Contains(test.want, followee), "Has(%q)", followee)
			}
			for n := range test.want { // a consumer may stop anywhere
				taken := 0
				for range test.facets.Followees {
					if taken++; taken > n {
						break
					}
				}
				expect.Equal(t, taken, n+1, "ids of the iterator")
			}
		})
	}
}

func TestFacets_EqualComparesEveryField(t *testing.T) {
	facets := rapid.Make[Facets]()
	rapid.Check(t, func(t *rapid.T) {
		a, b := facets.Draw(t, "a"), facets.Draw(t, "b")
		expect.True(t, a.Equal(a) && (Facets{Interests: []InterestID{}}).Equal(Facets{}), "facets equal themselves")
		for i := range reflect.TypeFor[Facets]().NumField() {
			changed := a
			field, other := reflect.ValueOf(&changed).Elem().Field(i), reflect.ValueOf(b).Field(i)
			want := cmp.Equal(field.Interface(), other.Interface(), cmpopts.EquateEmpty())
			field.Set(other)
			expect.Equal(t, a.Equal(changed), want, "%+v and %+v are equal", a, changed)
		}
	})
}

// The input of the decoder includes the rest of a row, so only a truncation inside the facets is an error.
func TestDecodeFacets_RejectsTruncation(t *testing.T) {
	facets := rapid.Make[Facets]()
	rapid.Check(t, func(t *rapid.T) {
		want, tail := facets.Draw(t, "facets"), rapid.String().Draw(t, "tail")
		encoded := string(want.AppendBinary(nil))
		lists := 0
		newList := func(n int) []InterestID {
			lists++
			return make([]InterestID, n)
		}
		got, rest, err := DecodeFacetsInto(encoded+tail, newList)
		must.OK(t, err)
		expect.NoDiff(t, got, want, "facets")
		expect.Equal(t, rest, tail, "rest")
		expect.Equal(t, lists, min(len(want.Interests), 1), "lists allocated for %d interests", len(want.Interests))
		cut := encoded[:rapid.IntRange(0, len(encoded)-1).Draw(t, "cut")]
		if got, _, err := DecodeFacets(cut); !errors.Is(err, ErrFacets) {
			t.Errorf("%x of %x: got %v, %v, want ErrFacets", cut, encoded, got, err)
		}
	})
}

func FuzzDecodeFacets(f *testing.F) {
	f.Add("\x00\x00\xff\xff\xff\xff\x0f")
	f.Add("\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01")
	f.Fuzz(func(t *testing.T, s string) {
		facets, rest, err := DecodeFacets(s)
		if err == nil && len(rest)+len(facets.Interests)+2 > len(s) {
			t.Errorf("%d interests and a rest of %d bytes, of %d bytes", len(facets.Interests), len(rest), len(s))
		}
	})
}
