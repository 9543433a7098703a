package jsonbound

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/smartfeed/smartfeed/internal/testkit/expect"
	"github.com/smartfeed/smartfeed/internal/testkit/must"
)

func TestValues(t *testing.T) {
	for text, want := range map[string]int{
		"":                         1,
		"1":                        1,
		`"a,{[\",[\\"`:             1,
		"[]":                       2,
		"[1,2,3]":                  4,
		`{"a":1,"b,{":"\\","c":2}`: 4,
		`[{},{},{}]`:               7,
		`[[],[[]]]`:                6,
	} {
		expect.Equal(t, Values([]byte(text)), want, "%s", text)
	}
}

func TestCheck(t *testing.T) {
	text := []byte("[1,2,3]")
	must.OK(t, Check(text, 4))
	expect.Equal(t, fmt.Sprint(Check(text, 3)), "response has 4 JSON values: want at most 3", "error")
}

// For any formatting of a valid text, the count is at least the number of decoded values.
func FuzzValues(f *testing.F) {
	f.Add([]byte(`{"a":[1,{"b":"\"]"}],"c":null}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		var v any
		if json.Unmarshal(text, &v) != nil {
			return
		}
		expect.AtLeast(t, Values(text), size(v), "values counted in %q", text)
	})
}

// size returns the number of values in v.
func size(v any) int {
	n := 1
	switch v := v.(type) {
	case []any:
		for _, member := range v {
			n += size(member)
		}
	case map[string]any:
		for _, member := range v {
			n += size(member)
		}
	}
	return n
}
