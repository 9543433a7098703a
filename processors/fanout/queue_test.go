package fanout

import (
	"bytes"
	"context"
	"slices"
	"testing"

	"github.com/smartfeed/smartfeed/internal/testkit/deletedtest"
	"github.com/smartfeed/smartfeed/internal/testkit/expect"
	"github.com/smartfeed/smartfeed/internal/testkit/must"
	"github.com/smartfeed/smartfeed/internal/testkit/proctest"
	"github.com/smartfeed/smartfeed/processors/rows"
	"github.com/smartfeed/smartfeed/schemas"
	"github.com/smartfeed/smartfeed/topics"
)

// damaged replaces the group: a publication writes an invalid row to the queue.
func damaged(s *topics.Streams) rows.Group {
	write := func(tx *rows.Tx, p *schemas.Publication) error {
		tx.Own().Put(queueRow(p.Followee, &schemas.DeliveredPin{}), []byte("no step"))
		rows.PutValue(tx.Own(), []byte{rowState}, &state{walking: true})
		return nil
	}
	return rows.Group{Name: topics.Fanout, Inputs: []rows.Input{rows.Keyed(s.Publications, write)}}
}

// The last step of a walk reads a damaged row of the queue. The group fails; the step, which is valid, does not become a
// dead letter.
func TestQueue_DamagedRowStopsPartition(t *testing.T) {
	t.Parallel()
	w := proctest.New(t)
	const followee = "user:1"
	m := w.Start("a", damaged(w.Streams))
	proctest.Publish(w, w.Streams.Publications, followee, &schemas.Publication{Followee: followee})
	w.WaitIdle()
	m.Stop()

	cfg := rows.DefaultConfig()
	cfg.Dir, cfg.MinFreeDiskBytes = t.TempDir(), 0
	r, err := rows.New(cfg, rows.Env{Kafka: w.Kafka, Streams: w.Streams}, Group(DefaultConfig(), w.Kafka.Partitions, w.Streams, deletedtest.Of()))
	must.OK(t, err)
	last := schemas.Continuation{Followee: followee, Walk: &schemas.Walk{Pin: schemas.DeliveredPin{Pin: "pin:1"}}}
	proctest.Publish(w, w.Streams.FanoutLoop, followee, &last)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- r.Run(ctx) }()
	w.Eventually("the group fails, or the step is a dead letter", func() bool {
		return len(ended) > 0 || len(w.Records(topics.DeadLetters)) > 0
	})
	stop()
	expect.Error(t, <-ended, `read a record of fanout-loop of "user:1": decode row "q`, "the group")
	expect.Empty(t, w.DeadLetterReasons(), "dead letters")
}

func TestMergeWalks_KeepsNewestVersionAndAllFollowers(t *testing.T) {
	walk := func(version schemas.Version, all bool) *schemas.Walk {
		return &schemas.Walk{Pin: schemas.DeliveredPin{Version: version}, All: all}
	}
	for name, test := range map[string]struct{ queued, next, want *schemas.Walk }{
		"a newer version":      {walk(1, false), walk(2, true), walk(2, true)},
		"an older version":     {walk(2, true), walk(1, false), walk(2, true)},
		"both to active users": {walk(1, false), walk(2, false), walk(2, false)},
	} {
		expect.NoDiff(t, mergeWalks(test.queued, test.next), test.want, "%s", name)
	}
}

func TestQueueRow_WithdrawalsFirstThenBestScore(t *testing.T) {
	const followee = "user:1"
	row := func(author schemas.UserID, score schemas.BaseScore) []byte {
		return queueRow(followee, &schemas.DeliveredPin{Pin: "pin:1", BaseScore: score, PinContent: schemas.PinContent{Facets: schemas.Facets{Author: author}}})
	}
	want := [][]byte{row("user:2", 1), row(followee, 2), row(followee, 1)}
	expect.True(t, slices.IsSortedFunc(want, bytes.Compare), "order of the rows %q", want)
}
