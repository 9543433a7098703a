package inference

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"slices"

	"github.com/smartfeed/smartfeed/processors/external"
)

// The types below are those of the Open Inference Protocol v2 and its binary tensor data extension:
// https://github.com/kserve/open-inference-protocol/blob/main/specification/protocol/inference_rest.md and
// https://docs.nvidia.com/deeplearning/triton-inference-server/user-guide/docs/protocol/extension_binary_data.html.

type tensorRequest struct {
	Inputs     []tensor    `json:"inputs"`
	Outputs    []tensor    `json:"outputs,omitempty"`
	Parameters *parameters `json:"parameters,omitempty"`
}

type tensorResponse struct {
	Outputs []tensor `json:"outputs"`
}

// tensor is an input, an output, or the name of a requested output.
type tensor struct {
	Name       string      `json:"name"`
	Shape      []int       `json:"shape,omitempty"`
	Datatype   string      `json:"datatype,omitempty"`
	Data       any         `json:"data,omitempty"` // []float32, or decoded JSON
	Parameters *parameters `json:"parameters,omitempty"`
}

type parameters struct {
	BinaryDataSize   int  `json:"binary_data_size,omitempty"`   // of an input or an output: bytes after the JSON
	BinaryData       bool `json:"binary_data,omitempty"`        // of a requested output: as bytes
	BinaryDataOutput bool `json:"binary_data_output,omitempty"` // of a request: all outputs as bytes
}

func (m *Model) inferTensors(ctx context.Context, req Request) (Outputs, error) {
	n := len(req.Candidates)
	if n == 0 {
		return Outputs{}, nil
	}
	var decoded tensorResponse
	var outputs Outputs
	response := external.Body{JSON: &decoded}
	values := 64 + (16+2*n)*8 // at most eight outputs, or one of eight columns
	err := m.service.CallTensors(ctx, m.tensors(req), &response, values, func() (err error) {
		outputs, err = decoded.outputs(req.Outputs, n, response.Tensors)
		return err
	})
	return outputs, err
}

// tensors returns the body of a request.
func (m *Model) tensors(req Request) external.Body {
	flat := slices.Concat(req.Values...)
	input := tensor{Name: m.cfg.Input, Shape: []int{len(req.Candidates), len(m.cfg.Features)}, Datatype: "FP32", Data: flat}
	request := tensorRequest{Inputs: []tensor{input}}
	for _, name := range req.Outputs {
		if name, _ = column(name); !slices.ContainsFunc(request.Outputs, func(t tensor) bool { return t.Name == name }) {
			request.Outputs = append(request.Outputs, tensor{Name: name})
		}
	}
	if m.cfg.Protocol != OpenInferenceBinary {
		return external.Body{JSON: request}
	}
	body := external.Body{Tensors: make([]byte, 0, 4*len(flat))}
	for _, v := range flat {
		body.Tensors = binary.LittleEndian.AppendUint32(body.Tensors, math.Float32bits(v))
	}
	request.Inputs[0].Data, request.Inputs[0].Parameters = nil, &parameters{BinaryDataSize: len(body.Tensors)}
	for i := range request.Outputs {
		request.Outputs[i].Parameters = &parameters{BinaryData: true}
	}
	request.Parameters = &parameters{BinaryDataOutput: true}
	body.JSON = request
	return body
}

// outputs returns the named outputs for n candidates, or without names the first output.
func (r tensorResponse) outputs(names []string, n int, binaries []byte) (Outputs, error) {
	decoded := map[string][]float64{}
	for i := range r.Outputs {
		values, rest, err := r.Outputs[i].values(n, binaries)
		if err != nil {
			return nil, fmt.Errorf("output %q: %w", r.Outputs[i].Name, err)
		}
		decoded[r.Outputs[i].Name], binaries = values, rest
	}
	if len(names) == 0 && len(r.Outputs) > 0 {
		names = []string{r.Outputs[0].Name}
	}
	outputs := make(Outputs, len(names))
	for _, name := range names {
		output, col := column(name)
		values, found := decoded[output]
		columns := len(values) / n
		switch {
		case !found:
			return nil, fmt.Errorf("output %q is missing", output)
		case col >= columns || col < 0 && columns != 1:
			return nil, fmt.Errorf("output %q has %d columns for %d candidates: want one, or its number as in %[1]q[1]", output, columns, n)
		}
		outputs[name] = make([]float64, n)
		for i := range n {
			outputs[name][i] = values[i*columns+max(col, 0)]
		}
	}
	return outputs, nil
}

// values returns the numbers of an output, and the bytes of the following ones.
func (t *tensor) values(n int, binaries []byte) (values []float64, rest []byte, err error) {
	if t.Parameters != nil && t.Parameters.BinaryDataSize > 0 {
		size := t.Parameters.BinaryDataSize
		if size > len(binaries) {
			return nil, nil, fmt.Errorf("%d bytes: the response has %d", size, len(binaries))
		}
		values, err = numbers(t.Datatype, binaries[:size])
		rest = binaries[size:]
	} else {
		values, err = flatten(nil, t.Data)
		rest = binaries
	}
	if err == nil && (len(values) == 0 || len(values)%n != 0) {
		err = fmt.Errorf("%d numbers of shape %v: want the same number for each of %d candidates", len(values), t.Shape, n)
	}
	return values, rest, err
}

// numbers decodes the bytes of a tensor.
func numbers(datatype string, data []byte) ([]float64, error) {
	size := map[string]int{"FP32": 4, "FP64": 8, "INT32": 4, "INT64": 8}[datatype]
	if size == 0 || len(data)%size != 0 {
		return nil, fmt.Errorf("%d bytes of type %q: want FP32, FP64, INT32 or INT64", len(data), datatype)
	}
	values := make([]float64, 0, len(data)/size)
	for ; len(data) > 0; data = data[size:] {
		switch datatype {
		case "FP32":
			values = append(values, float64(math.Float32frombits(binary.LittleEndian.Uint32(data))))
		case "FP64":
			values = append(values, math.Float64frombits(binary.LittleEndian.Uint64(data)))
		case "INT32":
			values = append(values, float64(int32(binary.LittleEndian.Uint32(data))))
		case "INT64":
			values = append(values, float64(int64(binary.LittleEndian.Uint64(data))))
		}
	}
	return values, nil
}

// flatten appends the numbers of a tensor in JSON: a list, or nested lists, in row-major order.
func flatten(to []float64, data any) ([]float64, error) {
	switch v := data.(type) {
	case float64:
		return append(to, v), nil
	case []any:
		for _, element := range v {
			var err error
			if to, err = flatten(to, element); err != nil {
				return nil, err
			}
		}
		return to, nil
	}
	return nil, fmt.Errorf("data has a %T: want numbers", data)
}
