package interests_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/smartfeed/smartfeed/internal/testkit/expect"
	"github.com/smartfeed/smartfeed/internal/testkit/proctest"
	"github.com/smartfeed/smartfeed/internal/testkit/topicstest"
	"github.com/smartfeed/smartfeed/processors/interests"
	"github.com/smartfeed/smartfeed/schemas"
	"github.com/smartfeed/smartfeed/topics"
)

// show publishes impressions to the partition of their first pin.
func (r *rig) show(i *schemas.Impressions) {
	proctest.PublishTo(r.Wire, r.Streams.Impressions, r.partition(i.Pins[0].Pin), "", time.Time{}, i)
}

func (r *rig) partition(pin schemas.PinID) int32 {
	return topics.Partition(string(pin), r.Kafka.Partitions)
}

// pinOfNextPartition returns a pin of the next partition.
func (r *rig) pinOfNextPartition(pin schemas.PinID) schemas.PinID {
	return topicstest.KeysIn[schemas.PinID]("pin:next-", (r.partition(pin)+1)%r.Kafka.Partitions, r.Kafka.Partitions, 1)[0]
}

// engaged returns the engagement with an interest's pins, by source.
func (r *rig) engaged(interest schemas.InterestID) []schemas.SourceEngagement {
	r.t.Helper()
	return read(r, func(i interests.Reader) ([]schemas.SourceEngagement, error) {
		return i.Engagement(r.t.Context(), interest, 2)
	})
}

// A visit of many pins with many interests counts for each interest as often as it showed one of its pins. Its marks are
// split so that no record is too large, regardless of the length of ids. A visit with a pin of another partition does not
// count.
func TestImpressions_CountForEachInterest(t *testing.T) {
	cfg := interests.DefaultConfig()
	r := newRig(t, cfg, nil)
	const shown = 800 // times cfg.Interests is more than fits two records
	var all []schemas.InterestID
	for n := 0; len(all) < cfg.MaxPinInterests; n++ {
		id := schemas.InterestID(fmt.Sprint("interest:", n) + strings.Repeat("x", 100))
		if topics.Partition(string(id), r.Kafka.Partitions) == 2 { // all marks go to one partition
			all = append(all, id)
		}
	}
	visit := &schemas.Impressions{User: "user:1", Time: schemas.MicrosOf(now)}
	for n := 0; len(visit.Pins) < shown; n++ {
		pin := schemas.PinID(fmt.Sprint("pin:", n%200))
		if n < 200 {
			r.card(card(pin, "", all...))
		}
		if r.partition(pin) == 1 {
			visit.Pins = append(visit.Pins, schemas.ShownPin{Pin: pin, Source: schemas.Related})
		}
	}
	r.WaitIdle()
	first := visit.Pins[0]
	astray := &schemas.Impressions{User: "user:2", Time: visit.Time, Pins: []schemas.ShownPin{first, {Pin: r.pinOfNextPartition(first.Pin), Source: schemas.Related}}}
	r.show(astray)
	r.show(visit)
	r.WaitIdle()
	want := []schemas.SourceEngagement{{Source: schemas.Related, Counts: map[string]int64{schemas.ImpressionCount: shown}}}
	for _, interest := range all {
		expect.NoDiff(t, r.engaged(interest), want, "engagement of %s", interest)
	}
	longest := 0
	for _, m := range r.Records(topics.InterestMarks) {
		longest = max(longest, len(m.Value))
	}
	expect.Between(t, longest, 50_000, 512<<10, "bytes of the largest record of marks")
	deadLetters := r.DeadLetterReasons()
	if len(deadLetters) != 1 || !strings.Contains(deadLetters[0], "the record's is 1") {
		t.Errorf("dead letters %+v, want only the visit with a pin of another partition", deadLetters)
	}
	if slices.ContainsFunc(r.Rows(topics.Interests, ""), func(row proctest.Row) bool { return strings.HasSuffix(string(row.Name), "user:2") }) {
		t.Error("a row of a visit that is a dead letter")
	}
}
