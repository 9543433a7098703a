package schemas

import (
	"slices"
	"testing"

	"github.com/smartfeed/smartfeed/internal/testkit/expect"
)

func TestFeedEntries_AllNumbersItems(t *testing.T) {
	items := []ServedItem{{Pin: "pin:1", Source: Following, RankScore: 1}, {Pin: "pin:2", Source: Related}, {Pin: "pin:3"}}
	f := FeedEntries{User: "user:1", First: 7, Time: 9, Items: items}
	var want []FeedEntry
	for n, item := range items {
		want = append(want, FeedEntry{User: "user:1", Position: 7 + int64(n), Time: 9, ServedItem: item})
	}
	expect.NoDiff(t, slices.Collect(f.All()), want, "entries")
	expect.Equal(t, f.Last(), 9, "last position")
	for first := range f.All() {
		expect.Equal(t, first.Position, 7, "position of the first")
		break
	}
}
