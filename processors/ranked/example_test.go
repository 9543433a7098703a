package ranked_test

import (
	"fmt"
	"slices"

	"github.com/smartfeed/smartfeed/processors/ranked"
)

// Rows are read in byte order, so the best score comes first.
func ExampleAppendScore() {
	var rows []string
	for _, score := range []float64{-2, 0.5, 1e6, 0} {
		rows = append(rows, string(ranked.AppendScore(nil, score)))
	}
	slices.Sort(rows)
	for _, row := range rows {
		fmt.Println(ranked.Score[float64](row))
	}
	// Output:
	// 1e+06
	// 0.5
	// 0
	// -2
}
