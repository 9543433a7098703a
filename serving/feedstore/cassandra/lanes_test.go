package cassandra

import (
	"fmt"
	"math"
	"reflect"
	"strings"
	"testing"

	"github.com/smartfeed/smartfeed/internal/testkit/expect"
	"github.com/smartfeed/smartfeed/schemas"
	"github.com/smartfeed/smartfeed/serving/feedstore"
)

// A batch that spans partitions, or is too long, would not be one mutation.
func TestMutations_AreBoundedAndOfOnePartition(t *testing.T) {
	var b feedstore.Batch
	for i := range int64(1000) {
		b.Entries = append(b.Entries, schemas.FeedEntry{User: schemas.UserID(fmt.Sprint("user:", i%2)), Position: i/2 + 1,
			ServedItem: schemas.ServedItem{Pin: "pin:1"}})
		b.Publications = append(b.Publications, schemas.Publication{Followee: schemas.Followee(fmt.Sprint("user:", i%3)),
			PinVersion: schemas.PinVersion{Pin: schemas.PinID(fmt.Sprint("pin:", i)), PinContent: schemas.PinContent{Facets: schemas.Facets{Author: "user:1"}}}})
	}
	statements := 0
	for _, l := range lanes(b, feedstore.NewTrimming(100)) {
		for _, mutation := range l {
			statements += len(mutation)
			expect.AtMost(t, len(mutation), maxTogether, "statements in one mutation")
			for _, st := range mutation {
				expect.Equal(t, partitionOf(t, st), partitionOf(t, mutation[0]), "partition of a statement of the mutation")
			}
		}
	}
	// 1000 entries, a trim position and a range for each of two feeds, 1000 listings, and the places in one list of three.
	expect.Equal(t, statements, 1000+2*2+1000+333, "statements")
}

func partitionOf(t *testing.T, st statement) string {
	t.Helper()
	switch st.text {
	case putEntry:
		return fmt.Sprint("feed of ", st.args[0])
	case putTrimPosition:
		return fmt.Sprint("feed of ", st.args[2])
	case trimFeed:
		return fmt.Sprint("feed of ", st.args[1])
	case putListing:
		return fmt.Sprint("listings of ", st.args[0])
	case putPlace:
		return fmt.Sprint("places of ", st.args[0])
	}
	t.Fatalf("unknown statement %q", st.text)
	return ""
}

// The trim position must not be visible before the entries above it, and trimmed entries must not disappear before the trim
// position is raised.
func TestLanes_TrimPositionAndRangeEndFeed(t *testing.T) {
	for n := int64(110); n < 300; n += 10 {
		var b feedstore.Batch
		for i := range n {
			b.Entries = append(b.Entries, schemas.FeedEntry{User: "user:1", Position: i + 1, Time: schemas.Micros(i), ServedItem: schemas.ServedItem{Pin: "pin:1"}})
		}
		l := lanes(b, feedstore.NewTrimming(100))[0]
		last := l[len(l)-1]
		if len(last) < 2 || last[len(last)-2].text != putTrimPosition || last[len(last)-1].text != trimFeed {
			t.Fatalf("%d entries: the last mutation does not end with trim position and range: %v", n, last)
		}
		trimmed, cut := last[len(last)-2].args, last[len(last)-1].args
		if want := n - 100; trimmed[0] != want || trimmed[1] != want || cut[2] != want || cut[0] != n-1 {
			t.Errorf("%d entries: trim position %v and range %v, want both at %d, of time %d", n, trimmed, cut, want, n-1)
		}
	}
}

// Without the event's time as the write time, a repeat or another order of arrival would lead to other rows.
func TestStatements_CarryTheTimeOfTheEvent(t *testing.T) {
	pin := schemas.PinVersion{Pin: "pin:1", Version: 7, PinContent: schemas.PinContent{Created: 3}}
	for name, c := range map[string]struct {
		st   statement
		want any // the argument of USING TIMESTAMP
	}{
		"entry":       {entryStatement(&schemas.FeedEntry{Time: 5, ServedItem: schemas.ServedItem{Pin: "pin:1", Created: 3}}), int64(5)},
		"swept entry": {entryStatement(&schemas.FeedEntry{Time: 5}), int64(5)},
		"edge":        {edgeStatement(&schemas.Edge{Time: 5}), int64(5)},
		"listing":     {listingStatement(&schemas.Publication{PinVersion: pin}), int64(7)},
		"place":       {placeStatement(&schemas.Publication{PinVersion: pin}), int64(7)},
		"card":        {cardStatement(&schemas.Card{PinVersion: pin}), int64(7)},
		"least time":  {edgeStatement(&schemas.Edge{Time: math.MinInt64}), int64(math.MinInt64 + 1)},
	} {
		expect.True(t, strings.HasSuffix(c.st.text, "USING TIMESTAMP ?"), "%s: %q has a timestamp at its end", name, c.st.text)
		expect.Equal(t, c.st.args[len(c.st.args)-1], c.want, "%s: timestamp", name)
	}
}

// Binding a null writes a tombstone, and the driver binds a nil slice as null.
func TestStatements_WriteNoNulls(t *testing.T) {
	for name, st := range map[string]statement{
		"entry":   entryStatement(&schemas.FeedEntry{ServedItem: schemas.ServedItem{Pin: "pin:1"}}),
		"listing": listingStatement(&schemas.Publication{}),
		"card":    cardStatement(&schemas.Card{}),
	} {
		for i, arg := range st.args {
			if v := reflect.ValueOf(arg); !v.IsValid() || v.Kind() == reflect.Slice && v.IsNil() {
				t.Errorf("%s: argument %d is null", name, i+1)
			}
		}
	}
}
