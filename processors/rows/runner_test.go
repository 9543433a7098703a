package rows

import (
	"testing"

	"github.com/smartfeed/smartfeed/topics"
)

func TestCountersAndOutputsAreExact(t *testing.T) {
	w := newWire(t)
	r := newRunner(t, w, t.TempDir(), w.counter("t-in"))
	stop := start(t, r)
	const users, each = 50, 20
	w.send(t, "t-in", 0, users*each, func(i int) string { return user(i % users) })
	for u := range users {
		eventually(t, user(u)+" is counted", func() bool { return count(t, r, user(u)) == each })
	}
	if err := stop(); err != nil {
		t.Fatalf("Run: %v", err)
	}
	out := w.read(t, "t-out")
	if len(out) != users*each {
		t.Errorf("%d records emitted, want %d", len(out), users*each)
	}
	for _, rec := range out {
		if want := topics.Partition(string(rec.Key), testPartitions); rec.Partition != want {
			t.Fatalf("%s in partition %d, want %d", rec.Key, rec.Partition, want)
		}
	}
}
