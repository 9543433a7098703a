package topics_test

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/smartfeed/smartfeed/internal/testkit/eventually"
	"github.com/smartfeed/smartfeed/internal/testkit/expect"
	"github.com/smartfeed/smartfeed/internal/testkit/must"
	"github.com/smartfeed/smartfeed/internal/testkit/topicstest"
	"github.com/smartfeed/smartfeed/topics"
)

// A reader that has processed everything has no lag, and a reader that has never read has a lag of all records. Topics
// without committing readers are counted, too.
func TestFlows_CountRecordsAndLag(t *testing.T) {
	w := newWire(t)
	profile := must.Get(topics.ProfileOf(t.Context(), w.Kafka))(t)
	log := must.Get(topics.NewLog(w.Kafka))(t)
	defer log.Close()
	flows := func() map[string]topics.Flow {
		t.Helper()
		list, err := log.Flows(t.Context(), topics.Catalogue(profile), append(pipelineReaders, topics.Reader{Group: "cards", Topics: []string{topics.PinCards}}))
		must.OK(t, err)
		by := map[string]topics.Flow{}
		for _, f := range list {
			by[f.Topic] = f
		}
		return by
	}
	for _, key := range []string{"a", "b", "c", "d", "e"} {
		w.Send(&kgo.Record{Topic: topics.Pins, Key: []byte(key)}, &kgo.Record{Topic: topics.Publications, Key: []byte(key)})
	}
	w.Send(&kgo.Record{Topic: topics.PinCards, Key: []byte("a")}) // uses one offset, as a marker does
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	n := 0
	err := topics.Consume(ctx, topics.ConsumerConfig{Kafka: w.Kafka, Group: "mill", Topics: []string{topics.Pins}},
		func(_ context.Context, rs []*kgo.Record) error {
			if n += len(rs); n == 5 {
				stop() // Consume commits before it leaves
			}
			return nil
		})
	must.OK(t, err)
	got := flows()
	want := topics.Flow{
		Topic: topics.Pins, Key: "pin", Writers: []string{topics.Producers, topics.Fanout}, Records: 5,
		Readers: []topics.Lag{{Group: "mill", Topic: topics.Pins}},
	}
	expect.NoDiff(t, got[topics.Pins], want, "flow")
	if f := got[topics.Publications]; f.Records != 5 || len(f.Readers) != 1 || f.Readers[0].Records < 2 || f.Readers[0].Records > 5 {
		t.Errorf("never read: %+v, want a lag of five records", f)
	}
	if f, ok := got[topics.HotPins]; !ok || !f.GlobalTable || f.Readers == nil {
		t.Errorf("global table: %+v", f)
	}
	cards := got[topics.PinCards]
	expect.Equal(t, [2]int64{cards.Records, cards.Readers[0].Records}, [2]int64{1, 0}, "records and lag, with a marker at the end")
	for _, own := range []string{topics.TableOf(topics.Pools), topics.TicksOf(topics.Pools)} {
		_, ok := got[own]
		expect.False(t, ok, "%s, which is private to a group, is listed", own)
	}
}

// For a reader with one group per process, Flows reports the largest lag under the reader's name.
func TestFlows_ReportSlowestProcess(t *testing.T) {
	w := newWire(t)
	l := w.Log()
	w.produce(topics.Edges, numbered("a", 10)...)
	waiting := func() int64 {
		t.Helper()
		reader := topics.Reader{Group: "shelves", Topics: []string{topics.Edges}, Each: true}
		list := must.Get(l.Flows(t.Context(), topics.Catalogue(topics.Profile{Embedded: true}), []topics.Reader{reader}))(t)
		i := slices.IndexFunc(list, func(f topics.Flow) bool { return f.Topic == topics.Edges })
		if len(list[i].Readers) != 1 || list[i].Readers[0].Group != "shelves" {
			t.Fatalf("readers of edges: %+v, want shelves", list[i].Readers)
		}
		return list[i].Readers[0].Records
	}
	all := waiting() // a single record in a partition counts as a marker
	expect.AtLeast(t, all, 5, "lag without processes: all records")
	w.follow(t, newFakeStore(), "1")
	eventually.True(t, "nothing waits", func() bool { return waiting() == 0 })
	slow, errBroken := newFakeStore(), errors.New("broken")
	held, hold := make(chan struct{}), make(chan struct{})
	topicstest.Run(t, func(ctx context.Context) error {
		return topics.Follow(ctx, w.following(slow, "2"), func(context.Context, []*kgo.Record, topics.Checkpoint) error {
			close(held)
			<-hold
			return errBroken
		})
	})
	defer close(hold)
	<-held
	expect.Equal(t, waiting(), all, "with a stopped process the lag")
}
