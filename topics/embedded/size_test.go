package embedded

import (
	"testing"
	"time"

	"github.com/smartfeed/smartfeed/internal/testkit/expect"
)

func TestSizeInterval_IsShortNearTheLimit(t *testing.T) {
	for _, c := range []struct {
		left int64
		want time.Duration
	}{
		{0, time.Second},
		{1 << 30, 2 * time.Second},
		{3 << 30, 6 * time.Second},
		{1 << 50, 10 * time.Second},
	} {
		expect.Equal(t, sizeInterval(c.left), c.want, "%d bytes left", c.left)
	}
}
