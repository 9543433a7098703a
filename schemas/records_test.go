package schemas

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"
)

// testID is the id under which the tests register every record's own schema.
const testID = 7

// texts is a SchemaSource of schemas by id.
type texts map[int]string

func (s texts) SchemaByID(_ context.Context, id int) (string, error) {
	text, ok := s[id]
	if !ok {
		return "", fmt.Errorf("schema %d: %w", id, ErrNoSchema)
	}
	return text, nil
}

// record is one record type and the functions that a test of all types needs.
type record struct {
	name   string
	file   string
	zero   any
	schema string
	value  func(t *rapid.T) any          // a pointer to a random record
	encode func(rec any) ([]byte, error) // takes such a pointer
	decode func(value []byte) (any, error)
}

func recordOf[T any](t testing.TB, source SchemaSource) record {
	t.Helper()
	schema, err := Schema[T]()
	if err != nil {
		t.Fatal(err)
	}
	s := serdeOf[T](t, source)
	gen := rapid.Make[T]()
	return record{
		name: fmt.Sprintf("%T", *new(T)), file: schemaFile(new(T)), zero: *new(T), schema: schema,
		value:  func(t *rapid.T) any { v := gen.Draw(t, "record"); return &v },
		encode: func(rec any) ([]byte, error) { return s.Encode(rec.(*T)) },
		decode: func(value []byte) (any, error) { return s.Decode(value) },
	}
}

func serdeOf[T any](t testing.TB, source SchemaSource) *Serde[T] {
	t.Helper()
	s, err := NewSerde[T]("test-value", testID, source)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func records(t testing.TB, source SchemaSource) []record {
	t.Helper()
	return []record{
		recordOf[PinEvent](t, source), recordOf[FollowEvent](t, source), recordOf[ActionEvent](t, source),
		recordOf[UserEvent](t, source), recordOf[Offer](t, source), recordOf[Publication](t, source),
		recordOf[Card](t, source), recordOf[Delivery](t, source), recordOf[Edge](t, source),
		recordOf[EdgeWeight](t, source), recordOf[Affinities](t, source), recordOf[EnrichedAction](t, source),
		recordOf[ItemCounts](t, source), recordOf[PinAttributes](t, source), recordOf[PinActor](t, source), recordOf[LoggedFeatures](t, source), recordOf[Served](t, source), recordOf[FeedEntries](t, source),
		recordOf[Impressions](t, source), recordOf[DeletedUser](t, source), recordOf[DeadLetter](t, source),
		recordOf[Continuation](t, source), recordOf[Tick](t, source), recordOf[HotPin](t, source), recordOf[EdgeMode](t, source),
		recordOf[PulledPin](t, source), recordOf[Return](t, source), recordOf[Erasure](t, source), recordOf[RetryOrder](t, source), recordOf[InterestMarks](t, source), recordOf[InterestDecision](t, source), recordOf[Rebuild](t, source), recordOf[Replay](t, source),
		recordOf[RelatedRequest](t, source), recordOf[BoardSave](t, source), recordOf[RelatedPairs](t, source),
	}
}

// sameRecord compares records as the wire does: an absent list is an empty one.
func sameRecord(a, b any) string {
	return cmp.Diff(a, b, cmpopts.EquateEmpty(), cmpopts.EquateNaNs())
}

func TestRoundTrip(t *testing.T) {
	for _, r := range records(t, texts{}) {
		t.Run(r.name, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				rec := r.value(t)
				value, err := r.encode(rec)
				if err != nil {
					t.Fatalf("encode: %v", err)
				}
				got, err := r.decode(value)
				if err != nil {
					t.Fatalf("decode: %v", err)
				}
				settle(wireOf(rec))
				if diff := sameRecord(rec, got); diff != "" {
					t.Fatalf("decoded differs (-want +got):\n%s", diff)
				}
			})
		})
	}
}

func checkBad(t testing.TB, err error) {
	t.Helper()
	var bad *BadRecordError
	if !errors.As(err, &bad) {
		t.Errorf("error %T %v, want a *BadRecordError", err, err)
	}
}

func TestServedItem_MaxEncodedBytesBoundsTheEncoding(t *testing.T) {
	s := serdeOf[Served](t, nil)
	item := rapid.Make[ServedItem]()
	rapid.Check(t, func(t *rapid.T) {
		it := item.Draw(t, "item")
		size := func(items ...ServedItem) int {
			value, err := s.Encode(&Served{Items: items})
			if err != nil {
				t.Skip(err)
			}
			return len(value)
		}
		if got, bound := size(it, it)-size(it), it.MaxEncodedBytes(); got > bound {
			t.Fatalf("%d bytes, want at most %d", got, bound)
		}
	})
}
