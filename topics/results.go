package topics

// Results counts the deliveries, drops and dead letters of the running processes since their start.
type Results struct {
	Deliveries  int64            `json:"deliveries"`             // pins added to pools, one per user and pin
	Dropped     map[string]int64 `json:"dropped,omitempty"`      // by "group: reason", dropped intentionally
	DeadLetters map[string]int64 `json:"dead_letters,omitempty"` // by "group: reason"
}

// Since returns the difference between r and an earlier value. A restarted process counts from zero, so Since returns a count
// that is lower than before unchanged.
func (r Results) Since(before Results) Results {
	return Results{
		Deliveries:  growth(r.Deliveries, before.Deliveries),
		Dropped:     growthOfEach(r.Dropped, before.Dropped),
		DeadLetters: growthOfEach(r.DeadLetters, before.DeadLetters),
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
