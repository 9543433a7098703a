package product

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/smartfeed/smartfeed/topics"
)

// askTimeout bounds the question for the status, which is small and answered from memory.
const askTimeout = 5 * time.Second

// askWork asks the process at an HTTP address what its groups have done.
func askWork(ctx context.Context, address string) (topics.Work, error) {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	url := "http://" + address + "/v1/status"
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return topics.Work{}, err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return topics.Work{}, fmt.Errorf("ask the process at --http: %w", err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return topics.Work{}, fmt.Errorf("ask %s: %s", url, resp.Status)
	}
	var s status
	if err := json.NewDecoder(resp.Body).Decode(&s); err != nil {
		return topics.Work{}, fmt.Errorf("ask %s: %w", url, err)
	}
	if !slices.ContainsFunc(s.Groups, func(g groupStatus) bool { return g.Group == topics.Pools }) {
		return topics.Work{}, fmt.Errorf("the process at %s runs no pools", address)
	}
	return workOf(s.Groups), nil
}

// workOf adds up what the groups of a process have done.
func workOf(groups []groupStatus) topics.Work {
	w := topics.Work{Dropped: map[string]int64{}, DeadLetters: map[string]int64{}}
	for _, g := range groups {
		w.Deliveries += g.Effects["deliveries"]
		addReasons(w.Dropped, g.Group, g.Dropped)
		addReasons(w.DeadLetters, g.Group, g.Letters)
	}
	return w
}

func addReasons(all map[string]int64, group string, by map[string]int64) {
	for reason, n := range by {
		all[group+": "+reason] += n
	}
}
