package topics

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Work holds the counts of the running processes since their start.
type Work struct {
	Deliveries  int64            `json:"deliveries"`             // pins added to pools, one per user and pin
	Dropped     map[string]int64 `json:"dropped,omitempty"`      // by "group: reason", dropped intentionally
	DeadLetters map[string]int64 `json:"dead_letters,omitempty"` // by "group: reason"
}

// Since returns the difference between w and an earlier value. A restarted process counts from zero, so Since returns a count
// that is lower than before unchanged.
func (w Work) Since(before Work) Work {
	return Work{
		Deliveries:  growth(w.Deliveries, before.Deliveries),
		Dropped:     growthOfEach(w.Dropped, before.Dropped),
		DeadLetters: growthOfEach(w.DeadLetters, before.DeadLetters),
	}
}

func growth(now, before int64) int64 {
	if now < before {
		return now
	}
	return now - before
}

func growthOfEach(now, before map[string]int64) map[string]int64 {
	left := map[string]int64{}
	for reason, n := range now {
		if n = growth(n, before[reason]); n > 0 {
			left[reason] = n
		}
	}
	return left
}

// Lines returns the counts for people: deliveries, drops and dead letters.
func (w Work) Lines() []string {
	lines := []string{fmt.Sprintf("%-18s %8d", "deliveries", w.Deliveries)}
	for _, part := range []struct {
		name string
		by   map[string]int64
	}{{"dropped", w.Dropped}, {"dead letters", w.DeadLetters}} {
		if len(part.by) == 0 {
			lines = append(lines, fmt.Sprintf("%-18s %8d", part.name, 0))
		}
		for _, reason := range slices.Sorted(maps.Keys(part.by)) {
			lines = append(lines, fmt.Sprintf("%-18s %8d  %s", part.name, part.by[reason], strings.TrimSpace(reason)))
		}
	}
	return lines
}
