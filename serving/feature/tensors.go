package feature

import (
	"encoding/binary"
	"encoding/json"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/smartfeed/smartfeed/internal/tensors"
	"github.com/smartfeed/smartfeed/schemas"
)

// TensorForm is the form of an answer as tensors, in the binary form of the Open Inference Protocol v2. It has these outputs:
//
//	FEATURE         FP64 [entities]: the numbers of a feature, NaN: missing; entities in the order of the request, each once
//	SEQUENCE.length INT32 [users]: the number of actions of each user, -1: missing
//	SEQUENCE.time   INT64 [actions]: milliseconds since 1970-01-01 UTC, of the first user's actions, newest first, then of the
//	                second user's …
//	SEQUENCE.PATH   BYTES [actions], or of embeddings FP32 or INT8 [actions, elements]; zeros for an action without an
//	                embedding, or with another number of elements than the first one
//	SEQUENCE.scale.PATH  FP32 [actions]: the scales of INT8
type TensorForm struct{ query }

// NewTensorForm returns the form of the answers to a request. It returns a *RequestError if the request is invalid, or if the
// values of a feature are neither numbers nor a sequence.
func NewTensorForm(defs []Definition, req Request) (*TensorForm, error) {
	set, err := newDefinitionSet(defs)
	if err != nil {
		return nil, err
	}
	q, err := req.checked(set, 0)
	if err != nil {
		return nil, err
	}
	c := &checker{}
	for _, d := range slices.Concat(q.ofUser, q.ofPin, q.ofPair) {
		if !d.isNumber() && d.Aggregate != TakeSequence {
			c.problem("features: the values of %s have no tensor: want a number or a sequence", d.Name)
		}
	}
	if len(c.problems) > 0 {
		return nil, &RequestError{Problems: c.problems}
	}
	return &TensorForm{q}, nil
}

// Encode returns the JSON of an answer and the bytes of its tensors, which follow the JSON.
func (t *TensorForm) Encode(a Answer) (head, data []byte, err error) {
	var e tensorEncoder
	for _, d := range t.ofUser {
		if d.Aggregate == TakeSequence {
			e.sequences(a, d, t.users)
		} else {
			e.numbers(a, d.Name, schemas.Texts(t.users))
		}
	}
	for _, d := range t.ofPin {
		e.numbers(a, d.Name, schemas.Texts(t.pins))
	}
	var pairs []string
	for _, p := range t.pairs {
		pairs = append(pairs, p.String())
	}
	for _, d := range t.ofPair {
		e.numbers(a, d.Name, pairs)
	}
	e.head.ModelName, e.head.Parameters.Degraded = "features", strings.Join(a.Degraded, ",")
	e.head.Parameters.AsOf = a.AsOf
	head, err = json.Marshal(e.head)
	return head, e.data, err
}

type tensorEncoder struct {
	head struct {
		ModelName  string `json:"model_name"`
		Parameters struct {
			AsOf     time.Time `json:"as_of"`
			Degraded string    `json:"degraded"`
		} `json:"parameters"`
		tensors.Response
	}
	data []byte
}

// output adds an output whose bytes add appends.
func (e *tensorEncoder) output(name, datatype string, shape []int, add func([]byte) []byte) {
	before := len(e.data)
	e.data = add(e.data)
	e.head.Outputs = append(e.head.Outputs, tensors.Tensor{
		Name: name, Datatype: datatype, Shape: shape, Parameters: &tensors.Parameters{BinaryDataSize: len(e.data) - before},
	})
}

func (e *tensorEncoder) numbers(a Answer, feature string, entities []string) {
	e.output(feature, "FP64", []int{len(entities)}, func(b []byte) []byte {
		for _, entity := range entities {
			x, ok := a.Values[entity][feature].(Number)
			if !ok {
				x = Number(math.NaN())
			}
			b = binary.LittleEndian.AppendUint64(b, math.Float64bits(float64(x)))
		}
		return b
	})
}

func (e *tensorEncoder) sequences(a Answer, d Definition, users []schemas.UserID) {
	all, actions := make([]Sequence, len(users)), 0
	e.output(d.Name+".length", "INT32", []int{len(users)}, func(b []byte) []byte {
		for i, user := range users {
			length := -1
			if s, ok := a.Values[string(user)][d.Name].(Sequence); ok {
				all[i], length = s, len(s.Times)
			}
			actions += max(0, length)
			b = binary.LittleEndian.AppendUint32(b, uint32(int32(length)))
		}
		return b
	})
	e.output(d.Name+"."+timeColumn, "INT64", []int{actions}, func(b []byte) []byte {
		for _, s := range all {
			for _, at := range s.Times {
				b = binary.LittleEndian.AppendUint64(b, uint64(at))
			}
		}
		return b
	})
	for _, p := range d.Columns {
		whole := Column{}
		for _, s := range all {
			c := s.Columns[p.String()]
			whole.Texts, whole.Vectors, whole.Scales = append(whole.Texts, c.Texts...), append(whole.Vectors, c.Vectors...), append(whole.Scales, c.Scales...)
		}
		e.column(d, p, whole)
	}
}

// column adds the outputs of a column of all users.
func (e *tensorEncoder) column(d Definition, p Path, c Column) {
	name := d.Name + "." + p.String()
	if !p.isVector() {
		e.output(name, "BYTES", []int{len(c.Texts)}, func(b []byte) []byte {
			for _, text := range c.Texts {
				b = tensors.AppendText(b, text)
			}
			return b
		})
		return
	}
	c.dropOtherLengths()
	elements := 0
	for _, v := range c.Vectors {
		elements = max(elements, len(v))
	}
	datatype, add := "FP32", tensors.AppendFloats
	if d.Embedding == Int8 {
		datatype, add = "INT8", tensors.AppendBytes
	}
	e.output(name, datatype, []int{len(c.Vectors), elements}, func(b []byte) []byte {
		zeros := make([]float32, elements)
		for _, v := range c.Vectors {
			if v == nil {
				v = zeros
			}
			b = add(b, v)
		}
		return b
	})
	if d.Embedding == Int8 {
		e.output(d.Name+"."+scalePrefix+p.String(), "FP32", []int{len(c.Scales)}, func(b []byte) []byte { return tensors.AppendFloats(b, c.Scales) })
	}
}
