package rows

import (
	"encoding/json"
	"testing"

	"github.com/smartfeed/smartfeed/internal/testkit/expect"
	"github.com/smartfeed/smartfeed/internal/testkit/must"
)

// The console and other programs read counters by these names.
func TestCounters_JSONNames(t *testing.T) {
	got := must.Get(json.Marshal(Counters{1, 2, 3, 4, 5, 6, 7, 8, 9}))(t)
	want := `{"records":1,"rows":2,"deletes":3,"emitted":4,"commits":5,"skipped":6,"dead_letters":7,"misplaced":8,"recovered":9}`
	expect.Equal(t, string(got), want, "status as JSON")
}
