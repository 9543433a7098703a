package insight

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/smartfeed/smartfeed/internal/testkit/eventually"
	"github.com/smartfeed/smartfeed/internal/testkit/must"
	"github.com/smartfeed/smartfeed/internal/testkit/topicstest"
	"github.com/smartfeed/smartfeed/schemas"
	"github.com/smartfeed/smartfeed/topics"
)

// wire is an embedded broker and registry with every topic.
type wire struct{ *topicstest.Cluster }

func newWire(t *testing.T) *wire {
	t.Helper()
	return &wire{topicstest.Start(t, 2)}
}

// act publishes saves on interest:a by the users with numbers in [from, to).
func (w *wire) act(t *testing.T, from, to int) {
	t.Helper()
	for i := from; i < to; i++ {
		a := did(schemas.UserID(fmt.Sprint("user:", i)), "save", 0, "interest:a")
		a.ID, a.Object = fmt.Sprint(i), "pin:1"
		value, err := w.Streams.ActionsEnriched.Encode(a)
		must.OK(t, err)
		w.Produce(topics.ActionsEnriched, string(a.Actor), value)
	}
}

// process is a sink with its store.
type process struct {
	*Sink
	store *Store
}

func (w *wire) process(t *testing.T, instance, dir string) *process {
	t.Helper()
	store := openTest(t, dir)
	sink, err := NewSink(DefaultConfig(), SinkDeps{
		Kafka: w.Kafka, Stream: w.Streams.ActionsEnriched, Instance: instance, Store: store, Now: func() time.Time { return now },
	})
	must.OK(t, err)
	return &process{sink, store}
}

// run runs the sink until stop is called, which also closes the store.
func (p *process) run(t *testing.T) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- p.Run(ctx) }()
	stop = func() {
		cancel()
		must.OK(t, errors.Join(<-ended, p.store.Close()))
	}
	return stop
}

// counted returns the counted actions of interest:a.
func (p *process) counted(t *testing.T) uint64 {
	t.Helper()
	popular, err := p.store.popular(t.Context(), 1)
	must.OK(t, err)
	if len(popular) == 0 {
		return 0
	}
	return popular[0].Actions
}

func (p *process) awaitCount(t *testing.T, want uint64) {
	t.Helper()
	eventually.True(t, fmt.Sprintf("%d actions are counted", want), func() bool { return p.counted(t) >= want })
	if got := p.counted(t); got != want {
		t.Errorf("%d actions are counted, want %d", got, want)
	}
}

// Each of two processes counts everything. One that lost its directory counts the records of the topic again.
func TestSink_EveryProcessHasAllInsights(t *testing.T) {
	w := newWire(t)
	w.act(t, 0, 20)
	dir := t.TempDir()
	first, second := w.process(t, "1", t.TempDir()), w.process(t, "2", dir)
	stopFirst, stopSecond := first.run(t), second.run(t)
	defer stopFirst()
	first.awaitCount(t, 20)
	second.awaitCount(t, 20)
	stopSecond()

	w.act(t, 20, 25)
	again := w.process(t, "2", dir)
	stop := again.run(t)
	again.awaitCount(t, 25)
	stop()
	must.OK(t, os.RemoveAll(dir))

	lost := w.process(t, "2", dir)
	stop = lost.run(t)
	defer stop()
	lost.awaitCount(t, 25)
	first.awaitCount(t, 25)
}

// Records that were written but not committed when the process ended do not count again.
func TestSink_CountsUncommittedActionsOnce(t *testing.T) {
	w := newWire(t)
	w.act(t, 0, 20)
	var refused atomic.Bool
	w.Broker().ControlKey(int16(kmsg.OffsetCommit), func(r kmsg.Request) (kmsg.Response, error, bool) {
		w.Broker().KeepControl()
		req := r.(*kmsg.OffsetCommitRequest)
		if commitsNothing(req) || !refused.CompareAndSwap(false, true) {
			return nil, nil, false
		}
		resp := req.ResponseKind().(*kmsg.OffsetCommitResponse)
		for _, topic := range req.Topics {
			answer := kmsg.OffsetCommitResponseTopic{Topic: topic.Topic, TopicID: topic.TopicID}
			for _, p := range topic.Partitions {
				answer.Partitions = append(answer.Partitions, kmsg.OffsetCommitResponseTopicPartition{Partition: p.Partition, ErrorCode: kerr.UnknownServerError.Code})
			}
			resp.Topics = append(resp.Topics, answer)
		}
		return resp, nil, true
	})
	p := w.process(t, "1", t.TempDir())
	if err := p.Run(t.Context()); !errors.Is(err, kerr.UnknownServerError) || !refused.Load() {
		t.Fatalf("Run = %v, want the rejected commit", err)
	}
	if p.counted(t) == 0 {
		t.Fatal("nothing was written before the commit")
	}
	stop := p.run(t)
	defer stop()
	w.act(t, 20, 22)
	p.awaitCount(t, 22)
}

// commitsNothing reports whether a commit comes from a consumer that has just started.
func commitsNothing(req *kmsg.OffsetCommitRequest) bool {
	for _, topic := range req.Topics {
		for _, p := range topic.Partitions {
			if p.Offset > 0 {
				return false
			}
		}
	}
	return true
}

// A recreated topic has other records at the same offsets. Nothing is counted, and the error says what to do.
func TestSink_RejectsRecreatedTopic(t *testing.T) {
	w := newWire(t)
	w.act(t, 0, 20)
	dir := t.TempDir()
	p := w.process(t, "1", dir)
	stop := p.run(t)
	p.awaitCount(t, 20)
	stop()
	_, err := w.Admin().DeleteTopics(t.Context(), topics.ActionsEnriched)
	must.OK(t, err)
	w.Apply()
	w.act(t, 100, 130)

	p = w.process(t, "1", dir)
	err = p.Run(t.Context())
	var changed *topics.ChangedTopicError
	if !errors.As(err, &changed) || !changed.Fatal() || !strings.Contains(err.Error(), dir+", "+remedy) {
		t.Errorf("Run = %v, want a ChangedTopicError with the directory to delete", err)
	}
	p.awaitCount(t, 20)
	must.OK(t, errors.Join(p.store.Close(), os.RemoveAll(dir)))
	p = w.process(t, "1", dir)
	defer p.run(t)()
	p.awaitCount(t, 30)
}
