package schemas

import (
	"errors"
	"slices"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/smartfeed/smartfeed/internal/testkit/expect"
	"github.com/smartfeed/smartfeed/internal/testkit/must"
)

// FuzzDecode decodes arbitrary bodies of every record type. A decoded record must encode, and decode to the same record.
func FuzzDecode(f *testing.F) {
	all := records(f, texts{})
	for i, r := range all {
		value := mustEncode(f, r, full(r.zero))
		f.Add(uint8(i), value[frameHead:])
		f.Add(uint8(i), value[frameHead:(frameHead+len(value))/2])
		f.Add(uint8(i), appendLong(nil, 1<<40))
	}
	f.Fuzz(func(t *testing.T, which uint8, body []byte) {
		r := all[int(which)%len(all)]
		rec, err := r.decode(slices.Concat([]byte{0, 0, 0, 0, testID}, body))
		if err != nil {
			checkBad(t, err)
			return
		}
		again := must.Get(r.decode(mustEncode(t, r, rec)))(t)
		expect.NoDiffBut(t, asOnWire, again, rec, "decoded again")
	})
}

// FuzzDecodeOther decodes arbitrary bodies of arbitrary writers as an event and as a record of records.
func FuzzDecodeOther(f *testing.F) {
	for _, r := range records(f, texts{}) {
		f.Add(r.schema, mustEncode(f, r, full(r.zero))[frameHead:])
	}
	f.Add(recordSchema("ActionEvent", fieldSchema("x", `{"type":"array","items":"string"}`)), appendLong(nil, -1<<40))
	f.Add(`{"type":"record","name":"R","fields":[{"name":"next","type":["null","R"]}]}`, []byte{2, 2, 2, 0})
	for _, text := range hostileSchemas() {
		f.Add(text, []byte{0})
	}
	f.Fuzz(func(t *testing.T, schema string, body []byte) {
		value := slices.Concat([]byte{0, 0, 0, 0, 9}, body)
		if _, err := serdeOf[ActionEvent](t, texts{9: schema}).Decode(value); err != nil {
			checkBad(t, err)
		}
		if _, err := serdeOf[Served](t, texts{9: schema}).Decode(value); err != nil {
			checkBad(t, err)
		}
	})
}

// FuzzResolve reads damaged bodies of one random schema with another.
func FuzzResolve(f *testing.F) {
	f.Fuzz(rapid.MakeFuzz(func(t *rapid.T) {
		r, err := parseReader(drawRecord(t, 3, map[string]int{}))
		if err != nil {
			t.Skip(err)
		}
		w, err := parseSchema(drawRecord(t, 3, map[string]int{}))
		if err != nil {
			t.Skip(err)
		}
		body := drawBody(t, nil, w)
		for _, at := range rapid.SliceOfN(rapid.IntRange(0, len(body)), 0, 3).Draw(t, "damage") {
			body = slices.Concat(body[:at], appendLong(nil, rapid.Int64().Draw(t, "number")), body[min(at+1, len(body)):])
		}
		step, problems := resolve(r, w)
		if conform(w, body) != nil {
			return
		}
		rewritten, err := step(&cursor{b: body}, nil)
		if err != nil {
			return
		}
		if err := conform(r, rewritten); err != nil && len(problems) == 0 && !errors.Is(err, errText) {
			t.Fatalf("rewritten body does not conform: %v", err)
		}
	}))
}

// FuzzParseLine parses arbitrary lines. A parsed event must be written, and parse to the same event.
func FuzzParseLine(f *testing.F) {
	for _, r := range inputRecords(f, texts{}) {
		line := must.Get(AppendLine(nil, NewLine(full(r.zero).(Input))))(f)
		f.Add(line)
		f.Add(line[:len(line)/2])
	}
	f.Add([]byte(`{"stream":"pins","time":"2026-11-20T10:00:00.123Z","title":"\ud83d\ude00 \ud800 \"","board":null,"embedding":[1e3,-0.0]}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		line, err := ParseLine(text)
		if err != nil {
			checkBad(t, err)
			return
		}
		written := must.Get(AppendLine(nil, line))(t)
		again, err := ParseLine(written)
		if err != nil {
			t.Fatalf("%v in %s", err, written)
		}
		expect.NoDiffBut(t, asOnWire, again, line, "parsed again")
		if err := line.Validate(arrival, DefaultVerbs()); err != nil {
			checkBad(t, err)
		}
	})
}

// FuzzParseID checks that accepted ids follow the documented rules.
func FuzzParseID(f *testing.F) {
	for _, s := range []string{"", "user:7", "pin:", ":", "board:a:b", "interest:\x7f", "pin:\u0085", "user:\xff", "video:1"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		id, err := ParseID(s)
		if err != nil {
			expect.True(t, utf8.ValidString(err.Error()), "reason %q is UTF-8", err)
			return
		}
		if string(id) != s || id.Kind()+":"+id.Name() != s || id.Name() == "" {
			t.Errorf("%q became %q, kind %q, name %q", s, id, id.Kind(), id.Name())
		}
		expect.False(t, len(s) > MaxIDBytes || !utf8.ValidString(s), "%q passed", s)
		for _, r := range s {
			expect.False(t, r < ' ' || r >= 0x7f && r < 0xa0, "%q passed with control character %U", s, r)
		}
	})
}

// FuzzParseSchema parses arbitrary schemas. Each one that can be parsed reads itself.
func FuzzParseSchema(f *testing.F) {
	for _, r := range records(f, texts{}) {
		f.Add(r.schema)
	}
	f.Add(`["null",{"type":"enum","name":"E","symbols":["A"],"default":"A"}]`)
	f.Add(`[{"type":"record","name":"n.R","fields":[{"name":"x","type":"int"}]},{"type":"record","name":"m.R","fields":[{"name":"x","type":"string"}]}]`)
	f.Add(`[{"type":"long","logicalType":"timestamp-millis"},{"type":"long","logicalType":"timestamp-micros"}]`)
	for _, text := range hostileSchemas() {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		n, err := parseSchema(text)
		if err != nil {
			return
		}
		_, problems := resolve(n, n)
		expect.NoDiff(t, problems, nil, "%s reads itself: problems", text)
	})
}
