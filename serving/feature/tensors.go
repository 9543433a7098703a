package feature

import (
	"encoding/json"
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

// tensorAnswer is the JSON of an answer as tensors.
type tensorAnswer struct {
	ModelName  string `json:"model_name"`
	Parameters struct {
		AsOf     time.Time `json:"as_of"`
		Degraded string    `json:"degraded"`
	} `json:"parameters"`
	tensors.Response
}

// Encode returns the JSON of an answer and the bytes of its tensors, which follow the JSON.
func (t *TensorForm) Encode(a Answer) (head, data []byte, err error) {
	entities := map[Entity][]string{User: schemas.Strings(t.users), Pin: schemas.Strings(t.pins)}
	for _, p := range t.pairs {
		entities[Pair] = append(entities[Pair], p.String())
	}
	answer := tensorAnswer{ModelName: "features"}
	answer.Parameters.AsOf, answer.Parameters.Degraded = a.AsOf, strings.Join(a.Degraded, ",")
	for _, d := range slices.Concat(t.ofUser, t.ofPin, t.ofPair) {
		if d.Aggregate == TakeSequence {
			answer.Outputs = append(answer.Outputs, sequenceTensors(a, d, entities[User])...)
			continue
		}
		numbers := make([]float64, len(entities[d.Entity]))
		for i, entity := range entities[d.Entity] {
			numbers[i] = a.number(d.Name, entity)
		}
		answer.Outputs = append(answer.Outputs, tensors.Tensor{Name: d.Name, Datatype: "FP64", Shape: []int{len(numbers)}, Data: numbers})
	}
	data = tensors.Cut(answer.Outputs)
	head, err = json.Marshal(answer)
	return head, data, err
}

// sequenceTensors returns the tensors of a sequence of users.
func sequenceTensors(a Answer, d Definition, users []string) []tensors.Tensor {
	lengths, times, columns := make([]int32, len(users)), []int64{}, make([]Column, len(d.Columns))
	for i, user := range users {
		s, ok := a.Values[user][d.Name].(Sequence)
		if lengths[i] = int32(len(s.Times)); !ok {
			lengths[i] = -1
		}
		times = append(times, s.Times...)
		for k, p := range d.Columns {
			c, all := s.Columns[p.String()], &columns[k]
			all.Texts, all.Vectors, all.Scales = append(all.Texts, c.Texts...), append(all.Vectors, c.Vectors...), append(all.Scales, c.Scales...)
		}
	}
	list := []tensors.Tensor{
		{Name: d.Name + ".length", Datatype: "INT32", Shape: []int{len(users)}, Data: lengths},
		{Name: d.Name + "." + timeColumn, Datatype: "INT64", Shape: []int{len(times)}, Data: times},
	}
	for k, p := range d.Columns {
		list = append(list, columns[k].tensors(d, p)...)
	}
	return list
}

// tensors returns the tensors of a column of all users.
func (c Column) tensors(d Definition, p Path) []tensors.Tensor {
	t := tensors.Tensor{Name: d.Name + "." + p.String(), Datatype: "BYTES", Shape: []int{len(c.Texts)}, Data: c.Texts}
	if !p.isVector() {
		return []tensors.Tensor{t}
	}
	c.dropOtherLengths()
	elements := 0
	for _, v := range c.Vectors {
		elements = max(elements, len(v))
	}
	floats := make([]float32, len(c.Vectors)*elements)
	for i, v := range c.Vectors {
		copy(floats[i*elements:], v)
	}
	t.Datatype, t.Shape, t.Data = "FP32", []int{len(c.Vectors), elements}, floats
	if d.Embedding != Int8 {
		return []tensors.Tensor{t}
	}
	whole := make([]int8, len(floats))
	for i, x := range floats {
		whole[i] = int8(x)
	}
	t.Datatype, t.Data = "INT8", whole
	scale := tensors.Tensor{Name: d.Name + "." + scalePrefix + p.String(), Datatype: "FP32", Shape: []int{len(c.Scales)}, Data: c.Scales}
	return []tensors.Tensor{t, scale}
}
