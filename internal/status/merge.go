package status

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/smartfeed/smartfeed/schemas"
	"github.com/smartfeed/smartfeed/serving/peers"
)

// AddProcesses adds the states of other processes to that of this one, and merges the groups and shares of all. own is the
// address of this process. err is the reason why some processes are unknown, or nil.
func (s *Status) AddProcesses(own string, others []peers.StatusResult, err error) {
	if err != nil {
		s.Unavailable = append(s.Unavailable, Unavailable{"members of the groups", err.Error()})
	}
	s.Processes = []Summary{s.summary(own)}
	var groups []Group
	for _, other := range others {
		var state Process
		err := other.Err
		if err == nil {
			err = json.Unmarshal(other.Status, &state)
		}
		if err != nil {
			s.Unavailable = append(s.Unavailable, Unavailable{other.Address, fmt.Sprintf("read the status of process %s: %v", other.Address, err)})
			continue
		}
		s.Processes = append(s.Processes, state.summary(other.Address))
		groups = addGroups(groups, state.Groups, other.Address)
		s.Shares = addShares(s.Shares, state.Shares)
	}
	s.Groups = append(s.Groups, groups...)
}

// addGroups merges the groups of another process.
func addGroups(all, more []Group, process string) []Group {
	for _, g := range more {
		for i := range g.Partitions {
			g.Partitions[i].Process = process
		}
		at := slices.IndexFunc(all, func(o Group) bool { return o.Group == g.Group })
		if at < 0 {
			all = append(all, g)
			continue
		}
		all[at].add(g)
	}
	return all
}

// add merges the status of the group in another process.
func (g *Group) add(o Group) {
	g.Starts += o.Starts
	g.Restarts += o.Restarts
	g.Joined, g.Ready = g.Joined && o.Joined, g.Ready && o.Ready
	g.Partitions = append(g.Partitions, o.Partitions...)
	slices.SortStableFunc(g.Partitions, func(a, b Partition) int { return cmp.Compare(a.Partition, b.Partition) })
	g.PerSecond += o.PerSecond
	g.Counters.Add(o.Counters)
	g.Dropped, g.DeadLetters, g.Effects = sums(g.Dropped, o.Dropped), sums(g.DeadLetters, o.DeadLetters), sums(g.Effects, o.Effects)
}

func sums(all, more map[string]int64) map[string]int64 {
	if all == nil {
		return more
	}
	for name, n := range more {
		all[name] += n
	}
	return all
}

// addShares adds the items of another process. Targets come from the configuration, which all processes share.
func addShares(all, more []schemas.FeedShare) []schemas.FeedShare {
	for _, share := range more {
		at := slices.IndexFunc(all, func(o schemas.FeedShare) bool {
			return o.Feed == share.Feed && o.Arm == share.Arm && o.Source == share.Source
		})
		if at < 0 {
			all = append(all, share)
			continue
		}
		all[at].Items += share.Items
	}
	return all
}
