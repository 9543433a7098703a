package convert

import (
	"strconv"
	"testing"

	"github.com/smartfeed/smartfeed/internal/testkit/expect"
)

func TestAll(t *testing.T) {
	expect.NoDiff(t, []string{"3", "1"}, All([]int{3, 1}, strconv.Itoa), "texts of numbers")
	expect.NoDiff(t, []string{}, All(nil, strconv.Itoa), "texts of no numbers")
}
