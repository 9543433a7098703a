package rules

import (
	"slices"

	"github.com/smartfeed/smartfeed/schemas"
)

// remember returns the memory after a visit. If the sources with shares leave places over, it defers weak items beyond the
// budget: as many as there are places.
func (s *selection) remember(v *Visit, a *arrangement) schemas.Memory {
	m := s.memory
	m.Mix = a.mix.after()
	if s.feed.Defer.Margin == 0 {
		return m
	}
	for _, pin := range s.weak {
		if a.taken[pin] {
			m.Weak++
		}
	}
	m.Deferred = slices.DeleteFunc(m.Deferred, func(d schemas.Deferred) bool { return a.taken[d.Pin] })
	room := min(v.Limit-a.shared, MaxDeferred-len(m.Deferred), len(s.overBudget))
	for _, pin := range s.overBudget[:max(room, 0)] {
		m.Deferred = append(m.Deferred, schemas.Deferred{Pin: pin, Since: v.Time})
	}
	return m
}
