package app

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/smartfeed/smartfeed/processors"
	"github.com/smartfeed/smartfeed/processors/rows"
	"github.com/smartfeed/smartfeed/schemas"
	"github.com/smartfeed/smartfeed/serving/peers"
)

// processState is what a process knows about itself.
type processState struct {
	Version string                 `json:"version"`
	Ready   bool                   `json:"ready"`
	Missing []string               `json:"missing"`
	Parts   []processors.PartState `json:"parts"`
	Groups  []groupStatus          `json:"groups"`
	Shares  []schemas.FeedShare    `json:"shares,omitempty"` // of the chosen items, by feed and source; absent: this process chooses none
}

func (p *App) processState() processState {
	missing := p.missing()
	s := processState{Version: version, Ready: len(missing) == 0, Missing: missing, Parts: p.supervisor.State(), Groups: []groupStatus{}}
	for _, g := range p.groupsNow() {
		s.Groups = append(s.Groups, groupOf(g.Status()))
	}
	if p.local != nil {
		s.Shares = p.local.FeedShares()
	}
	return s
}

// Process returns the state of this process for other processes.
func (p *App) Process(context.Context) (json.RawMessage, error) {
	return json.Marshal(p.processState())
}

// groupStatus is the status of a group, in this process or in all reachable ones, with its lag.
type groupStatus struct {
	rows.Status
	Restarts   int64             `json:"restarts"` // after the first start
	Partitions []partitionStatus `json:"partitions"`
	Lag        map[string]int64  `json:"lag,omitempty"` // by input topic: records, including transaction markers; absent: unknown
}

// partitionStatus is a partition with its owner.
type partitionStatus struct {
	rows.PartitionStatus
	Process string `json:"process,omitempty"` // HTTP address of the owner; "": this process
}

func groupOf(s rows.Status) groupStatus {
	g := groupStatus{Status: s, Restarts: max(0, s.Starts-1)}
	for _, p := range s.Partitions {
		g.Partitions = append(g.Partitions, partitionStatus{PartitionStatus: p})
	}
	return g
}

// processStatus is the status of one process.
type processStatus struct {
	Address string                 `json:"address"`
	Version string                 `json:"version"`
	Ready   bool                   `json:"ready"`
	Missing []string               `json:"missing"`
	Parts   []processors.PartState `json:"parts"`
}

func (s processState) at(address string) processStatus {
	return processStatus{address, s.Version, s.Ready, s.Missing, s.Parts}
}

// unasked is a source of information that did not respond.
type unasked struct {
	What string `json:"what"` // the address of a process, "members of the groups", or "the lag of GROUP, …"
	Why  string `json:"why"`
}

// others lists the other processes. peers.Client implements it.
type others interface {
	Processes(ctx context.Context, but string) ([]peers.StatusResult, error)
}

// addOthers requests the state of the other processes and merges the groups of all of them.
func (s *status) addOthers(ctx context.Context, from others, own string) {
	heard, err := from.Processes(ctx, own)
	if err != nil {
		s.Unasked = append(s.Unasked, unasked{"members of the groups", err.Error()})
	}
	s.Processes = []processStatus{s.at(own)}
	var groups []groupStatus
	for _, h := range heard {
		var state processState
		err := h.Err
		if err == nil {
			err = json.Unmarshal(h.Status, &state)
		}
		if err != nil {
			s.Unasked = append(s.Unasked, unasked{h.Address, fmt.Sprintf("ask process %s how it is: %v", h.Address, err)})
			continue
		}
		s.Processes = append(s.Processes, state.at(h.Address))
		groups = addGroups(groups, state.Groups, h.Address)
		s.Shares = addShares(s.Shares, state.Shares)
	}
	s.Groups = append(s.Groups, groups...)
}

// addGroups merges the groups of another process.
func addGroups(all, more []groupStatus, process string) []groupStatus {
	for _, g := range more {
		for i := range g.Partitions {
			g.Partitions[i].Process = process
		}
		at := slices.IndexFunc(all, func(o groupStatus) bool { return o.Group == g.Group })
		if at < 0 {
			all = append(all, g)
			continue
		}
		all[at].add(g)
	}
	return all
}

// add merges the status of the group in another process.
func (g *groupStatus) add(o groupStatus) {
	g.Starts += o.Starts
	g.Restarts += o.Restarts
	g.Joined, g.Ready = g.Joined && o.Joined, g.Ready && o.Ready
	g.Partitions = append(g.Partitions, o.Partitions...)
	slices.SortStableFunc(g.Partitions, func(a, b partitionStatus) int { return cmp.Compare(a.Partition, b.Partition) })
	g.PerSecond += o.PerSecond
	g.Counters.Add(o.Counters)
	g.Dropped, g.Letters, g.Effects = sums(g.Dropped, o.Dropped), sums(g.Letters, o.Letters), sums(g.Effects, o.Effects)
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
