package topics

import (
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"
)

// Only a record without content is a mark. A record that a producer published with the header is processed.
func TestIsCutOver_RecordWithContentIsNone(t *testing.T) {
	mark := []kgo.RecordHeader{{Key: CutOverHeader, Value: CutOverMark{Group: Pools, Number: 2, Token: "t"}.Value()}}
	for name, c := range map[string]struct {
		record kgo.Record
		want   bool
	}{
		"mark":         {kgo.Record{Headers: mark}, true},
		"with a key":   {kgo.Record{Headers: mark, Key: []byte("user:1")}, false},
		"with a value": {kgo.Record{Headers: mark, Value: []byte{}}, false},
		"no header":    {kgo.Record{}, false},
	} {
		if got := IsCutOver(&c.record); got != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}

func TestParseCutOver_ReadsWhatValueWrites(t *testing.T) {
	for _, want := range []CutOverMark{{Pools, 2, "secret"}, {Pools, 3, ""}} {
		if got, ok := ParseCutOver(want.Value()); !ok || got != want {
			t.Errorf("got %+v, %v, want %+v", got, ok, want)
		}
	}
	for _, bad := range []string{"", "pools", "pools/", "pools/x/secret", "2"} {
		if got, ok := ParseCutOver([]byte(bad)); ok {
			t.Errorf("%q was read as %+v", bad, got)
		}
	}
}
