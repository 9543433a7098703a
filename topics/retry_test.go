package topics

import (
	"slices"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"
	"pgregory.net/rapid"

	"github.com/smartfeed/smartfeed/internal/testkit/expect"
	"github.com/smartfeed/smartfeed/schemas"
)

func TestRetryHeaderRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := Retry{
			Group: rapid.StringN(1, 40, 100).Draw(t, "group"), Partition: rapid.Int32Min(0).Draw(t, "partition"),
			Offset: rapid.Int64Min(0).Draw(t, "offset"), Attempt: rapid.Int32Min(1).Draw(t, "attempt"),
		}
		value := want.Value()
		if got, ok := ParseRetry(value); !ok || got != want {
			t.Fatalf("got %+v, %v, want %+v", got, ok, want)
		}
		for n := range 17 {
			if got, ok := ParseRetry(value[:n]); ok {
				t.Fatalf("%d bytes were read as %+v", n, got)
			}
		}
	})
}

func TestKindOf(t *testing.T) {
	for _, c := range []struct{ reason, want string }{
		{`key "pin:3": want the record's "pin:4"`, "key-want-the-record-s"},
		{"decode pins-value: 3 bytes are too short for a framed record", "decode-pins-value-bytes-are-too"},
		{`related request: key "a \"b\" c": want the pin "x"`, "related-request-key-want-the-pin"},
		{"", "other"},
		{"12 34", "other"},
		{`"all quoted`, "other"},
		{"Zeit im Jahr 2030 läuft", "zeit-im-jahr-l-uft"},
	} {
		l := &schemas.DeadLetter{Topic: "pins", Group: "objects", Reason: c.reason}
		expect.Equal(t, KindOf(l), "pins/objects/"+c.want, "%s: kind", c.reason)
	}
}

func TestNewDeadLetter_NamesFirstFailedRecord(t *testing.T) {
	r := &kgo.Record{Topic: "pins", Partition: 2, Offset: 70}
	if p, o := NewDeadLetter("objects", r, "no").First(); p != 2 || o != 70 {
		t.Errorf("record: first is %d/%d, want 2/70", p, o)
	}
	r.Headers = []kgo.RecordHeader{{Key: RetryHeader, Value: Retry{Group: "objects", Partition: 1, Offset: 9, Attempt: 3}.Value()}}
	l := NewDeadLetter("objects", r, "no")
	if p, o := l.First(); p != 1 || o != 9 || l.Attempts != 3 || l.Partition != 2 || l.Offset != 70 {
		t.Errorf("retry: %+v, first %d/%d, want 1/9 after 3 attempts", l, p, o)
	}
}

// A topic that producers write has one reader, which processes a record with the retry header of another group. A reader
// of a compacted topic does so, too, because the retry replaces the original there.
func TestRetry_IsForAnotherOnlyOnTopicsOfGroups(t *testing.T) {
	retry := Retry{Group: Objects, Attempt: 1}
	for _, topic := range Catalogue(Profile{}) {
		byProducers := slices.Contains(topic.Writers, Producers)
		if byProducers && len(topic.Readers) != 1 {
			t.Errorf("%s, which producers write, has the readers %v, want one: each would process retries for the others", topic.Name, topic.Readers)
		}
		expect.Equal(t, retry.IsForAnother(topic.Name, Actors), !byProducers && !topic.Compact, "%s: skipped by another reader", topic.Name)
		expect.False(t, retry.IsForAnother(topic.Name, Objects), "%s: skipped by its own reader", topic.Name)
	}
}
