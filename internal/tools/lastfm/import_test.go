package lastfm

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/smartfeed/smartfeed/internal/testkit/must"
	"github.com/smartfeed/smartfeed/schemas"
	"github.com/smartfeed/smartfeed/topics"
)

// log is a Publisher that records the order of calls and acknowledges from another goroutine.
type log struct {
	mu      sync.Mutex
	flying  sync.WaitGroup
	entries []string // streams of events, "flush", "wait"
	refuse  func(schemas.Line) error
}

func (l *log) note(entry string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if n := len(l.entries); n == 0 || l.entries[n-1] != entry {
		l.entries = append(l.entries, entry)
	}
}

func (l *log) Send(_ context.Context, line schemas.Line, done func(error)) {
	l.note(line.Stream)
	l.flying.Go(func() {
		var err error
		if l.refuse != nil {
			err = l.refuse(line)
		}
		done(err)
	})
}

func (l *log) Flush(context.Context) error {
	l.flying.Wait()
	l.note("flush")
	return nil
}

func (l *log) importer(wait bool) *Importer {
	return &Importer{
		Publisher:     l,
		WaitProcessed: func(context.Context, func(string)) error { l.note("wait"); return nil },
		Start:         topics.Setup{}.Start,
		Wait:          wait,
	}
}

func TestImport_WaitsBetweenPhases(t *testing.T) {
	upToActions := []string{"users", "follows", "flush", "wait", "pins", "flush", "wait", "actions", "flush"}
	tests := []struct {
		name string
		wait bool
		want []string
	}{
		{"waiting", true, append(slices.Clone(upToActions), "wait")},
		{"without waiting at the end", false, upToActions},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			var l log
			phases, err := l.importer(test.wait).Import(t.Context(), tiny(t), 0)
			must.OK(t, err)
			if !slices.Equal(l.entries, test.want) {
				t.Errorf("happened %v, want %v", l.entries, test.want)
			}
			var events []int
			for _, p := range phases {
				events = append(events, p.Events)
			}
			if want := []int{14, 5, 4}; !slices.Equal(events, want) {
				t.Errorf("events of the phases %v, want %v", events, want)
			}
			if got := phases[2].Processed > 0; got != test.wait {
				t.Errorf("processed after %f s", phases[2].Processed)
			}
		})
	}
}

func TestImport_StopsAtRejectedEvent(t *testing.T) {
	refused := errors.New("record too large")
	l := log{refuse: func(line schemas.Line) error {
		if line.Stream == schemas.StreamPins {
			return refused
		}
		return nil
	}}
	phases, err := l.importer(true).Import(t.Context(), tiny(t), 0)
	if !errors.Is(err, refused) || !strings.Contains(err.Error(), "import pins: publish: ") {
		t.Errorf("got error %v, want that of the pins", err)
	}
	if len(phases) != 1 || slices.Contains(l.entries, "actions") {
		t.Errorf("%d completed phases, calls %v", len(phases), l.entries)
	}
}

func TestImport_StopsAtFailedWaitOrCanceledContext(t *testing.T) {
	var failed, ended log
	i := failed.importer(true)
	late := errors.New("still behind")
	i.WaitProcessed = func(context.Context, func(string)) error { return late }
	if _, err := i.Import(t.Context(), tiny(t), 0); !errors.Is(err, late) || slices.Contains(failed.entries, "pins") {
		t.Errorf("failed wait: error %v, happened %v", err, failed.entries)
	}
	ctx, stop := context.WithCancel(t.Context())
	stop()
	if _, err := ended.importer(true).Import(ctx, tiny(t), 0); !errors.Is(err, context.Canceled) || slices.Contains(ended.entries, "pins") {
		t.Errorf("canceled context: error %v, calls %v", err, ended.entries)
	}
}
