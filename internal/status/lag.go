package status

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/smartfeed/smartfeed/serving/client"
	"github.com/smartfeed/smartfeed/topics"
	"github.com/smartfeed/smartfeed/topics/generation"
)

// AddLag requests the end offsets of the inputs and sets the lag of each group, with one request per group. A request fails
// as a whole if this process may not describe one of the topics. AddLag lists the groups without lag in Unavailable.
func (s *Status) AddLag(ctx context.Context, from Ends) {
	errs := make([]error, len(s.Groups))
	var all sync.WaitGroup
	for i := range s.Groups {
		all.Go(func() { errs[i] = s.Groups[i].addLag(ctx, from) })
	}
	all.Wait()
	for i, err := range errs {
		if err != nil {
			s.withoutLag(s.Groups[i].Group, err.Error())
		}
	}
}

// withoutLag lists groups without lag, in one entry per reason.
func (s *Status) withoutLag(group, why string) {
	const what = "the lag of "
	at := slices.IndexFunc(s.Unavailable, func(u Unavailable) bool { return u.Reason == why && strings.HasPrefix(u.Source, what) })
	if at < 0 {
		s.Unavailable = append(s.Unavailable, Unavailable{what + group, why})
		return
	}
	s.Unavailable[at].Source += ", " + group
}

// Ends returns the end offsets of topics. topics.Log implements it.
type Ends interface {
	Ends(ctx context.Context, topics ...string) (topics.Offsets, error)
}

func (g *Group) addLag(ctx context.Context, from Ends) error {
	applied := g.applied()
	var ends topics.Offsets
	if len(applied) > 0 { // an empty list would mean all topics
		var err error
		if ends, err = from.Ends(ctx, slices.Sorted(maps.Keys(applied))...); err != nil {
			return err
		}
	}
	g.Lag = lagOf(applied, ends)
	return nil
}

// applied returns the last applied offsets of the inputs. During a rebalance, two processes may report a partition. The
// higher offset counts.
func (g *Group) applied() topics.Offsets {
	applied := topics.Offsets{}
	for _, p := range g.Partitions {
		for topic, at := range p.Applied {
			if applied[topic] == nil {
				applied[topic] = map[int32]int64{}
			}
			if known, twice := applied[topic][p.Partition]; !twice || at > known {
				applied[topic][p.Partition] = at
			}
		}
	}
	return applied
}

// lagOf returns the number of unprocessed records by topic.
func lagOf(applied, ends topics.Offsets) map[string]int64 {
	lag := map[string]int64{}
	for topic, by := range applied {
		for p, at := range by {
			lag[topic] += max(0, ends[topic][p]-at-1)
		}
	}
	return lag
}

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
