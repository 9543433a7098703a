package feature

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"github.com/smartfeed/smartfeed/internal/testkit/expect"
)

func TestGroupName(t *testing.T) {
	for want, values := range map[string][]string{
		`a|b\`:      {`a|b\`}, // a single value is the name
		"save|tea":  {"save", "tea"},
		`a\|b|c\\|`: {"a|b", `c\`, ""},
	} {
		same(t, fmt.Sprintf("%q", values), want, GroupName(values...))
	}
}

// A caller can split the name of a group into its values.
func TestGroupName_IsReversible(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := rapid.SliceOfN(rapid.StringOf(rapid.SampledFrom([]rune(`|\aé`))), 2, MaxKeys).Draw(t, "values")
		got, escaped := []string{""}, false
		for _, r := range GroupName(want...) {
			switch last := &got[len(got)-1]; {
			case escaped:
				*last, escaped = *last+string(r), false
			case r == '\\':
				escaped = true
			case r == '|':
				got = append(got, "")
			default:
				*last += string(r)
			}
		}
		expect.NoDiff(t, got, want, "groups")
	})
}
