package packed

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/smartfeed/smartfeed/internal/testkit/expect"
	"github.com/smartfeed/smartfeed/internal/testkit/must"
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
		expect.NoDiffBut(t, cmp.Options{cmpopts.EquateEmpty(), cmpopts.EquateNaNs()}, must.Get(Decode[visit](b))(t), want, "decoded")
		for n := range b {
			expect.Is(t, expect.ErrorOf(Decode[visit](b[:n])), ErrTorn, "%d of %d bytes", n, len(b))
		}
		expect.Is(t, expect.ErrorOf(Decode[visit](append(b, 0))), ErrTorn, "one byte more")
		b[0] = 4
		version := must.As[*VersionError](t, expect.ErrorOf(Decode[visit](b)))
		expect.Equal(t, *version, VersionError{Got: 4, Want: 3}, "version 4")
	})
}

func TestDecode_RejectsUnknownFlags(t *testing.T) {
	b := Encode(&visit{})
	b[2] = 1 << 2 // after the version and an empty id
	expect.Is(t, expect.ErrorOf(Decode[visit](b)), ErrTorn, "decode %x", b)
}
