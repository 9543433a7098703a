package topics

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/smartfeed/smartfeed/topics/generation"
)

func TestFormer_LeavesActiveAndBuildingGenerations(t *testing.T) {
	w := GenerationWatch{known: map[string]generation.Record{Pools: {Group: Pools, Active: 3, Building: 5}}}
	names := []string{
		"pools-table", "pools-ticks", "pools.2-table", "pools.3-table", "pools.4-table", "pools.5-table", "pools.10-table",
		"pools.1-table", "pools.2", "objects-table", "another-table",
	}
	var got []string
	for _, f := range w.Former(names) {
		got = append(got, f.Topics...)
	}
	want := []string{
		"pools-table", "pools-ticks", "pools.2-table", "pools.2-ticks", "pools.4-table", "pools.4-ticks", "pools.10-table", "pools.10-ticks",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("former generations (-want +got):\n%s", diff)
	}
}
