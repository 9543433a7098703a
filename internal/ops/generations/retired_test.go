package generations

import (
	"testing"

	"github.com/smartfeed/smartfeed/internal/testkit/expect"
	"github.com/smartfeed/smartfeed/topics/generation"
)

func TestRetiredOf_OmitsActiveAndBuildingGenerations(t *testing.T) {
	names := []string{
		"pools.10-table", "pools-table", "pools-ticks", "pools.2-table", "pools.3-table", "pools.4-table", "pools.5-table", "pools.1-table",
		"pools.2", "objects-table", "another-table",
	}
	var got []string
	for _, f := range retiredOf(generation.Record{Group: "pools", Active: 3, Building: 5}, names) {
		got = append(got, f.Topics...)
	}
	want := []string{
		"pools-table", "pools-ticks", "pools.2-table", "pools.2-ticks", "pools.4-table", "pools.4-ticks", "pools.10-table", "pools.10-ticks",
	}
	expect.NoDiff(t, got, want, "retired generations")
}
