package generator

import (
	"context"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/smartfeed/smartfeed/internal/testkit/expect"
	"github.com/smartfeed/smartfeed/internal/testkit/must"
)

// fakeLog is a partition: true for a record, false for an offset that no reader gets. A read returns three offsets at a time.
type fakeLog []bool

func (l fakeLog) End(context.Context, string, int32) (int64, error) { return int64(len(l)), nil }

func (l fakeLog) Read(_ context.Context, _ string, _ int32, from int64) ([]*kgo.Record, int64, error) {
	var records []*kgo.Record
	next := min(from+3, int64(len(l)))
	for at := from; at < next; at++ {
		if l[at] {
			records = append(records, &kgo.Record{Offset: at})
		}
	}
	return records, next, nil
}

func TestDataEnd(t *testing.T) {
	markers := make(fakeLog, 40)
	mixed := append(fakeLog{true, true}, markers...)
	for name, c := range map[string]struct {
		log  fakeLog
		want int64
	}{
		"nothing":               {nil, 0},
		"records up to the end": {fakeLog{true, true}, 2},
		"a marker at the end":   {fakeLog{true, true, false}, 2},
		"many markers":          {mixed, 2},
		"only markers":          {markers, 0},
		"a record at the end":   {append(append(fakeLog{}, mixed...), true), 43},
	} {
		t.Run(name, func(t *testing.T) {
			expect.Equal(t, must.Get(DataEnd{Log: c.log}.End(t.Context(), "served", 0))(t), c.want, "end")
		})
	}
}
