package fanout

import (
	"fmt"
	"strings"
	"testing"

	"github.com/smartfeed/smartfeed/internal/packed"
	"github.com/smartfeed/smartfeed/internal/testkit/deletedtest"
	"github.com/smartfeed/smartfeed/internal/testkit/expect"
	"github.com/smartfeed/smartfeed/internal/testkit/proctest"
	"github.com/smartfeed/smartfeed/processors/rows"
	"github.com/smartfeed/smartfeed/schemas"
	"github.com/smartfeed/smartfeed/topics"
)

// filledSlots replaces the group. For each publication it writes as many index entries as the quality, with ids of the
// maximum length. Every second entry is withdrawn. They use the slots from the publication's version on, and the
// followee has finished a switch to push.
func filledSlots(s *topics.Streams, slots int) rows.Group {
	write := func(tx *rows.Tx, p *schemas.Publication) error {
		for slot := int(p.Version); slot < int(p.Version)+int(p.Quality); slot++ {
			id := longest("pin:", slot)
			k := known{version: 1, withdrawn: slot%2 == 1, slot: slot}
			rows.PutValue(tx.Own(), rows.Name(rowIndex, id), &k)
		}
		freeing := state{published: true, withdrawn: true, slots: slots, slotsLive: slots / 2, slotsWithdrawn: slots / 2}
		rows.PutValue(tx.Own(), []byte{rowState}, &freeing)
		return nil
	}
	return rows.Group{Name: topics.Fanout, Inputs: []rows.Input{rows.Keyed(s.Publications, write)}}
}

func longest(kind string, n int) string {
	id := fmt.Sprintf("%s%d-", kind, n)
	return id + strings.Repeat("x", schemas.MaxIDBytes-len(id))
}

// The maximum number of slots, with ids of the maximum length, is freed within the bounds of a record and across a kill.
func TestFreeSlots_MaximumWithinRecordBounds(t *testing.T) {
	t.Parallel()
	const slots, atOnce = 20_000, 1000
	w := proctest.New(t)
	followee := longest("user:", 1)
	w.Start("a", filledSlots(w.Streams, slots))
	for from := 0; from < slots; from += atOnce {
		proctest.Publish(w, w.Streams.Publications, followee, &schemas.Publication{Followee: schemas.Followee(followee),
			PinVersion: schemas.PinVersion{Version: schemas.Version(from), Quality: atOnce}})
	}
	w.WaitIdle()
	cfg := DefaultConfig()
	cfg.MaxRecentPublications = slots / 2
	m := w.Start("a", Group(cfg, w.Kafka.Partitions, w.Streams, deletedtest.Of()))
	proctest.Publish(w, w.Streams.FanoutLoop, followee,
		&schemas.Continuation{Followee: schemas.Followee(followee), Slots: &schemas.SlotStep{Free: true}})
	freed := func() map[string]bool {
		keys := map[string]bool{}
		for _, r := range w.Records(topics.RecentsPulled) {
			expect.True(t, r.Value == nil, "slot %s is empty", r.Key)
			keys[string(r.Key)] = true
		}
		return keys
	}
	w.Eventually("some slots are freed, or the step is a dead letter", func() bool {
		return len(freed()) > 0 || len(w.Records(topics.DeadLetters)) > 0
	})
	m.Kill()
	m.Restart()
	w.WaitIdle()
	expect.Empty(t, w.DeadLetterReasons(), "dead letters")
	expect.Equal(t, len(freed()), slots, "slots emptied")
	checkFreed(t, w.Rows(topics.Fanout, followee), slots)
}

// checkFreed verifies that no entry of the index has a slot.
func checkFreed(t *testing.T, list []proctest.Row, pins int) {
	t.Helper()
	for _, row := range list {
		switch row.Name[0] {
		case rowIndex:
			k, err := packed.Decode[known](row.Value)
			if err != nil || k.slot != noSlot {
				t.Fatalf("%.16s has slot %d, %v", row.Name[1:], k.slot, err)
			}
			pins--
		case rowState:
			if s, err := packed.Decode[state](row.Value); err != nil || s.slotted || s.freeing() {
				t.Errorf("state %+v, %v", s, err)
			}
		}
	}
	expect.Equal(t, pins, 0, "pins that are missing in the index")
}
