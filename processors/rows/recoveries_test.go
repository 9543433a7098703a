package rows

import (
	"fmt"
	"testing"
	"time"

	"github.com/smartfeed/smartfeed/internal/testkit/eventually"
	"github.com/smartfeed/smartfeed/internal/testkit/expect"
	"github.com/smartfeed/smartfeed/internal/testkit/must"
	"github.com/smartfeed/smartfeed/topics"
)

// recordedBar records its calls.
type recordedBar struct{ said *[]string }

func (b recordedBar) Add(n int) { *b.said = append(*b.said, fmt.Sprint("+", n)) }
func (recordedBar) Say(string)  {}
func (b recordedBar) Done() time.Duration {
	*b.said = append(*b.said, "done")
	return 0
}

func TestRecoveries_ShareOneBar(t *testing.T) {
	t.Parallel()
	at := time.Unix(0, 0)
	var said []string
	s := must.Get(NewShared(DefaultConfig()))(t)
	defer s.Close()
	r := &s.recoveries
	r.now = func() time.Time { return at }
	a, b := &store{}, &store{}
	r.remaining(a, 100) // before ShowProgress
	s.ShowProgress(func(what string, total int) topics.Progress {
		said = append(said, fmt.Sprint(what, ": ", total))
		return recordedBar{&said}
	})
	r.remaining(a, 100) // a short recovery
	r.remaining(a, 0)
	r.remaining(a, 100)
	r.remaining(b, 50)
	at = at.Add(barAfter)
	r.remaining(a, 60)
	r.remaining(b, 20)
	r.remaining(&store{}, 10) // added later, and not part of this bar
	r.remaining(a, 0)
	want := []string{"recovering 2 partitions: 110", "+30", "+50"}
	expect.NoDiff(t, said, want, "calls")
	for s := range r.open {
		r.remaining(s, 0)
	}
	expect.Equal(t, said[len(said)-1], "done", "last of the calls %q", said)
	expect.Equal(t, r.bar, nil, "bar")
}

// The progress of a recovery is shown from its first record to its last.
func TestRecoveries_ShowStores(t *testing.T) {
	w := parallelWire(t)
	w.countFirst(t, t.TempDir(), 40)
	r := newRunner(t, w, t.TempDir(), w.counter("t-in"))
	bars, hours := &r.shared.recoveries, 0
	bars.now = func() time.Time { // time advances an hour per call, so all recoveries take long
		hours++
		return time.Unix(0, 0).Add(time.Duration(hours) * time.Hour)
	}
	var said []string
	r.shared.ShowProgress(func(string, int) topics.Progress { return recordedBar{&said} })
	start(t, r)
	eventually.True(t, "it is ready", func() bool { return r.Status().Ready })
	bars.mu.Lock()
	defer bars.mu.Unlock()
	if len(said) < 2 || said[len(said)-1] != "done" || len(bars.open) != 0 {
		t.Errorf("calls %q, %d recoveries open; want a bar that moved and is done", said, len(bars.open))
	}
}
