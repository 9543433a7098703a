package rows

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/smartfeed/smartfeed/internal/testkit/expect"
	"github.com/smartfeed/smartfeed/internal/testkit/must"
	"github.com/smartfeed/smartfeed/schemas"
	"github.com/smartfeed/smartfeed/topics"
)

// names is a record of gathered items: their names, and their number as the time.
func names(items []string) (recs []*schemas.DeletedUser) {
	for part := range slices.Chunk(items, 3) {
		recs = append(recs, &schemas.DeletedUser{User: schemas.UserID("user:" + strings.Join(part, ",")), Time: schemas.Micros(len(part))})
	}
	return recs
}

// The items of several callbacks are one record per partition, or more if they do not fit. Those of callbacks that were undone are
// not sent, and neither are those of a silent generation.
func TestGather_JoinsItemsOfTransaction(t *testing.T) {
	s := must.Get(topics.Open(t.Context(), oneSchema{}))(t).UsersDeleted
	g := group()
	g.Outputs = append(g.Outputs, s.Name)
	b := newBench(t, g)
	out := Gather(s, names)
	add := func(partition int32, items ...string) error {
		return b.callAs("k", func(tx *Tx) error {
			for _, item := range items {
				if strings.HasPrefix(item, "bad") {
					return schemas.Bad(item)
				}
				out.Add(tx, partition, item, 100)
			}
			return nil
		})
	}
	must.OK(t, add(1, "a"))
	must.OK(t, add(0, "b"))
	expect.Fails(t, add(1, "undone", "bad"), "callback that failed")
	b.silent = true
	must.OK(t, add(1, "silent"))
	b.silent = false
	must.OK(t, add(1, "c", "d", "e"))
	expect.Fails(t, add(testPartitions, "f"), "partition %d", testPartitions)
	expect.AtLeast(t, b.pending.bytes(), 500, "bytes of the batch")
	must.OK(t, b.pending.emitGathered())
	var got []string
	for i := range b.pending.emits {
		e := &b.pending.emits[i]
		rec := must.Get(s.Decode(b.pending.at(e.value)))(t)
		got = append(got, fmt.Sprint(e.partition, " ", rec.User, " ", e.originTime))
	}
	want := []string{"0 user:b 1", "1 user:a,c,d 1", "1 user:e 1"}
	expect.NoDiff(t, got, want, "values")
	b.pending.reset()
	must.OK(t, b.pending.emitGathered())
	expect.Equal(t, [2]int{len(b.pending.emits), b.pending.bytes()}, [2]int{}, "items and bytes of a reset batch")
}

// A record that cannot be encoded stops the group before the commit: nothing of the transaction is lost or half done.
func TestGather_StopsAtRecordThatCannotBeEncoded(t *testing.T) {
	w := parallelWire(t)
	g, out := w.counter("t-in"), Gather(w.stream("t-out"), names)
	g.Inputs = []Input{Keyed(w.stream("t-in"), func(tx *Tx, _ *schemas.DeletedUser) error {
		out.Add(tx, 0, "\xff is not UTF-8", 1)
		increment(tx.Own())
		return nil
	})}
	w.send(t, "t-in", 0, 1, user)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	expect.Error(t, newRunner(t, w, t.TempDir(), g).Run(ctx), "gather t-out", "error")
	expect.Equal(t, len(w.Records("t-out")), 0, "records sent")
	for _, rec := range w.Records("t-table") {
		expect.False(t, len(rec.Key) > 0 && rec.Key[0] != separator, "the row %q was committed", rec.Key)
	}
}
