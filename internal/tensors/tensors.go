// Package tensors has tensors of the Open Inference Protocol v2, in JSON or, with its binary tensor data extension, as bytes
// after the JSON:
// https://github.com/kserve/open-inference-protocol/blob/main/specification/protocol/inference_rest.md and
// https://docs.nvidia.com/deeplearning/triton-inference-server/user-guide/docs/protocol/extension_binary_data.html.
package tensors

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"
)

// Header is the HTTP header with the number of bytes of the JSON before the bytes of tensors.
const Header = "Inference-Header-Content-Length"

// Request is a request for an inference.
type Request struct {
	Inputs     []Tensor    `json:"inputs"`
	Outputs    []Tensor    `json:"outputs,omitempty"`
	Parameters *Parameters `json:"parameters,omitempty"`
}

// Response is the response to a Request.
type Response struct {
	Outputs []Tensor `json:"outputs"`
}

// Tensor is an input, an output, or the name of a requested output.
type Tensor struct {
	Name       string      `json:"name"`
	Shape      []int       `json:"shape,omitempty"`
	Datatype   string      `json:"datatype,omitempty"`
	Data       any         `json:"data,omitempty"` // a slice of numbers of the datatype or of strings, or decoded JSON
	Parameters *Parameters `json:"parameters,omitempty"`
}

// Parameters are the parameters of tensors as bytes.
type Parameters struct {
	BinaryDataSize   int  `json:"binary_data_size,omitempty"`   // of an input or an output: bytes after the JSON
	BinaryData       bool `json:"binary_data,omitempty"`        // of a requested output: as bytes
	BinaryDataOutput bool `json:"binary_data_output,omitempty"` // of a request: all outputs as bytes
}

// Cut removes the data from tensors, and returns them as the bytes after the JSON. Texts have the type BYTES.
func Cut(list []Tensor) (data []byte) {
	for i := range list {
		t, before := &list[i], len(data)
		if texts, ok := t.Data.([]string); ok {
			for _, text := range texts {
				data = append(binary.LittleEndian.AppendUint32(data, uint32(len(text))), text...)
			}
		} else {
			data, _ = binary.Append(data, binary.LittleEndian, t.Data) // the size of the numbers is known
		}
		t.Data, t.Parameters = nil, &Parameters{BinaryDataSize: len(data) - before}
	}
	return data
}

// Numbers returns the numbers of a tensor in row-major order, from its JSON or from the first of the bytes after the JSON. It also
// returns the bytes of the following tensors.
func (t *Tensor) Numbers(data []byte) (values []float64, rest []byte, err error) {
	if t.Parameters == nil || t.Parameters.BinaryDataSize <= 0 {
		values, err = flatten(nil, t.Data)
		return values, data, err
	}
	size := t.Parameters.BinaryDataSize
	if size > len(data) {
		return nil, nil, fmt.Errorf("%d bytes: the response has %d", size, len(data))
	}
	values, err = numbers(t.Datatype, data[:size])
	return values, data[size:], err
}

// flatten appends the numbers of a tensor in JSON: a list, or nested lists.
func flatten(to []float64, data any) (_ []float64, err error) {
	switch v := data.(type) {
	case float64:
		return append(to, v), nil
	case []any:
		for i := 0; i < len(v) && err == nil; i++ {
			to, err = flatten(to, v[i])
		}
		return to, err
	}
	return nil, fmt.Errorf("data has a %T: want numbers", data)
}

// numbers decodes the bytes of a tensor of numbers.
func numbers(datatype string, data []byte) (values []float64, err error) {
	size := map[string]int{"FP32": 4, "FP64": 8, "INT32": 4, "INT64": 8}[datatype]
	if size == 0 || len(data)%size != 0 {
		return nil, fmt.Errorf("%d bytes of type %q: want FP32, FP64, INT32 or INT64", len(data), datatype)
	}
	for number := range slices.Chunk(data, size) {
		switch datatype {
		case "FP32":
			values = append(values, float64(math.Float32frombits(binary.LittleEndian.Uint32(number))))
		case "FP64":
			values = append(values, math.Float64frombits(binary.LittleEndian.Uint64(number)))
		case "INT32":
			values = append(values, float64(int32(binary.LittleEndian.Uint32(number))))
		case "INT64":
			values = append(values, float64(int64(binary.LittleEndian.Uint64(number))))
		}
	}
	return values, nil
}
