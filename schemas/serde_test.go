package schemas

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/smartfeed/smartfeed/internal/testkit/expect"
	"github.com/smartfeed/smartfeed/internal/testkit/must"
)

// asked is a SchemaSource that counts requests and can be unavailable.
type asked struct {
	texts texts
	mu    sync.Mutex
	times int
	away  error
}

func (a *asked) SchemaByID(ctx context.Context, id int) (string, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.times++
	if a.away != nil {
		return "", a.away
	}
	return a.texts.SchemaByID(ctx, id)
}

func (a *asked) count() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.times
}

// framed frames a hand-written body.
func framed(id uint32, parts ...any) []byte {
	out := binary.BigEndian.AppendUint32([]byte{0}, id)
	for _, p := range parts {
		switch p := p.(type) {
		case string:
			out = append(appendLong(out, int64(len(p))), p...)
		case int:
			out = appendLong(out, int64(p))
		case []byte:
			out = append(out, p...)
		}
	}
	return out
}

func recordSchema(name string, fields ...string) string {
	return fmt.Sprintf(`{"type":"record","name":%q,"fields":[%s]}`, name, strings.Join(fields, ","))
}

func fieldSchema(name, typ string) string {
	if !strings.ContainsAny(typ, `{[`) {
		typ = `"` + typ + `"`
	}
	return fmt.Sprintf(`{"name":%q,"type":%s}`, name, typ)
}

func TestEncode_Golden(t *testing.T) {
	s := serdeOf[ActionEvent](t, texts{})
	got := must.Get(s.Encode(&ActionEvent{
		Event: Event{ID: "e", Time: -1, Actor: "user:7", Verb: Save, Object: "pin:42"},
		Board: "board:9", Attributes: map[string]string{"k": "v"},
	}))(t)
	want := framed(testID, "e", -1, "user:7", "save", "pin:42", 1, "board:9", "", 1, "k", "v", 0)
	expect.NoDiff(t, got, want, "encoded")
}

// hollowSchema returns a schema whose records contain the next one twice and take no bytes at all.
func hollowSchema(levels int) string {
	inner := recordSchema("R0", fieldSchema("a", "null"))
	for i := range levels {
		inner = recordSchema(fmt.Sprint("R", i+1), fieldSchema("a", inner), fieldSchema("b", fmt.Sprint("R", i)))
	}
	return recordSchema("Tick", fieldSchema("time", "long"), fieldSchema("x", inner))
}

func TestConform_BoundsEmptyRecords(t *testing.T) {
	small := serdeOf[Tick](t, texts{9: hollowSchema(10)})
	expect.Equal(t, must.Get(small.Decode(framed(9, 5)))(t).Time, 5, "time of a record with a thousand nulls")
	_, err := serdeOf[Tick](t, texts{9: hollowSchema(22)}).Decode(framed(9, 5))
	if !strings.Contains(fmt.Sprint(err), errTooManyEmpty.Error()) {
		t.Fatalf("2^22 nulls: got %v, want %v", err, errTooManyEmpty) // 2^60 would not return
	}
	// A new serde, because a serde caches the error.
	_, took := soonest(func() { _, err = serdeOf[Tick](t, texts{9: hollowSchema(60)}).Decode(framed(9, 5)) })
	if !strings.Contains(fmt.Sprint(err), errTooManyEmpty.Error()) || took > longestDecoding {
		t.Errorf("2^60 nulls: got %.300v in %s, want %v", err, took, errTooManyEmpty)
	}
}

func TestDecode_OtherWriters(t *testing.T) {
	head := []string{
		fieldSchema("id", "string"), fieldSchema("time", "long"), fieldSchema("actor", "string"),
		fieldSchema("verb", "string"), fieldSchema("object", "string"),
	}
	save := Event{ID: "e", Time: 5, Actor: "user:7", Verb: Save, Object: "pin:42"}
	tests := []struct {
		name   string
		schema string
		value  []byte
		want   *ActionEvent
		bad    string // part of the reason
	}{{
		name:   "the same with other docs and no defaults",
		schema: recordSchema("ActionEvent", append(head[:5:5], fieldSchema("board", `["null","string"]`), fieldSchema("surface", "string"), fieldSchema("attributes", `{"type":"map","values":"string"}`))...),
		value:  framed(9, "e", 5, "user:7", "save", "pin:42", 0, "home", 0),
		want:   &ActionEvent{Event: save, Surface: "home"},
	}, {
		name:   "an older one without the optional fields",
		schema: recordSchema("ActionEvent", head...),
		value:  framed(9, "e", 5, "user:7", "save", "pin:42"),
		want:   &ActionEvent{Event: save},
	}, {
		name: "a newer one in another order, with fields of every kind that are not known here",
		schema: recordSchema("ActionEvent", head[4], fieldSchema("x1", `{"type":"array","items":{"type":"map","values":["null","double"]}}`),
			head[3], fieldSchema("x2", `{"type":"fixed","name":"F","size":3}`), head[2], fieldSchema("x3", "boolean"), head[1],
			fieldSchema("x4", `{"type":"enum","name":"E","symbols":["A","B"]}`), head[0], fieldSchema("surface", "string")),
		value: framed(9, "pin:42", -1, 8, 2, "a", 0, "b", 0, 0, 0, "save", []byte{1, 2, 3}, "user:7", []byte{1}, 5, 1, "e", "home"),
		want:  &ActionEvent{Event: save, Surface: "home"},
	}, {
		name: "a board that is never null, a time of 32 bits, bytes for text, another name of the record",
		schema: recordSchema("Act", fieldSchema("id", "bytes"), fieldSchema("time", "int"), fieldSchema("actor", `["string","null"]`),
			head[3], head[4], fieldSchema("board", "string")),
		value: framed(9, "e", 5, 0, "user:7", "save", "pin:42", "board:1"),
		want:  &ActionEvent{Event: save, Board: "board:1"},
	}, {
		name:   "null where it must not be",
		schema: recordSchema("ActionEvent", head[0], head[1], fieldSchema("actor", `["string","null"]`), head[3], head[4]),
		value:  framed(9, "e", 5, 1, "save", "pin:42"),
		bad:    "schema 9: actor|null: type changed from null to string",
	}, {
		name:   "bytes that are no text",
		schema: recordSchema("ActionEvent", fieldSchema("id", "bytes"), head[1], head[2], head[3], head[4]),
		value:  framed(9, "\xff", 5, "user:7", "save", "pin:42"),
		bad:    "id: not UTF-8",
	}, {
		name:   "without a field that must be",
		schema: recordSchema("ActionEvent", head[:4]...),
		value:  framed(9, "e", 5, "user:7", "save"),
		bad:    "schema 9: object: new field without a default",
	}, {
		name:   "milliseconds",
		schema: recordSchema("ActionEvent", head[0], fieldSchema("time", `{"type":"long","logicalType":"timestamp-millis"}`), head[2], head[3], head[4]),
		value:  framed(9, "e", 5, "user:7", "save", "pin:42"),
		bad:    "schema 9: time: logical type changed from timestamp-millis to timestamp-micros",
	}, {
		name:   "something else altogether",
		schema: `{"type":"array","items":"long"}`,
		value:  framed(9, 1, 5, 0),
		bad:    "schema 9: type changed from array to record ActionEvent",
	}, {
		name:   "cut short",
		schema: recordSchema("ActionEvent", head...),
		value:  framed(9, "e", 5, "user:7", "save"),
		bad:    "schema 9: object: unexpected end",
	}, {
		name:   "too long",
		schema: recordSchema("ActionEvent", head...),
		value:  framed(9, "e", 5, "user:7", "save", "pin:42", 0),
		bad:    "schema 9: 1 trailing bytes",
	}, {
		name:   "a schema that is none",
		schema: `{"type":"wreck"}`,
		value:  framed(9, "e"),
		bad:    "schema 9: parse schema",
	}, {
		name:   "deeper than any record",
		schema: `{"type":"record","name":"ActionEvent","fields":[{"name":"id","type":"string"},{"name":"next","type":["null","ActionEvent"]}]}`,
		value:  framed(9, bytes.Repeat([]byte{0, 2}, 1000)),
		bad:    "nested too deep",
	}, {
		name:   "an unknown id",
		schema: recordSchema("ActionEvent", head...),
		value:  framed(10, "e", 5, "user:7", "save", "pin:42"),
		bad:    "schema 10: no such schema",
	}, {
		name:   "an id that can not be",
		schema: recordSchema("ActionEvent", head...),
		value:  framed(1<<31, "e", 5, "user:7", "save", "pin:42"),
		bad:    "schema 2147483648: no such schema",
	}}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := serdeOf[ActionEvent](t, texts{9: tt.schema})
			got, err := s.Decode(tt.value)
			if tt.bad != "" {
				expect.Error(t, err, tt.bad, "error")
				expect.AtMost(t, len(err.Error()), 1000, "bytes of the reason")
				checkBad(t, err)
				return
			}
			must.OK(t, err)
			expect.NoDiffBut(t, cmpopts.EquateEmpty(), got, tt.want, "decoded")
		})
	}
}

// TestRewrite_IsBounded rewrites a writer's one-byte items to large items of the reader.
func TestRewrite_IsBounded(t *testing.T) {
	reader := recordSchema("R", fieldSchema("a", `{"type":"array","items":{"type":"record","name":"I","fields":[{"name":"x","type":"boolean"},{"name":"y","type":"string","default":"`+strings.Repeat("y", 1000)+`"}]}}`))
	writer := recordSchema("R", fieldSchema("a", `{"type":"array","items":{"type":"record","name":"I","fields":[{"name":"x","type":"boolean"}]}}`))
	r := must.Get(parseReader(reader))(t)
	w := must.Get(parseSchema(writer))(t)
	step, problems := resolve(r, w)
	expect.NoDiff(t, problems, nil, "problems")
	body := append(appendLong(nil, 100_000), make([]byte, 100_001)...)
	expect.Is(t, expect.ErrorOf(step(&cursor{b: body}, nil)), errTooLarge, "error")
}

func TestBad_TruncatesReason(t *testing.T) {
	err := Bad(strings.Repeat("ä", maxReasonBytes) + "\xff")
	expect.AtMost(t, len(err.Error()), maxReasonBytes+len("…"), "bytes of the reason")
	for _, reason := range []string{err.Error(), Bad("a\xffb").Error()} {
		must.Get(serdeOf[DeadLetter](t, texts{}).Encode(&DeadLetter{Reason: reason}))(t)
	}
}

func TestDecode_RequestsWriterOnce(t *testing.T) {
	source := &asked{texts: texts{9: recordSchema("Tick", fieldSchema("time", "long"))}}
	s := serdeOf[Tick](t, source)
	for range 3 {
		expect.Equal(t, must.Get(s.Decode(framed(9, 5)))(t).Time, 5, "time")
		must.Get(s.Decode(framed(testID, 5)))(t)
	}
	expect.Equal(t, source.count(), 1, "requests")
}

func TestDecode_RequestsUnknownSchemaAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := &asked{texts: texts{}}
		s := serdeOf[Tick](t, source)
		decode := func(want int) error {
			t.Helper()
			_, err := s.Decode(framed(9, 5))
			expect.Equal(t, source.count(), want, "requests")
			return err
		}
		checkBad(t, decode(1))
		time.Sleep(missingTTL - 1)
		checkBad(t, decode(1))
		source.texts[9] = recordSchema("Tick", fieldSchema("time", "long"))
		time.Sleep(1)
		must.OK(t, decode(2)) // registered by now
		time.Sleep(time.Hour)
		must.OK(t, decode(2)) // remembered
	})
}

func TestDecode_UnavailableRegistryIsNotABadRecord(t *testing.T) {
	source := &asked{texts: texts{9: recordSchema("Tick", fieldSchema("time", "long"))}, away: errors.New("away")}
	s := serdeOf[Tick](t, source)
	_, err := s.Decode(framed(9, 5))
	var bad *BadRecordError
	if !errors.Is(err, source.away) || errors.As(err, &bad) {
		t.Errorf("got %T %v, want the registry's error and no *BadRecordError", err, err)
	}
	source.away = nil
	must.Get(s.Decode(framed(9, 5)))(t) // the registry is back
}

func TestSerde_ConcurrentUse(t *testing.T) {
	source := &asked{texts: texts{9: recordSchema("UserEvent", fieldSchema("id", "string"), fieldSchema("time", "long"),
		fieldSchema("actor", "string"), fieldSchema("verb", "string"), fieldSchema("object", "string"))}}
	s := serdeOf[UserEvent](t, source)
	var wg sync.WaitGroup
	for worker := range 8 {
		wg.Go(func() {
			id := fmt.Sprint("e-", worker)
			for range 200 {
				value, err := s.Encode(&UserEvent{Event: Event{ID: id}, Attributes: map[string]string{"k": id}})
				if err != nil {
					t.Error(err)
					return
				}
				own, err := s.Decode(value)
				if err != nil || own.ID != id || own.Attributes["k"] != id {
					t.Errorf("own schema: got %+v, %v", own, err)
					return
				}
				other, err := s.Decode(framed(9, id, 1, "", "", ""))
				if err != nil || other.ID != id {
					t.Errorf("other schema: got %+v, %v", other, err)
					return
				}
			}
		})
	}
	wg.Wait()
}
