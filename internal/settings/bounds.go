package settings

import (
	"cmp"
	"fmt"
	"strings"
	"time"
)

// Within returns an error if a field's value is outside [low, high] or NaN: "pools.max_candidates: 5: want 10 to 1000000".
func Within[T cmp.Ordered](field string, v, low, high T) error {
	if v >= low && v <= high { // false for NaN
		return nil
	}
	return fmt.Errorf("%s: %s: want %s to %s", field, text(v), text(low), text(high))
}

func text(v any) string {
	if d, ok := v.(time.Duration); ok {
		return Short(d)
	}
	return fmt.Sprint(v)
}

// Short formats a duration as 24h where Duration.String returns 24h0m0s.
func Short(d time.Duration) string {
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}
