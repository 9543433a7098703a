package status

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/smartfeed/smartfeed/serving/client"
	"github.com/smartfeed/smartfeed/topics"
	"github.com/smartfeed/smartfeed/topics/generation"
)

// requestTimeout limits a request for the status.
const requestTimeout = 5 * time.Second

// RequestResults requests the progress of the groups from the process at an HTTP address, which must run the group pools.
func RequestResults(ctx context.Context, at client.Config) (topics.Results, error) {
	s, err := Request(ctx, at)
	if err != nil {
		return topics.Results{}, fmt.Errorf("request the status of the process at --http: %w", err)
	}
	if !slices.ContainsFunc(s.Groups, func(g Group) bool { return generation.GroupOf(g.Group) == topics.Pools }) {
		return topics.Results{}, fmt.Errorf("the process at %s does not run the group %s", at.Address, topics.Pools)
	}
	return resultsOf(s.Groups), nil
}

// Request requests the status from the process at an HTTP address.
func Request(ctx context.Context, at client.Config) (s Status, err error) {
	at.Timeout = requestTimeout
	c, err := client.New(at)
	if err != nil {
		return s, err
	}
	defer c.Close()
	answer, err := c.Get(ctx, nil, "v1", "status")
	if err != nil {
		return s, err
	}
	if err := json.Unmarshal(answer, &s); err != nil {
		return s, fmt.Errorf("read status: %w", err)
	}
	return s, nil
}

// resultsOf adds up the progress of a process's groups.
func resultsOf(groups []Group) topics.Results {
	r := topics.Results{Dropped: map[string]int64{}, DeadLetters: map[string]int64{}}
	counted := map[string]bool{}
	for _, g := range groups {
		name := generation.GroupOf(g.Group)
		if counted[name] { // another generation of the group: the active one comes first
			continue
		}
		counted[name] = true
		r.Deliveries += g.Effects["deliveries"]
		addReasons(r.Dropped, name, g.Dropped)
		addReasons(r.DeadLetters, name, g.DeadLetters)
	}
	return r
}

func addReasons(all map[string]int64, group string, by map[string]int64) {
	for reason, n := range by {
		all[group+": "+reason] += n
	}
}
