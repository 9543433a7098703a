package interests_test

import (
	"fmt"

	"github.com/smartfeed/smartfeed/processors/interests"
)

// However somebody writes it, it is one term: what is blocked, decided about or looked for is folded first.
func ExampleFold() {
	for _, title := range []string{"Crème Brûlée", "  CREME-BRULEE!", "ｃｒｅｍｅ brulée", "Ångström №5"} {
		fmt.Printf("%q\n", interests.Fold(title))
	}
	// Output:
	// "creme brulee"
	// "creme brulee"
	// "creme brulee"
	// "angstrom no5"
}
