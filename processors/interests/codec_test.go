package interests

import (
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/smartfeed/smartfeed/processors/decay"
	"github.com/smartfeed/smartfeed/schemas"
)

// reads checks that a row is read back as it was written, and that any truncation or extension of it is an error.
func reads[T any, R record[T]](t *rapid.T, rec T) {
	t.Helper()
	value := encode[T, R](&rec)
	got, err := decode[T, R](value)
	if diff := cmp.Diff(rec, got, cmpopts.EquateEmpty()); diff != "" || err != nil {
		t.Fatalf("%v, want as written, got %s", err, diff)
	}
	for n := range value {
		if _, err := decode[T, R](value[:n]); err == nil {
			t.Fatalf("the first %d bytes of %x are taken for a row", n, value)
		}
	}
	if _, err := decode[T, R](append(value, 0)); err == nil {
		t.Fatalf("%x with a byte more is taken for a row", value)
	}
	value[0]++
	if _, err := decode[T, R](value); err == nil {
		t.Fatal("a row of another format is read")
	}
}

func TestRowsAreReadAsWritten(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		texts, numbers, flags := rapid.String(), rapid.Int64(), rapid.Bool()
		sums := rapid.Float64()
		micros := func() schemas.Micros { return schemas.Micros(numbers.Draw(t, "time")) }
		reads(t, number(numbers.Draw(t, "number")))
		reads(t, saying{
			Version: schemas.Version(numbers.Draw(t, "version")), Author: schemas.UserID(texts.Draw(t, "author")), Created: micros(),
			Interests: rapid.SliceOf(rapid.Map(texts, func(s string) schemas.InterestID { return schemas.InterestID(s) })).Draw(t, "interests"),
			Terms:     rapid.SliceOf(texts).Draw(t, "terms"), Deleted: flags.Draw(t, "deleted"),
		})
		reads(t, visitor{Source: schemas.Source(texts.Draw(t, "source")), Time: micros(), Liked: flags.Draw(t, "liked"), Forget: micros()})
		reads(t, term{Pins: numbers.Draw(t, "pins"), Over: numbers.Draw(t, "over"), People: numbers.Draw(t, "people"), Recent: decay.Sum(sums.Draw(t, "recent"))})
		l := liking{Strength: decay.Sum(sums.Draw(t, "strength"))}
		for range rapid.IntRange(0, 5).Draw(t, "actions") {
			l.Evidence = append(l.Evidence, schemas.Evidence{
				Pin: schemas.PinID(texts.Draw(t, "pin")), Verb: schemas.Verb(texts.Draw(t, "verb")), Weight: sums.Draw(t, "weight"), Time: micros(),
			})
		}
		reads(t, l)
	})
	none := liking{Strength: decay.None()}
	if got, err := decode[liking](encode[liking](&none)); err != nil || !math.IsInf(float64(got.Strength), -1) {
		t.Errorf("got %v, %v, want the sum of nothing", got.Strength, err)
	}
}
