package packed

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math"
	"testing"

	"pgregory.net/rapid"

	"github.com/smartfeed/smartfeed/internal/testkit/expect"
	"github.com/smartfeed/smartfeed/internal/testkit/must"
)

type row struct {
	Name  string
	Set   bool
	Sum   float64
	Count int64
	List  []string
}

func (x *row) encode() []byte {
	b := AppendFloat(AppendFlag(AppendText(nil, x.Name), x.Set), x.Sum)
	return AppendList(binary.AppendVarint(b, x.Count), x.List, AppendText)
}

func decode(r *Reader) (x row, err error) {
	x = row{Text[string](r), r.Flag(), r.Float(), r.Varint(), List(r, Text[string])}
	return x, r.End()
}

func TestReader_RejectsTruncatedRows(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := row{
			rapid.String().Draw(t, "name"), rapid.Bool().Draw(t, "set"), rapid.Float64().Draw(t, "sum"),
			rapid.Int64().Draw(t, "count"), nil,
		}
		for n := range rapid.IntRange(0, 3).Draw(t, "items") {
			want.List = append(want.List, rapid.String().Draw(t, string(rune('a'+n))))
		}
		b := want.encode()
		for _, r := range []*Reader{NewReader(b), NewReader(b).ShareTexts()} {
			expect.NoDiff(t, must.Get(decode(r))(t), want, "decoded")
		}
		cut := b[:rapid.IntRange(0, len(b)-1).Draw(t, "cut")]
		for _, torn := range [][]byte{cut, append(b, 0)} {
			expect.Is(t, expect.ErrorOf(decode(NewReader(torn).ShareTexts())), ErrTorn, "%x of %x", torn, b)
		}
	})
}

func TestReader_RejectsCorruptRows(t *testing.T) {
	list := func(r *Reader) { List(r, Text[string]) }
	for name, test := range map[string]struct {
		bytes []byte
		read  func(*Reader)
	}{
		"a flag of 2":                     {[]byte{2}, func(r *Reader) { r.Flag() }},
		"an incomplete number":            {[]byte{0x80}, func(r *Reader) { r.Varint() }},
		"a number of more than 64 bits":   {[]byte{255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 1}, func(r *Reader) { r.Varint() }},
		"more items than there are bytes": {append(binary.AppendUvarint(nil, 1<<60), "abc"...), list},
		"a text beyond the end":           {append(binary.AppendUvarint(nil, 1<<63), "abc"...), func(r *Reader) { Text[string](r) }},
	} {
		t.Run(name, func(t *testing.T) {
			r := NewReader(test.bytes)
			test.read(r)
			expect.Is(t, r.End(), ErrTorn, "End")
			expect.True(t, r.Byte() == 0 && !r.Flag() && r.Float() == 0 && r.Varint() == 0 && Text[string](r) == "", "no value after an error")
		})
	}
}

func TestNewVersionReader(t *testing.T) {
	row := AppendText([]byte{2}, "a")
	r := NewVersionReader(row, 2)
	if got := Text[string](r); got != "a" || r.End() != nil {
		t.Errorf("got %q, %v, want a", got, r.End())
	}
	r = NewVersionReader(row, 3)
	expect.Equal(t, Text[string](r), "", "text of another version")
	expect.Equal(t, *must.As[*VersionError](t, r.End()), VersionError{Got: 2, Want: 3}, "another version")
	expect.Is(t, NewVersionReader(nil, 0).End(), ErrTorn, "an empty row")
}

func TestAppendOrdered_SortsAscending(t *testing.T) {
	numbers := []int64{math.MinInt64, -256, -1, 0, 1, 255, 256, math.MaxInt64}
	for i, n := range numbers {
		expect.Equal(t, Ordered[int64](NewReader(AppendOrdered(nil, n))), n, "decoded")
		if i > 0 && bytes.Compare(AppendOrdered(nil, numbers[i-1]), AppendOrdered(nil, n)) >= 0 {
			t.Errorf("%d is not below %d", numbers[i-1], n)
		}
	}
}

func TestPart(t *testing.T) {
	first := func(s string) (string, string, error) {
		if s == "" {
			return "", "", errors.New("nothing left")
		}
		return s[:1], s[1:], nil
	}
	r := NewReader([]byte("abc"))
	if got := []string{Part(r, first), Part(r, first)}; got[0] != "a" || got[1] != "b" || r.Byte() != 'c' || r.End() != nil {
		t.Errorf("got %q, %v, want a and b, then c", got, r.End())
	}
	if got := Part(r, first); got != "" || !errors.Is(r.End(), ErrTorn) {
		t.Errorf("at the end: got %q, %v, want %v", got, r.End(), ErrTorn)
	}
}
