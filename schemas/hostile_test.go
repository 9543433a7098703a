package schemas

import (
	"bytes"
	"fmt"
	"math"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/smartfeed/smartfeed/internal/testkit/eventually"
	"github.com/smartfeed/smartfeed/internal/testkit/expect"
	"github.com/smartfeed/smartfeed/internal/testkit/must"
)

// full returns a record with a value in every field, always the same.
func full(zero any) any {
	p := reflect.New(reflect.TypeOf(zero))
	n := 0
	fill(p.Elem(), &n)
	return p.Interface()
}

func fill(v reflect.Value, n *int) {
	*n++
	switch v.Kind() {
	case reflect.String:
		v.SetString(fmt.Sprintf("text:%d", *n))
	case reflect.Int32, reflect.Int64:
		v.SetInt(int64(*n) * 1_000_003)
	case reflect.Float32, reflect.Float64:
		v.SetFloat(float64(*n) / 4)
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Struct:
		for i := range v.NumField() {
			fill(v.Field(i), n)
		}
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		for i := range v.Len() {
			if v.Type().Elem().Kind() == reflect.Uint8 {
				v.Index(i).SetUint(uint64(*n))
				continue
			}
			fill(v.Index(i), n)
		}
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		for range 2 {
			key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
			fill(key, n)
			fill(value, n)
			v.SetMapIndex(key, value)
		}
	}
}

func mustEncode(t testing.TB, r record, rec any) []byte {
	t.Helper()
	return must.Get(r.encode(rec))(t)
}

// cost runs f and returns the bytes it allocated and how long it took.
func cost(f func()) (uint64, time.Duration) {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	start := time.Now()
	f()
	took := time.Since(start)
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc, took
}

// soonest is cost, repeated up to three times with the shortest time if f exceeds longestDecoding: a busy machine
// is not always slow. The allocation is that of the first run.
func soonest(f func()) (allocated uint64, took time.Duration) {
	allocated, took = cost(f)
	for try := 1; try < 3 && took > longestDecoding; try++ {
		_, again := cost(f)
		took = min(took, again)
	}
	return allocated, took
}

// longestDecoding is the maximum time to decode any record.
const longestDecoding = time.Second

func TestDecode_RejectsEveryTruncation(t *testing.T) {
	for _, r := range records(t, texts{}) {
		t.Run(r.name, func(t *testing.T) {
			value := mustEncode(t, r, full(r.zero))
			for n := range value {
				if got, err := r.decode(value[:n]); err == nil {
					t.Errorf("first %d of %d bytes decode as %+v", n, len(value), got)
				} else {
					checkBad(t, err)
				}
			}
			if got, err := r.decode(append(value, 0)); err == nil {
				t.Errorf("with a trailing byte it decodes as %+v", got)
			} else {
				checkBad(t, err)
			}
		})
	}
}

// TestDecode_RejectsHostileBodies covers inputs that made the library run out of memory, return nonsense or never return.
func TestDecode_RejectsHostileBodies(t *testing.T) {
	extra := `{"type":"record","name":"PinEvent","namespace":"smartfeed","fields":[{"name":"junk","type":{"type":"array","items":"string"}},` +
		`{"name":"id","type":"string"},{"name":"time","type":"long"},{"name":"actor","type":"string"},{"name":"verb","type":"string"},{"name":"object","type":"string"}]}`
	s := serdeOf[PinEvent](t, texts{8: extra})
	toInterests := []byte{0, 0, 0, 0, testID, 0, 0, 0, 0, 0, 0} // id, time, actor, verb, object empty, no board
	toAttributes := append(slices.Clone(toInterests), 0, 0, 0)  // no interests, title, link
	toSkipped := []byte{0, 0, 0, 0, 8}
	with := func(head []byte, numbers ...int64) []byte {
		out := slices.Clone(head)
		for _, n := range numbers {
			out = appendLong(out, n)
		}
		return out
	}
	noText := bytes.Replace(must.Get(s.Encode(&PinEvent{Event: Event{ID: "text"}}))(t), []byte("text"), []byte("t\xffxt"), 1)
	tests := []struct {
		name  string
		value []byte
	}{
		{"a block of 2^40", with(toInterests, 1<<40)},
		{"a block of 2^28", with(toInterests, 1<<28)},
		{"a block of 2^28 and a first item", with(toInterests, 1<<28, 1, 'a')},
		{"a block of 2^63-1", with(toInterests, math.MaxInt64)},
		{"a block of -2^63 and its size", with(toInterests, math.MinInt64, 0)},
		{"a block of -2^40 of no size", with(toInterests, -1<<40, 0)},
		{"block of another size than declared", append(with(toInterests, -1, 7), 0, 0, 0, 0, 0, 0, 0, 0)},
		{"a string of 2^40", with(toSkipped[:4], testID, 1<<40)},
		{"a string of -1", append(slices.Clone(toInterests[:5]), 1)},
		{"a map of 2^40", with(toAttributes, 1<<40)},
		{"a map of 2^28", with(toAttributes, 1<<28, 0, 0)},
		{"a number that never ends", append(slices.Clone(toInterests), bytes.Repeat([]byte{0xff}, 1000)...)},
		{"a number of 70 bits", append(framed(testID, "", bytes.Repeat([]byte{0xff}, 9)), 0x7f, 0, 0, 0, 0, 0, 0, 0, 0, 0)},
		{"a union's third branch", append(slices.Clone(toInterests[:10]), 4)},
		{"a union's branch -1", append(slices.Clone(toInterests[:10]), 1)},
		{"a block of 2^40 in a field that is skipped", with(toSkipped, 1<<40)},
		{"a block of -2^40 in a field that is skipped", with(toSkipped, -1<<40, 1<<40)},
		{"a block of -2^63 in a field that is skipped", with(toSkipped, math.MinInt64, math.MinInt64)},
		{"a mebibyte of ones", append([]byte{0, 0, 0, 0, testID}, bytes.Repeat([]byte{1}, MaxRecordBytes-5)...)},
		{"a mebibyte of twos", append([]byte{0, 0, 0, 0, testID}, bytes.Repeat([]byte{2}, MaxRecordBytes-5)...)},
		{"too long by a byte", framed(testID, strings.Repeat("i", MaxRecordBytes+1-frameHead-3-10), make([]byte, 10))},
		{"not framed", []byte{1, 0, 0, 0, 7}},
		{"four bytes", []byte{0, 0, 0, 0}},
		{"nothing", nil},
		{"no UTF-8", noText},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var err error
			allocated, took := soonest(func() { _, err = s.Decode(tt.value) })
			if err == nil {
				t.Fatal("it decodes, want an error")
			}
			checkBad(t, err)
			expect.AtMost(t, allocated, 16<<20, "allocated bytes")
			expect.AtMost(t, took, longestDecoding, "duration")
			expect.AtMost(t, len(err.Error()), 500, "bytes of the reason %.100s", err)
		})
	}
}

// hostileSchemas returns schemas whose field defaults make the library panic, or run out of memory or time.
func hostileSchemas() map[string]string {
	const double = `{"type":"record","name":"R%d","fields":[{"name":"a","type":%s,"default":{}},{"name":"b","type":"R%d","default":{}}]}`
	doubling, most := `{"type":"record","name":"R0","fields":[]}`, 40
	for i := range most {
		doubling = fmt.Sprintf(double, i+1, doubling, i)
	}
	var many []string
	for i := range 1000 {
		many = append(many, fmt.Sprintf(`{"name":"f%d","type":"F","default":"x"}`, i))
	}
	huge := `{"type":"fixed","name":"F","size":2147483647}`
	big := fmt.Sprintf(`{"type":"fixed","name":"F","size":%d}`, MaxRecordBytes)
	return map[string]string{
		"a union of nothing":   recordSchema("R", `{"name":"a","type":[],"default":null}`),
		"a record in itself":   recordSchema("R", `{"name":"a","type":"R","default":{}}`),
		"a fixed of gigabytes": recordSchema("R", `{"name":"a","type":`+huge+`,"default":"x"}`),
		"many that are big":    recordSchema("R", append([]string{fieldSchema("f", big)}, many...)...),
		"twice the next one":   doubling,
		"the same in capitals": strings.NewReplacer("fields", "FIELDS", "default", "Default").Replace(doubling),
	}
}

// TestDecode_RejectsHostileSchemas decodes records of such schemas, which only need a schema id.
func TestDecode_RejectsHostileSchemas(t *testing.T) {
	for name, text := range hostileSchemas() {
		t.Run(name, func(t *testing.T) {
			source := &asked{texts: texts{9: text}}
			s := serdeOf[PinEvent](t, source)
			decoded := make(chan error, 1)
			allocated, _ := cost(func() {
				go func() {
					for range 3 {
						_, err := s.Decode(framed(9, 0))
						decoded <- err
					}
				}()
				for range 3 {
					select {
					case err := <-decoded:
						checkBad(t, err)
					case <-time.After(eventually.Limit()): // without a bound on the work it does not return
						t.Fatal("still decoding")
					}
				}
			})
			expect.Equal(t, source.count(), 1, "requests of the schema")
			expect.AtMost(t, allocated, 64<<20, "allocated bytes")
		})
	}
}

// TestCodec_RejectsInvalidBodies checks that the library's wrapper rejects what conform would not have accepted.
func TestCodec_RejectsInvalidBodies(t *testing.T) {
	s := serdeOf[DeletedUser](t, texts{})
	whole := framed(testID, "user:7", 5)[frameHead:]
	must.OK(t, s.framing.codec.decode(whole, new(DeletedUser)))
	expect.Fails(t, s.framing.codec.decode(whole[:4], new(DeletedUser)), "truncated body")
	expect.Fails(t, s.framing.codec.decode(append(whole, 0), new(DeletedUser)), "trailing byte")
	expect.Fails(t, s.framing.codec.decode(appendLong(nil, 1<<40), new(DeletedUser)), "string of 2^40 bytes")
}

func TestConform(t *testing.T) {
	tests := []struct {
		name, schema string
		body         []byte
		want         string // the whole error; "" for none
	}{
		{"minimum int", `"int"`, appendLong(nil, math.MinInt32), ""},
		{"int out of range", `"int"`, appendLong(nil, math.MaxInt32+1), "number too long (byte 5 of 5)"},
		{"an int in six bytes", `"int"`, []byte{0x82, 0x80, 0x80, 0x80, 0x80, 0}, "number too long (byte 6 of 6)"},
		{"minimum long", `"long"`, appendLong(nil, math.MinInt64), ""},
		{"long out of range", `"long"`, append(bytes.Repeat([]byte{0xff}, 9), 2), "number too long (byte 0 of 10)"},
		{"true", `"boolean"`, []byte{1}, ""},
		{"invalid boolean", `"boolean"`, []byte{2}, "not a boolean (byte 0 of 1)"},
		{"two blocks, one with its size", `{"type":"array","items":"long"}`, []byte{2, 5, 3, 4, 6, 7, 0}, ""},
		{"a block of less than its size", `{"type":"array","items":"long"}`, []byte{1, 4, 6, 0}, "block does not have its declared size (byte 3 of 4)"},
		{"a block of more than can be", `{"type":"array","items":"double"}`, append([]byte{6}, make([]byte, 17)...), "block of 3 items in 17 bytes (byte 1 of 18)"},
		{"a map", `{"type":"map","values":"null"}`, []byte{2, 2, 'k', 0}, ""},
		{"an enum beyond", `{"type":"enum","name":"E","symbols":["A","B"]}`, appendLong(nil, 2), "choice 2 of 2 (byte 1 of 1)"},
		{"null with a trailing byte", `"null"`, []byte{0}, "1 trailing bytes"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			n := must.Get(parseSchema(tt.schema))(t)
			got := ""
			if err := conform(n, tt.body); err != nil {
				got = err.Error()
			}
			expect.Equal(t, got, tt.want, "error")
		})
	}
}

// TestConform_Numbers writes numbers that declare too much at every byte of every record.
func TestConform_Numbers(t *testing.T) {
	numbers := []int64{1 << 28, 1 << 40, math.MaxInt64, math.MinInt64, -1 << 40, -1}
	for _, r := range records(t, texts{}) {
		t.Run(r.name, func(t *testing.T) {
			value := mustEncode(t, r, full(r.zero))
			for at := frameHead; at < len(value); at++ {
				for _, n := range numbers {
					evil := slices.Concat(value[:at], appendLong(nil, n), value[at+1:])
					allocated, took := soonest(func() {
						if _, err := r.decode(evil); err != nil {
							checkBad(t, err)
						}
					})
					if allocated > 1<<20 || took > longestDecoding {
						t.Fatalf("%d at byte %d took %d bytes and %s", n, at, allocated, took)
					}
				}
			}
		})
	}
}

// TestDecode_FlippedBits decodes each record with each of its bits flipped. If it decodes, the result must encode again.
func TestDecode_FlippedBits(t *testing.T) {
	for _, r := range records(t, texts{}) {
		t.Run(r.name, func(t *testing.T) {
			value := mustEncode(t, r, full(r.zero))
			for bit := 8 * frameHead; bit < 8*len(value); bit++ {
				flipped := slices.Clone(value)
				flipped[bit/8] ^= 1 << (bit % 8)
				rec, err := r.decode(flipped)
				if err != nil {
					checkBad(t, err)
					continue
				}
				again := must.Get(r.decode(mustEncode(t, r, rec)))(t)
				expect.NoDiffBut(t, asOnWire, again, rec, "bit %d: decoded again", bit)
			}
		})
	}
}

// TestDecode_BoundsExpansion measures the decoded size of the longest records with the shortest items. Their declared sizes are correct,
// so they decode.
func TestDecode_BoundsExpansion(t *testing.T) {
	manyUsers := appendLong([]byte{0, 0, 0, 0, testID, 0, 0}, MaxRecordBytes-20)
	manyUsers = append(append(manyUsers, make([]byte, MaxRecordBytes-20)...), 0, 0, 0, 0)
	counts := ItemCounts{Counts: map[string]int64{}}
	for i := range 200_000 {
		counts.Counts[string([]byte{byte(i & 127), byte(i >> 7 & 127), byte(i >> 14)})] = 0
	}
	manyCounts := must.Get(serdeOf[ItemCounts](t, texts{}).Encode(&counts))(t)
	tests := []struct {
		name   string
		decode func() error
		most   uint64 // MiB
	}{
		{"a delivery to a million users without a name", func() error {
			d, err := serdeOf[Delivery](t, texts{}).Decode(manyUsers)
			if err == nil && len(d.Users) != MaxRecordBytes-20 {
				t.Errorf("%d users", len(d.Users))
			}
			return err
		}, 20},
		{"two hundred thousand counts", func() error {
			_, err := serdeOf[ItemCounts](t, texts{}).Decode(manyCounts)
			return err
		}, 40},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var err error
			allocated, took := cost(func() { err = tt.decode() })
			must.OK(t, err)
			t.Logf("%d KiB in %s", allocated>>10, took)
			expect.AtMost(t, allocated, tt.most<<20, "allocated bytes")
		})
	}
}

// TestDecode_DoesNotReferToValue overwrites the input after decoding, and appends to the decoded bytes.
func TestDecode_DoesNotReferToValue(t *testing.T) {
	for _, r := range records(t, texts{}) {
		value := mustEncode(t, r, full(r.zero))
		got := must.Get(r.decode(value))(t)
		for i := range value {
			value[i] = 'X'
		}
		expect.NoDiffBut(t, asOnWire, got, full(r.zero), "%s after a change of its input", r.name)
	}
	s := serdeOf[DeadLetter](t, texts{})
	value := must.Get(s.Encode(&DeadLetter{Key: []byte("key"), Value: []byte("value")}))(t)
	d := must.Get(s.Decode(value))(t)
	_ = append(d.Key, "-and-more"...)
	expect.Equal(t, string(d.Value), "value", "value after appending to the key")
}

func TestEncode_RejectsInvalidRecords(t *testing.T) {
	tests := []struct {
		name string
		err  func() error
	}{
		{"no record", func() error { _, err := serdeOf[Tick](t, texts{}).Encode(nil); return err }},
		{"text that is not UTF-8", func() error {
			_, err := serdeOf[Edge](t, texts{}).Encode(&Edge{User: "user:\xff"})
			return err
		}},
		{"a name of an attribute that is not UTF-8", func() error {
			_, err := serdeOf[UserEvent](t, texts{}).Encode(&UserEvent{Attributes: map[string]string{"\xff": ""}})
			return err
		}},
		{"too long", func() error {
			_, err := serdeOf[Card](t, texts{}).Encode(&Card{Title: string(make([]byte, MaxRecordBytes))})
			return err
		}},
	}
	for _, tt := range tests {
		expect.True(t, tt.err() != nil, "%s: an error", tt.name)
	}
	whole := &DeadLetter{Value: make([]byte, MaxRecordBytes), Reason: "too long"}
	s := serdeOf[DeadLetter](t, texts{})
	value := must.Get(s.Encode(whole))(t)
	expect.Equal(t, len(must.Get(s.Decode(value))(t).Value), MaxRecordBytes, "bytes of a dead letter of the longest record")
}
