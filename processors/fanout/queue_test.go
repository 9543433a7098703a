package fanout

import (
	"context"
	"strings"
	"testing"

	"github.com/smartfeed/smartfeed/processors/proctest"
	"github.com/smartfeed/smartfeed/processors/rows"
	"github.com/smartfeed/smartfeed/schemas"
	"github.com/smartfeed/smartfeed/topics"
)

// damaged stands for the group: a publication leaves a walk that waits for its turn, in a row that is none.
func damaged(s *topics.Streams) rows.Group {
	write := func(tx *rows.Tx, _ *schemas.Publication) error {
		if err := tx.Own().Put(queueRow(queueNew, 1), []byte("no step")); err != nil {
			return err
		}
		return tx.Own().Put([]byte{rowState}, appendState(nil, state{busy: true, queued: 1}))
	}
	return rows.Group{Name: topics.Fanout, Inputs: []rows.Input{rows.Keyed(s.Publications, write)}}
}

// The last step of a walk meets a damaged row in the queue. The step is in order, and no dead letter.
func TestDamagedQueueStopsThePartition(t *testing.T) {
	t.Parallel()
	w := proctest.New(t)
	const followee = "user:1"
	m := w.Start("a", damaged(w.Streams))
	proctest.Publish(w, w.Streams.Publications, followee, &schemas.Publication{Followee: followee})
	w.WaitIdle()
	m.Stop()

	cfg := rows.DefaultConfig()
	cfg.Dir, cfg.MinDiskBytes = t.TempDir(), 0
	r, err := rows.New(cfg, rows.Env{Kafka: w.Kafka, Streams: w.Streams}, Group(DefaultConfig(), w.Kafka.Partitions, w.Streams, nobody{}))
	if err != nil {
		t.Fatal(err)
	}
	last := schemas.FanoutStep{Kind: schemas.WalkStep, Followee: followee, Turn: true}
	last.Pin = "pin:1"
	proctest.Publish(w, w.Streams.FanoutLoop, followee, &last)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- r.Run(ctx) }()
	w.Eventually("the group fails, or the step is a dead letter", func() bool {
		return len(ended) > 0 || len(w.Records(topics.DeadLetters)) > 0
	})
	stop()
	if err, want := <-ended, `read queue of "user:1": row "q`; err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("the group ended with %v, want it to fail with %s", err, want)
	}
	for _, l := range proctest.Drain(w, w.Streams.DeadLetters) {
		t.Errorf("dead letter: %s", l.Value.Reason)
	}
}
