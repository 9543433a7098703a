package visits

import (
	"context"
	"fmt"
	"math"

	"github.com/smartfeed/smartfeed/internal/testkit/oracle"
	"github.com/smartfeed/smartfeed/schemas"
)

// Pools returns the contents of a user's pools; see HTTP.
type Pools interface {
	Pool(ctx context.Context, user schemas.UserID, source schemas.Source, n int) ([]schemas.PoolItem, error)
}

// CheckPools compares the n best candidates of each of a user's pools with the product: the pins, their order, their scores
// and their creation times.
func CheckPools(ctx context.Context, pools Pools, product *oracle.Product, user schemas.UserID, n int) error {
	for _, source := range edgeSources() {
		got, err := pools.Pool(ctx, user, source, n)
		if err == nil {
			err = samePool(got, product.Pool(user, source, n))
		}
		if err != nil {
			return fmt.Errorf("pool %s of %s: %w", source, user, err)
		}
	}
	return nil
}

// samePool returns an error that describes the first difference.
func samePool(got, want []schemas.PoolItem) error {
	for i := range min(len(got), len(want)) {
		g, w := got[i], want[i]
		switch {
		case g.Pin != w.Pin:
			return fmt.Errorf("%s (score %v) has rank %d, want %s (score %v)", g.Pin, g.PoolScore, i+1, w.Pin, w.PoolScore)
		case !sameScore(g.PoolScore, w.PoolScore):
			return fmt.Errorf("%s: score %v, want %v", g.Pin, g.PoolScore, w.PoolScore)
		case g.Time != w.Time:
			return fmt.Errorf("%s: created %s, want %s", g.Pin, g.Time.Time(), w.Time.Time())
		}
	}
	if len(got) != len(want) {
		return fmt.Errorf("%d candidates, want %d", len(got), len(want))
	}
	return nil
}

// sameScore tolerates the rounding of a different order of additions.
func sameScore[A, B ~float64](a A, b B) bool {
	return math.Abs(float64(a)-float64(b)) <= 1e-9*math.Abs(float64(b))
}
