package featurelog

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/twmb/franz-go/pkg/kgo"
	"go.uber.org/goleak"

	"github.com/smartfeed/smartfeed/internal/testkit/child"
	"github.com/smartfeed/smartfeed/internal/testkit/eventually"
	"github.com/smartfeed/smartfeed/internal/testkit/expect"
	"github.com/smartfeed/smartfeed/internal/testkit/must"
	"github.com/smartfeed/smartfeed/internal/testkit/topicstest"
	"github.com/smartfeed/smartfeed/schemas"
	"github.com/smartfeed/smartfeed/topics"
)

func TestMain(m *testing.M) {
	child.Run(map[string]child.Role{"writer": fileUntilKilled})
	goleak.VerifyTestMain(m)
}

const partitions = 2

// wire is an embedded broker and registry with every topic.
type wire struct {
	*topicstest.Cluster
	metrics *Metrics
}

func newWire(t *testing.T) *wire {
	t.Helper()
	metrics := must.Get(NewMetrics(prometheus.NewRegistry()))(t)
	return &wire{topicstest.Start(t, partitions), metrics}
}

// deadLetters counts dead letters, and fails the given number of times.
type deadLetters struct{ fail, sent atomic.Int64 }

var errBroken = errors.New("broken")

func (l *deadLetters) SendDeadLetter(context.Context, string, *kgo.Record, string) error {
	if l.fail.Add(-1) >= 0 {
		return errBroken
	}
	l.sent.Add(1)
	return nil
}

func (w *wire) files(t *testing.T, dir string, l *deadLetters) *Files {
	t.Helper()
	cfg := DefaultConfig()
	cfg.Dir = dir
	f := must.Get(NewFiles(cfg, FilesDeps{Kafka: w.Kafka, Stream: w.Streams.FeatureLog, DeadLetters: l, Metrics: w.metrics}))(t)
	f.cfg.MaxFileAge = 20 * time.Millisecond // below its range
	return f
}

// midnight separates two dates.
var midnight = time.Date(2026, 11, 21, 0, 0, 0, 0, time.UTC)

// produce logs n entities, some before midnight and some after.
func (w *wire) produce(t *testing.T, from, n int) {
	t.Helper()
	for i := range n {
		rec := &schemas.LoggedFeatures{Entity: fmt.Sprint("user:", from+i), Share: 1, Logged: schemas.MicrosOf(midnight) + schemas.Micros((from+i-50)*1e6)}
		value := must.Get(w.Streams.FeatureLog.Encode(rec))(t)
		w.Produce(topics.FeatureLog, rec.Entity, value)
	}
}

// run runs the sink until everything is committed or it fails, and returns its error.
func (w *wire) run(t *testing.T, f *Files) error {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	done := make(chan error, 1)
	go func() { done <- f.Run(ctx) }()
	eventually.True(t, "everything is committed", func() bool {
		return len(done) > 0 || w.Lag(topics.FeatureFiles, topics.FeatureLog) == 0
	})
	cancel()
	return <-done
}

// forget deletes the committed offsets.
func (w *wire) forget(t *testing.T) {
	t.Helper()
	must.Get(w.Admin().DeleteGroups(t.Context(), topics.FeatureFiles))(t)
}

// entities returns how often each entity is in the files.
func entities(t *testing.T, dir string) map[string]int {
	t.Helper()
	got := map[string]int{}
	must.OK(t, ReadFiles(dir, func(rec *schemas.FiledFeatures) error { got[rec.Entity]++; return nil }))
	return got
}

// filed is entities after the sink has stopped. It checks that there are no other files, and that the contents match the names.
func filed(t *testing.T, dir string) map[string]int {
	t.Helper()
	paths := must.Get(filepath.Glob(filepath.Join(dir, "date=*", "*")))(t)
	for _, path := range paths {
		part, ok := partsOf(dir).Parse(path)
		if !ok {
			t.Errorf("%s remains", path)
			continue
		}
		var offsets []int64
		must.Get(readFile(path, func(rec *schemas.FiledFeatures) error {
			offsets = append(offsets, rec.Offset)
			if rec.Partition != part.Partition || !strings.Contains(path, "date="+rec.Logged.Time().Format(time.DateOnly)) {
				t.Errorf("%s holds a record of partition %d, logged at %v", path, rec.Partition, rec.Logged.Time())
			}
			return nil
		}))(t)
		if offsets[0] != part.First || offsets[len(offsets)-1] != part.Last || !slices.IsSorted(offsets) {
			t.Errorf("%s holds the offsets %v", path, offsets)
		}
	}
	return entities(t, dir)
}

func once(n int) map[string]int {
	want := map[string]int{}
	for i := range n {
		want[fmt.Sprint("user:", i)] = 1
	}
	return want
}

func TestFiles_WriteEachRecordOnce(t *testing.T) {
	w := newWire(t)
	dir := t.TempDir()
	w.produce(t, 0, 100)
	w.Produce(topics.FeatureLog, "user:bad", []byte("?"))
	l := &deadLetters{}
	l.fail.Store(1)
	f := w.files(t, dir, l)
	expect.Is(t, w.run(t, f), errBroken, "error")
	for round := range 3 {
		must.OK(t, w.run(t, f))
		expect.NoDiff(t, filed(t, dir), once(100+10*round), "round %d: entities in files", round)
		w.produce(t, 100+10*round, 10)
	}
	expect.Equal(t, l.sent.Load(), 1, "dead letters")
	// Another process, and a group without committed offsets.
	w.forget(t)
	must.OK(t, w.run(t, w.files(t, dir, l)))
	expect.NoDiff(t, filed(t, dir), once(130), "from the start")
}

// The offsets of a recreated topic are in the files as written. The sink skips no record because of that: it files all
// of them after the files have been moved.
func TestFiles_RejectRecreatedTopic(t *testing.T) {
	w := newWire(t)
	dir := t.TempDir()
	w.produce(t, 0, 40)
	must.OK(t, w.run(t, w.files(t, dir, &deadLetters{})))
	must.Get(w.Admin().DeleteTopics(t.Context(), topics.FeatureLog))(t)
	w.Apply()
	w.produce(t, 0, 90) // more than before, so that the old offsets exist in the new topic
	err := w.run(t, w.files(t, dir, &deadLetters{}))
	expect.True(t, must.As[*topics.ChangedTopicError](t, err).Fatal(), "the error is fatal")
	expect.Error(t, err, "move the content of "+dir, "run")
	expect.NoDiff(t, filed(t, dir), once(40), "the files have changed")
	for _, day := range must.Get(filepath.Glob(filepath.Join(dir, "date=*")))(t) {
		must.OK(t, os.Rename(day, filepath.Join(t.TempDir(), filepath.Base(day))))
	}
	for range 2 {
		must.OK(t, w.run(t, w.files(t, dir, &deadLetters{})))
		expect.NoDiff(t, filed(t, dir), once(90), "files of the second topic")
	}
}

func TestFiles_WriteBySizeAndAge(t *testing.T) {
	w := newWire(t)
	for name, change := range map[string]func(*Config){
		"size": func(c *Config) { c.MaxFileBytes, c.MaxFileAge = 1, time.Hour },
		"age":  func(c *Config) { c.MaxFileBytes = 1 << 20 },
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			f := w.files(t, dir, &deadLetters{})
			change(&f.cfg)
			stop := topicstest.Run(t, f.Run)
			w.produce(t, 0, 4)
			eventually.True(t, "files are written while the sink runs", func() bool { return len(entities(t, dir)) == 4 })
			must.OK(t, stop())
			w.forget(t)
		})
	}
}
