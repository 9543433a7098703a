package stored

import (
	"bytes"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/smartfeed/smartfeed/internal/testkit/must"
)

func TestGreatest_InAnyOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		values := rapid.SliceOfN(rapid.SliceOf(rapid.Byte()), 1, 6).Draw(t, "values")
		want := slices.MaxFunc(values, bytes.Compare)
		m, err := Greatest("test").Merge(nil, values[0])
		for _, v := range values[1:] {
			if err == nil && rapid.Bool().Draw(t, "newer") {
				err = m.MergeNewer(v)
			} else if err == nil {
				err = m.MergeOlder(v)
			}
		}
		must.OK(t, err)
		if got, _, err := m.Finish(true); !bytes.Equal(got, want) || err != nil {
			t.Fatalf("got %x, %v, want %x", got, err, want)
		}
	})
}
