package feature

import (
	"encoding/binary"
	"encoding/json"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/smartfeed/smartfeed/internal/tensors"
	"github.com/smartfeed/smartfeed/internal/testkit/expect"
	"github.com/smartfeed/smartfeed/internal/testkit/must"
	"github.com/smartfeed/smartfeed/schemas"
)

const tensorDefinitions = `
features:
- {name: n, entity: user, aggregate: count}
- {name: p, entity: pin, aggregate: count}
- {name: q, entity: pair, aggregate: count, group_by: object}
- {name: s, entity: user, aggregate: sequence, columns: [verb, objectAttributes.embedding], embedding: int8}
- {name: g, entity: user, aggregate: count, group_by: verb}
`

func TestTensors(t *testing.T) {
	defs := must.Get(Parse("f", []byte(tensorDefinitions)))(t)
	req := Request{
		Features: []string{"s", "n", "p", "q"}, Users: []schemas.UserID{"user:b", "user:a", "user:b", "user:c"},
		Pins: []schemas.PinID{"pin:1"}, Pairs: []UserPin{{"user:a", "pin:1"}},
	}
	column := func(texts []string, vectors [][]float32, scales ...float32) map[string]Column {
		return map[string]Column{"verb": {Texts: texts}, "objectAttributes.embedding": {Vectors: vectors, Scales: scales}}
	}
	answer := Answer{AsOf: now.Time(), Degraded: []string{"deadline", "store"}, Values: map[string]map[string]Value{
		"user:a": {"n": Number(2), "s": Sequence{[]int64{9, 7}, column([]string{"save", ""}, [][]float32{nil, {1, 2, 3}}, 0, 0.5)}},
		"user:b": {"n": nil, "s": Sequence{[]int64{-1}, column([]string{"é"}, [][]float32{{-127, 5}}, 0.25)}},
		"user:c": {"n": Number(0.5), "s": nil}, "pin:1": {"p": Number(3)}, "user:a|pin:1": {"q": Number(4)},
	}}
	head, data, err := answer.Tensors(defs, req)
	must.OK(t, err)
	var decoded struct {
		Model   string            `json:"model_name"`
		Said    map[string]string `json:"parameters"`
		Outputs []tensors.Tensor  `json:"outputs"`
	}
	must.OK(t, json.Unmarshal(head, &decoded))
	if decoded.Model != "features" || decoded.Said["degraded"] != "deadline,store" || !strings.HasPrefix(decoded.Said["as_of"], "2023-11-14T") {
		t.Errorf("got %s", head)
	}
	number := func(values ...float64) (b []byte) {
		for _, x := range values {
			b = binary.LittleEndian.AppendUint64(b, math.Float64bits(x))
		}
		return b
	}
	for _, want := range []struct {
		name, datatype string
		shape          []int
		data           string
	}{
		{"s.length", "INT32", []int{3}, "\x01\x00\x00\x00\x02\x00\x00\x00\xff\xff\xff\xff"},
		{"s.time", "INT64", []int{3}, "\xff\xff\xff\xff\xff\xff\xff\xff\x09\x00\x00\x00\x00\x00\x00\x00\x07\x00\x00\x00\x00\x00\x00\x00"},
		{"s.verb", "BYTES", []int{3}, "\x02\x00\x00\x00é\x04\x00\x00\x00save\x00\x00\x00\x00"},
		{"s.objectAttributes.embedding", "INT8", []int{3, 2}, "\x81\x05\x00\x00\x00\x00"}, // the first length counts
		{"s.scale.objectAttributes.embedding", "FP32", []int{3}, "\x00\x00\x80\x3e\x00\x00\x00\x00\x00\x00\x00\x3f"},
		{"n", "FP64", []int{3}, string(number(math.NaN(), 2, 0.5))},
		{"p", "FP64", []int{1}, string(number(3))},
		{"q", "FP64", []int{1}, string(number(4))},
	} {
		got := decoded.Outputs[0]
		decoded.Outputs = decoded.Outputs[1:]
		size := got.Parameters.BinaryDataSize
		if got.Name != want.name || got.Datatype != want.datatype || !cmp.Equal(got.Shape, want.shape) || string(data[:size]) != want.data {
			t.Errorf("%s: got %+v with %q, want %+v", want.name, got, data[:size], want)
		}
		data = data[size:]
	}
	expect.True(t, len(decoded.Outputs) == 0 && len(data) == 0, "no further outputs: %v, %d bytes", decoded.Outputs, len(data))
}

func TestTensors_RejectsOtherValues(t *testing.T) {
	defs := must.Get(Parse("f", []byte(tensorDefinitions)))(t)
	for want, features := range map[string][]string{"the values of g have no tensor: want a number or a sequence": {"n", "g"}, `"x" is not defined`: {"x"}} {
		_, _, err := Answer{}.Tensors(defs, Request{Features: features, Users: []schemas.UserID{"user:a"}})
		must.As[*RequestError](t, err)
		expect.Error(t, err, want, "%v", features)
	}
}
