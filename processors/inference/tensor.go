package inference

import (
	"context"
	"fmt"
	"slices"

	"github.com/smartfeed/smartfeed/internal/tensors"
	"github.com/smartfeed/smartfeed/processors/external"
)

func (m *Model) inferTensors(ctx context.Context, req Request) (Outputs, error) {
	n := len(req.Candidates)
	if n == 0 {
		return Outputs{}, nil
	}
	var decoded tensors.Response
	var outputs Outputs
	response := external.Body{JSON: &decoded}
	values := 64 + (16+2*n)*8 // at most eight outputs, or one of eight columns
	err := m.service.CallTensors(ctx, m.body(req), &response, values, func() (err error) {
		outputs, err = outputsOf(decoded.Outputs, req.Outputs, n, response.Tensors)
		return err
	})
	return outputs, err
}

// body returns the body of a request.
func (m *Model) body(req Request) external.Body {
	flat := slices.Concat(req.Values...)
	input := tensors.Tensor{Name: m.cfg.Input, Shape: []int{len(req.Candidates), len(m.cfg.Features)}, Datatype: "FP32", Data: flat}
	request := tensors.Request{Inputs: []tensors.Tensor{input}}
	for _, name := range req.Outputs {
		if name, _ = column(name); !slices.ContainsFunc(request.Outputs, func(t tensors.Tensor) bool { return t.Name == name }) {
			request.Outputs = append(request.Outputs, tensors.Tensor{Name: name})
		}
	}
	if m.cfg.Protocol != OpenInferenceBinary {
		return external.Body{JSON: request}
	}
	body := external.Body{Tensors: tensors.AppendFloats(nil, flat)}
	request.Inputs[0].Data, request.Inputs[0].Parameters = nil, &tensors.Parameters{BinaryDataSize: len(body.Tensors)}
	for i := range request.Outputs {
		request.Outputs[i].Parameters = &tensors.Parameters{BinaryData: true}
	}
	request.Parameters = &tensors.Parameters{BinaryDataOutput: true}
	body.JSON = request
	return body
}

// outputsOf returns the named outputs for n candidates, or without names the first output.
func outputsOf(all []tensors.Tensor, names []string, n int, binaries []byte) (Outputs, error) {
	decoded := map[string][]float64{}
	for i := range all {
		values, rest, err := numbersOf(&all[i], n, binaries)
		if err != nil {
			return nil, fmt.Errorf("output %q: %w", all[i].Name, err)
		}
		decoded[all[i].Name], binaries = values, rest
	}
	if len(names) == 0 && len(all) > 0 {
		names = []string{all[0].Name}
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

// numbersOf returns the numbers of an output, and the bytes of the following ones.
func numbersOf(t *tensors.Tensor, n int, binaries []byte) (values []float64, rest []byte, err error) {
	if t.Parameters != nil && t.Parameters.BinaryDataSize > 0 {
		size := t.Parameters.BinaryDataSize
		if size > len(binaries) {
			return nil, nil, fmt.Errorf("%d bytes: the response has %d", size, len(binaries))
		}
		values, err = tensors.Numbers(t.Datatype, binaries[:size])
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
