package visits

import (
	"context"
	"errors"
	"testing"

	"github.com/smartfeed/smartfeed/internal/testkit/expect"
	"github.com/smartfeed/smartfeed/schemas"
)

// poolsFunc is a function that implements Pools.
type poolsFunc func(source schemas.Source, n int) ([]schemas.PoolItem, error)

func (f poolsFunc) Pool(_ context.Context, _ schemas.UserID, source schemas.Source, n int) ([]schemas.PoolItem, error) {
	return f(source, n)
}

func TestCheckPools_ReportsFirstDifference(t *testing.T) {
	broken := errors.New("broken")
	tests := []struct {
		name string
		bend func(items []schemas.PoolItem) ([]schemas.PoolItem, error)
		want string
	}{
		{"good", func(i []schemas.PoolItem) ([]schemas.PoolItem, error) { return i, nil }, ""},
		{"broken", func([]schemas.PoolItem) ([]schemas.PoolItem, error) { return nil, broken }, "pool following of user:u: broken"},
		{"one missing", func(i []schemas.PoolItem) ([]schemas.PoolItem, error) { return i[:4], nil }, "4 candidates, want 5"},
		{"too many", func(i []schemas.PoolItem) ([]schemas.PoolItem, error) { return append(i, i[0]), nil }, "6 candidates, want 5"},
		{"order", func(i []schemas.PoolItem) ([]schemas.PoolItem, error) { i[0], i[1] = i[1], i[0]; return i, nil },
			"has rank 1, want pin:a29"},
		{"score", func(i []schemas.PoolItem) ([]schemas.PoolItem, error) { i[1].PoolScore += 1e-8; return i, nil }, "pin:a28: score"},
		{"time", func(i []schemas.PoolItem) ([]schemas.PoolItem, error) { i[1].Time++; return i, nil }, "pin:a28: created"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			p := product(30)
			pools := poolsFunc(func(source schemas.Source, n int) ([]schemas.PoolItem, error) {
				items := p.Pool(reader, source, n)
				if source != schemas.Following {
					return items, nil
				}
				return test.bend(items)
			})
			expect.Error(t, CheckPools(t.Context(), pools, p, reader, 5), test.want, "error")
		})
	}
}
