// Package tensors has tensors of the Open Inference Protocol v2, in JSON or, with its binary tensor data extension, as bytes
// after the JSON:
// https://github.com/kserve/open-inference-protocol/blob/main/specification/protocol/inference_rest.md and
// https://docs.nvidia.com/deeplearning/triton-inference-server/user-guide/docs/protocol/extension_binary_data.html.
package tensors

import (
	"encoding/binary"
	"fmt"
	"math"
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
	Data       any         `json:"data,omitempty"` // []float32, or decoded JSON
	Parameters *Parameters `json:"parameters,omitempty"`
}

// Parameters are the parameters of tensors as bytes.
type Parameters struct {
	BinaryDataSize   int  `json:"binary_data_size,omitempty"`   // of an input or an output: bytes after the JSON
	BinaryData       bool `json:"binary_data,omitempty"`        // of a requested output: as bytes
	BinaryDataOutput bool `json:"binary_data_output,omitempty"` // of a request: all outputs as bytes
}

// AppendFloats appends the bytes of the type FP32.
func AppendFloats(dst []byte, values []float32) []byte {
	dst, _ = binary.Append(dst, binary.LittleEndian, values) // the size of float32 is known
	return dst
}

// AppendBytes appends the bytes of the type INT8. The values are whole numbers in [-128, 127].
func AppendBytes(dst []byte, values []float32) []byte {
	for _, v := range values {
		dst = append(dst, byte(int8(v)))
	}
	return dst
}

// AppendText appends the bytes of a text of the type BYTES.
func AppendText(dst []byte, text string) []byte {
	return append(binary.LittleEndian.AppendUint32(dst, uint32(len(text))), text...)
}

// Numbers decodes the bytes of a tensor of numbers.
func Numbers(datatype string, data []byte) ([]float64, error) {
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
