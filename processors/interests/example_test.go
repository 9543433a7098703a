package interests_test

import (
	"fmt"

	"github.com/smartfeed/smartfeed/processors/interests"
)

// All spellings fold to one term. Blocking, decisions and lookups fold a term first.
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
