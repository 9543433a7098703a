package feature

import (
	"math"
	"testing"
)

func TestDivide(t *testing.T) {
	tests := map[string]struct {
		of     Aggregate // numerator
		a, b   Result
		want   Result
		groups bool
	}{
		"numbers":                  {Count, Result{Value: Number(1)}, Result{Value: Number(4)}, Result{Value: Number(0.25)}, false},
		"by zero":                  {Count, Result{Value: Number(1)}, Result{Value: Number(0)}, absent(Empty), false},
		"by nothing":               {Count, Result{Value: Number(1)}, absent(Empty), absent(Empty), false},
		"numerator not evaluated":  {Count, absent(Deadline), Result{Value: Number(1)}, absent(Deadline), false},
		"of parts":                 {Count, Result{Number(1), []Reason{Window}}, Result{Number(2), []Reason{Window, Cap}}, Result{Number(0.5), []Reason{Cap, Window}}, false},
		"beyond a float64":         {Sum, Result{Value: Number(1e300)}, Result{Value: Number(1e-300)}, absent(Overflow), false},
		"groups":                   {Count, Result{Value: Groups{"a": 1, "c": 5}}, Result{Value: Groups{"a": 2, "b": 4}}, Result{Value: Groups{"a": 0.5, "b": 0}}, true},
		"groups without a mean":    {Mean, Result{Value: Groups{"a": 1}}, Result{Value: Groups{"a": 2, "b": 4}}, Result{Value: Groups{"a": 0.5}}, true},
		"groups by zero":           {Sum, Result{Value: Groups{"a": 1, "b": 0}}, Result{Value: Groups{"a": 0, "b": 0}}, Result{Value: Groups{}}, true},
		"a group beyond a float64": {Sum, Result{Value: Groups{"a": 1e300, "b": 1}}, Result{Value: Groups{"a": 1e-300, "b": 1}}, Result{Groups{"b": 1}, []Reason{Overflow}}, true},
		"groups without actions":   {Count, Result{Value: Groups{}}, Result{Value: Groups{}}, Result{Value: Groups{}}, true},
		"groups not evaluated":     {Count, absent(Failed), absent(Failed), absent(Failed), true},
	}
	for name, tt := range tests {
		d := Definition{Aggregate: Ratio, Numerator: &Definition{Aggregate: tt.of}, Denominator: &Definition{Aggregate: Count}}
		same(t, name, tt.want, divide(d, tt.a, tt.b))
	}
}

func TestCosine(t *testing.T) {
	tests := map[string]struct {
		mean Vector
		of   []float32
		want Result
	}{
		"same direction":    {Vector{1, 2}, []float32{2, 4}, Result{Value: Number(1)}},
		"opposite":          {Vector{1, 0}, []float32{-3, 0}, Result{Value: Number(-1)}},
		"at right angles":   {Vector{1, 0}, []float32{0, 7}, Result{Value: Number(0)}},
		"zero mean":         {Vector{0, 0}, []float32{1, 1}, absent(Empty)},
		"zero embedding":    {Vector{1, 1}, []float32{0, 0}, absent(Empty)},
		"another length":    {Vector{1, 1}, []float32{1}, absent(Attribute)},
		"no embedding":      {Vector{1, 1}, nil, absent(Attribute)},
		"very long vectors": {Vector{math.MaxFloat32, 0}, []float32{math.MaxFloat32, 0}, Result{Value: Number(1)}},
	}
	for name, tt := range tests {
		same(t, name, tt.want, cosine(tt.mean, tt.of, nil), equal)
	}
}
