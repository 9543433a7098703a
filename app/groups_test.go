package app

import (
	"slices"
	"testing"

	"github.com/smartfeed/smartfeed/internal/testkit/expect"
	"github.com/smartfeed/smartfeed/topics"
)

// A group of the catalogue without an entry would have no constructor, and an entry without a group would have no ACLs.
func TestGroups_MatchCatalogue(t *testing.T) {
	var names []string
	for _, g := range groups() {
		names = append(names, g.name)
		expect.True(t, g.define != nil, "%s has a constructor", g.name)
		expect.False(t, g.read != nil && g.owners == "", "%s serves requests, but peers cannot find the owners of its partitions", g.name)
		if g.owners != "" && !slices.Contains(topics.ReadBy(g.name), g.owners) {
			t.Errorf("%s does not read %s, so its members do not own the partitions", g.name, g.owners)
		}
	}
	expect.NoDiff(t, names, topics.RowGroups(), "names")
}

func TestOpen_RejectsInvalidGroups(t *testing.T) {
	cfg := DefaultConfig()
	cfg.Dir = t.TempDir()
	for want, names := range map[string][]string{
		`unknown group "pool": want one of objects`: {"pool"},
		"group pools is listed twice":               {topics.Pools, topics.Pools},
	} {
		expect.Error(t, expect.ErrorOf(Open(t.Context(), Options{Config: cfg, Role: Process, Groups: names})), want, "%v", names)
	}
}
