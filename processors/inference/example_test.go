package inference_test

import (
	"fmt"

	"github.com/smartfeed/smartfeed/processors/inference"
)

// A feed that counts a save as three clicks, and avoids pins that users hide.
func ExampleOutputs_Combine() {
	outputs := inference.Outputs{Names: []string{"click", "save", "hide"}, Rows: [][]float64{{0.2, 0.1, 0}, {0.3, 0.1, 0.1}}}
	for _, score := range outputs.Combine(map[string]float64{"save": 3, "click": 1, "hide": -5}) {
		fmt.Printf("%.1f\n", score)
	}
	// Output:
	// 0.5
	// 0.1
}
