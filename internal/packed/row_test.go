package packed

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"
)

type visit struct {
	ID         string
	Seen, Last bool
	Score      float64
	Weight     float32
	Count      int
	Time       int64
	Body       []byte
	Tags       []string
}

func (v *visit) Pack(p *Packer) {
	p.Version(3)
	String(p, &v.ID)
	p.Flags(&v.Seen, &v.Last)
	Float(p, &v.Score)
	Float32(p, &v.Weight)
	Int(p, &v.Count)
	Int(p, &v.Time)
	p.Bytes(&v.Body)
	Items(p, &v.Tags, String[string])
}

func TestDecode_ReturnsEncodedRowOrError(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := rapid.Make[visit]().Draw(t, "row")
		b := Encode(&want)
		if got, err := Decode[visit](b); err != nil || !cmp.Equal(got, want, cmpopts.EquateEmpty(), cmpopts.EquateNaNs()) {
			t.Fatalf("got %+v, %v, want %+v", got, err, want)
		}
		for n := range b {
			if got, err := Decode[visit](b[:n]); !errors.Is(err, ErrTorn) {
				t.Fatalf("%d of %d bytes: got %+v, %v, want ErrTorn", n, len(b), got, err)
			}
		}
		if got, err := Decode[visit](append(b, 0)); !errors.Is(err, ErrTorn) {
			t.Errorf("one byte more: got %+v, %v, want ErrTorn", got, err)
		}
		b[0] = 4
		var version *VersionError
		if _, err := Decode[visit](b); !errors.As(err, &version) || *version != (VersionError{Got: 4, Want: 3}) {
			t.Errorf("version 4: got %v, want a *VersionError", err)
		}
	})
}

func TestDecode_RejectsUnknownFlags(t *testing.T) {
	b := Encode(&visit{})
	b[2] = 1 << 2 // after the version and an empty id
	if got, err := Decode[visit](b); !errors.Is(err, ErrTorn) {
		t.Errorf("got %+v, %v, want ErrTorn", got, err)
	}
}
