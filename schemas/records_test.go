package schemas

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/smartfeed/smartfeed/internal/testkit/expect"
	"github.com/smartfeed/smartfeed/internal/testkit/must"
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

func recordOf(t testing.TB, source SchemaSource, zero any) record {
	t.Helper()
	typ := reflect.TypeOf(zero)
	schema := must.Get(schemaText(reflect.New(typ).Interface()))(t)
	s := must.Get(newFraming("test-value", testID, source, reflect.New(typ).Interface()))(t)
	return record{
		name: typ.String(), file: schemaFile(reflect.New(typ).Interface()), zero: zero, schema: schema,
		value: func(t *rapid.T) any {
			rec := reflect.New(typ)
			draw(t, rec.Elem())
			return rec.Interface()
		},
		encode: s.encode,
		decode: func(value []byte) (any, error) {
			rec := reflect.New(typ).Interface()
			return rec, s.decode(value, rec)
		},
	}
}

// draw sets v to a random value.
func draw(t *rapid.T, v reflect.Value) {
	switch v.Kind() {
	case reflect.String:
		v.SetString(rapid.String().Draw(t, "text"))
	case reflect.Int32:
		v.SetInt(int64(rapid.Int32().Draw(t, "number")))
	case reflect.Int64:
		v.SetInt(rapid.Int64().Draw(t, "number"))
	case reflect.Float32:
		v.SetFloat(float64(rapid.Float32().Draw(t, "number")))
	case reflect.Float64:
		v.SetFloat(rapid.Float64().Draw(t, "number"))
	case reflect.Bool:
		v.SetBool(rapid.Bool().Draw(t, "flag"))
	case reflect.Uint8:
		v.SetUint(uint64(rapid.Byte().Draw(t, "byte")))
	case reflect.Pointer:
		if rapid.Bool().Draw(t, "present") {
			v.Set(reflect.New(v.Type().Elem()))
			draw(t, v.Elem())
		}
	case reflect.Struct:
		for i := range v.NumField() {
			draw(t, v.Field(i))
		}
	case reflect.Slice:
		n := rapid.IntRange(0, 5).Draw(t, "entries")
		v.Set(reflect.MakeSlice(v.Type(), n, n))
		for i := range n {
			draw(t, v.Index(i))
		}
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		for range rapid.IntRange(0, 5).Draw(t, "entries") {
			key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
			draw(t, key)
			draw(t, value)
			v.SetMapIndex(key, value)
		}
	default:
		t.Fatalf("no random %s", v.Type())
	}
}

func serdeOf[T any](t testing.TB, source SchemaSource) *Serde[T] {
	t.Helper()
	return must.Get(NewSerde[T]("test-value", testID, source))(t)
}

// records returns all record types, those of the input streams first.
func records(t testing.TB, source SchemaSource) []record {
	t.Helper()
	all := inputRecords(t, source)
	for _, zero := range []any{
		Publication{}, Card{}, Delivery{}, Edge{}, EdgeWeight{}, Affinities{}, EnrichedAction{}, ItemCounts{},
		PinAttributes{}, PinActor{}, LoggedFeatures{}, Served{}, LoggedVisit{}, FeedEntries{}, Impressions{}, DeletedUser{}, DeadLetter{},
		Continuation{}, Tick{}, HotPin{}, EdgeMode{}, PulledPin{}, UserActivity{}, Erasure{}, RetryOrder{}, InterestMarks{},
		InterestDecision{}, Rebuild{}, Replay{}, RelatedRequest{}, BoardSave{}, RelatedPairs{}, PopularPin{},
	} {
		all = append(all, recordOf(t, source, zero))
	}
	return all
}

// inputRecords returns the record types of the input streams.
func inputRecords(t testing.TB, source SchemaSource) (all []record) {
	t.Helper()
	for _, stream := range InputStreams() {
		all = append(all, recordOf(t, source, reflect.ValueOf(NewInput(stream)).Elem().Interface()))
	}
	return all
}

// asOnWire compares records as the wire does: an absent list is an empty one.
var asOnWire = cmp.Options{
	cmpopts.EquateEmpty(), cmpopts.EquateNaNs(), equateNaNs[BaseScore](), equateNaNs[PoolScore](), equateNaNs[RankScore](),
}

// equateNaNs is cmpopts.EquateNaNs for a named type.
func equateNaNs[F ~float64]() cmp.Option {
	bothNaN := func(a, b F) bool { return a != a && b != b }
	return cmp.FilterValues(bothNaN, cmp.Comparer(bothNaN))
}

func TestSerde_RoundTrip(t *testing.T) {
	for _, r := range records(t, texts{}) {
		t.Run(r.name, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				rec := r.value(t)
				value := must.Get(r.encode(rec))(t)
				got := must.Get(r.decode(value))(t)
				finishDecoding(wireOf(rec))
				expect.NoDiffBut(t, asOnWire, got, rec, "decoded")
			})
		})
	}
}

func checkBad(t testing.TB, err error) {
	t.Helper()
	expect.True(t, errors.As(err, new(*BadRecordError)), "error %T %v is a *BadRecordError", err, err)
}

func TestMaxEncodedBytes_BoundsEncoding(t *testing.T) {
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
		expect.AtMost(t, size(it, it)-size(it), it.MaxEncodedBytes(), "bytes")
	})
}
