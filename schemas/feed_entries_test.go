package schemas

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestFeedEntriesFollowOneAnother(t *testing.T) {
	items := []ServedItem{{Pin: "pin:1", Source: Following, Score: 1}, {Pin: "pin:2", Source: Related}, {Pin: "pin:3"}}
	var want []FeedEntry
	for n, item := range items {
		want = append(want, FeedEntry{User: "user:1", Position: 7 + int64(n), Time: 9, ServedItem: item})
		f := FeedEntriesOf("user:1", 9, 7, items[:n+1])
		if diff := cmp.Diff(want, slices.Collect(f.All())); diff != "" || f.Last() != 7+int64(n) {
			t.Errorf("of %d: last %d; entries (-want +got):\n%s", n+1, f.Last(), diff)
		}
		for first := range f.All() {
			if first.Position != 7 {
				t.Errorf("the first is at %d, want 7", first.Position)
			}
			break
		}
	}
}
