package embedded

import (
	"testing"
	"time"
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
		if got := sizeInterval(c.left); got != c.want {
			t.Errorf("%d bytes left: %v, want %v", c.left, got, c.want)
		}
	}
}
