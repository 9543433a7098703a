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
	input := tensors.Tensor{
		Name: m.cfg.Input, Shape: []int{len(req.Candidates), len(m.cfg.Features)}, Datatype: "FP32", Data: slices.Concat(req.Values...),
	}
	request := tensors.Request{Inputs: []tensors.Tensor{input}}
	for _, name := range req.Outputs {
		if name, _ = column(name); !slices.ContainsFunc(request.Outputs, func(t tensors.Tensor) bool { return t.Name == name }) {
			request.Outputs = append(request.Outputs, tensors.Tensor{Name: name})
		}
	}
	if m.cfg.Protocol != OpenInferenceBinary {
		return external.Body{JSON: request}
	}
	for i := range request.Outputs {
		request.Outputs[i].Parameters = &tensors.Parameters{BinaryData: true}
	}
	request.Parameters = &tensors.Parameters{BinaryDataOutput: true}
	return external.Body{JSON: request, Tensors: tensors.Cut(request.Inputs)}
}

// outputsOf returns the named outputs for n candidates, or without names the first output.
func outputsOf(all []tensors.Tensor, names []string, n int, binaries []byte) (Outputs, error) {
	decoded := map[string][]float64{}
	for i := range all {
		t := &all[i]
		values, rest, err := t.Numbers(binaries)
		if err == nil && (len(values) == 0 || len(values)%n != 0) {
			err = fmt.Errorf("%d numbers of shape %v: want the same number for each of %d candidates", len(values), t.Shape, n)
		}
		if err != nil {
			return Outputs{}, fmt.Errorf("output %q: %w", t.Name, err)
		}
		decoded[t.Name], binaries = values, rest
	}
	if len(names) == 0 && len(all) > 0 {
		names = []string{all[0].Name}
	}
	outputs := Outputs{names, make([][]float64, n)}
	for _, name := range names {
		output, col := column(name)
		values, found := decoded[output]
		columns := len(values) / n
		switch {
		case !found:
			return Outputs{}, fmt.Errorf("output %q is missing", output)
		case col >= columns || col < 0 && columns != 1:
			return Outputs{}, fmt.Errorf("output %q has %d columns for %d candidates: want one, or its number as in %[1]q[1]", output, columns, n)
		}
		for i := range n {
			outputs.Rows[i] = append(outputs.Rows[i], values[i*columns+max(col, 0)])
		}
	}
	return outputs, nil
}
