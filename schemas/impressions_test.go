package schemas

import (
	"slices"
	"testing"
)

func TestImpressionsHoldWhatIsAdded(t *testing.T) {
	if got := slices.Collect(new(Impressions).All()); len(got) != 0 {
		t.Errorf("without any: got %v", got)
	}
	want := []ShownPin{{"pin:1", Following}, {"pin:2", Related}, {"pin:1", Following}}
	for n := range want {
		var i Impressions
		for _, shown := range want[:n+1] {
			i.Add(shown)
		}
		if got := slices.Collect(i.All()); !slices.Equal(got, want[:n+1]) {
			t.Errorf("of %d: got %v, want %v", n+1, got, want[:n+1])
		}
		for first := range i.All() {
			if first != want[0] {
				t.Errorf("the first is %v, want %v", first, want[0])
			}
			break
		}
	}
}
