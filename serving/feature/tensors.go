package feature

import (
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/smartfeed/smartfeed/internal/convert"
	"github.com/smartfeed/smartfeed/internal/tensors"
	"github.com/smartfeed/smartfeed/schemas"
)

// tensorAnswer is the JSON of an answer as tensors.
type tensorAnswer struct {
	ModelName  string `json:"model_name"`
	Parameters struct {
		AsOf     time.Time `json:"as_of"`
		Degraded string    `json:"degraded"`
	} `json:"parameters"`
	tensors.Response
}

// Tensors returns the answer to a request as tensors, in the binary form of the Open Inference Protocol v2: JSON, and the bytes that
// follow it. It has these outputs:
//
//	FEATURE         FP64 [entities]: the numbers of a feature, NaN: missing; entities in the order of the request, each once
//	SEQUENCE.length INT32 [users]: the number of actions of each user, -1: missing
//	SEQUENCE.time   INT64 [actions]: milliseconds since 1970-01-01 UTC, of the first user's actions, newest first, then of the
//	                second user's …
//	SEQUENCE.PATH   BYTES [actions], or of embeddings FP32 or INT8 [actions, elements]; zeros for an action without an
//	                embedding, or with another number of elements than the first one
//	SEQUENCE.scale.PATH  FP32 [actions]: the scales of INT8
//
// It returns a *RequestError if the values of a feature are neither numbers nor a sequence.
func (a Answer) Tensors(defs []Definition, req Request) (head, data []byte, err error) {
	set, err := newDefinitionSet(defs)
	if err != nil {
		return nil, nil, err
	}
	q, err := req.checked(set, 0)
	if err != nil {
		return nil, nil, err
	}
	entities := map[Entity][]string{User: schemas.Strings(q.users), Pin: schemas.Strings(q.pins)}
	for _, p := range q.pairs {
		entities[Pair] = append(entities[Pair], p.String())
	}
	answer, problems := tensorAnswer{ModelName: "features"}, checker{}
	answer.Parameters.AsOf, answer.Parameters.Degraded = a.AsOf, strings.Join(a.Degraded, ",")
	for _, d := range slices.Concat(q.ofUser, q.ofPin, q.ofPair) {
		switch {
		case d.Aggregate == TakeSequence:
			answer.Outputs = append(answer.Outputs, sequenceTensors(a, d, entities[User])...)
		case d.isNumber():
			answer.Outputs = append(answer.Outputs, numberTensor(a, d.Name, entities[d.Entity]))
		default:
			problems.problem("features: the values of %s have no tensor: want a number or a sequence", d.Name)
		}
	}
	if len(problems.problems) > 0 {
		return nil, nil, &RequestError{problems.problems}
	}
	data = tensors.Cut(answer.Outputs)
	head, err = json.Marshal(answer)
	return head, data, err
}

func numberTensor(a Answer, feature string, entities []string) tensors.Tensor {
	numbers := convert.All(entities, func(entity string) float64 { return a.number(feature, entity) })
	return tensors.Tensor{Name: feature, Datatype: "FP64", Shape: []int{len(numbers)}, Data: numbers}
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
	t.Datatype, t.Data = "INT8", convert.All(floats, func(x float32) int8 { return int8(x) })
	scale := tensors.Tensor{Name: d.Name + "." + scalePrefix + p.String(), Datatype: "FP32", Shape: []int{len(c.Scales)}, Data: c.Scales}
	return []tensors.Tensor{t, scale}
}
