// Package status contains the response of GET /v1/status: the state of a process, merged with that of all others.
package status

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/smartfeed/smartfeed/internal/reload"
	"github.com/smartfeed/smartfeed/processors"
	"github.com/smartfeed/smartfeed/processors/rows"
	"github.com/smartfeed/smartfeed/schemas"
	"github.com/smartfeed/smartfeed/serving/peers"
	"github.com/smartfeed/smartfeed/topics"
)

// Status is the state of a process and, if it can reach the others, of the groups in all of them.
type Status struct {
	Process
	Dir         string        `json:"dir"`                   // state directory of this process, an absolute path on its machine
	Processes   []Summary     `json:"processes,omitempty"`   // the processes that responded, this one first; absent: this process does not request the state of others
	Unavailable []Unavailable `json:"unavailable,omitempty"` // sources missing from groups and shares; absent: none
	Stores      []Store       `json:"stores"`                // that this process reads or writes
	Flows       []topics.Flow `json:"flows,omitempty"`       // the topics between the groups; absent: unknown
}

// State is the readiness of one process and of its components.
type State struct {
	Version    string                      `json:"version"`
	Ready      bool                        `json:"ready"`
	Missing    []string                    `json:"missing"`
	Components []processors.ComponentState `json:"components"`
	Reloads    []reload.State              `json:"reloads,omitempty"` // of the files that this process reloads; absent: none
}

// Process is the state of one process with its groups, as the process itself reports it.
type Process struct {
	State
	Groups []Group             `json:"groups"`
	Shares []schemas.FeedShare `json:"shares,omitempty"` // of the items in composed chunks, by feed and source; absent: this process composes none
}

// Summary is the state of one process among others.
type Summary struct {
	Address string `json:"address"` // at which other processes reach it
	State
}

// Unavailable is a source of information that did not respond.
type Unavailable struct {
	Source string `json:"source"` // the address of a process, "members of the groups", or "the lag of GROUP, …"
	Reason string `json:"reason"`
}

// Store is a store of a process.
type Store struct {
	Name      string `json:"name"`                // primary, standby: feed stores; features
	Kind      string `json:"kind"`                // embedded, cassandra, pinot
	Connected *bool  `json:"connected,omitempty"` // whether a node responds; absent: there is no permanent connection
}

// Group is the status of a group, in one process or in all reachable ones, with its lag.
type Group struct {
	rows.Status
	Restarts   int64            `json:"restarts"` // after the first start
	Partitions []Partition      `json:"partitions"`
	Lag        map[string]int64 `json:"lag,omitempty"` // by input topic, without those that are private to the group; absent: unknown
}

// Partition is a partition with its owner.
type Partition struct {
	rows.PartitionStatus
	Process string `json:"process,omitempty"` // HTTP address of the owner; "": this process
}

// NewGroup returns the status of a group in this process, without its lag.
func NewGroup(s rows.Status) Group {
	g := Group{Status: s, Restarts: max(0, s.Starts-1)}
	for _, p := range s.Partitions {
		g.Partitions = append(g.Partitions, Partition{PartitionStatus: p})
	}
	return g
}

// AddProcesses adds the states of other processes to that of this one, and merges the groups and shares of all. own is the
// address of this process. err is the reason why some processes are unknown, or nil.
func (s *Status) AddProcesses(own string, others []peers.StatusResult, err error) {
	if err != nil {
		s.Unavailable = append(s.Unavailable, Unavailable{"members of the groups", err.Error()})
	}
	s.Processes = []Summary{{own, s.State}}
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
		s.Processes = append(s.Processes, Summary{other.Address, state.State})
		groups = addGroups(groups, state.Groups, other.Address)
		s.Shares = merge(s.Shares, state.Shares, shareKey, addShare)
	}
	s.Groups = append(s.Groups, groups...)
}

// AddFlows adds the topics between the groups, and the lag of each group. err is the reason why they are unknown, or nil.
func (s *Status) AddFlows(flows []topics.Flow, err error) {
	lags := map[string]map[string]int64{}
	for _, f := range flows {
		for _, r := range f.Readers {
			if lags[r.Group] == nil {
				lags[r.Group] = map[string]int64{}
			}
			lags[r.Group][f.Topic] = r.Records
		}
	}
	var groups []string
	for i := range s.Groups {
		s.Groups[i].Lag = lags[s.Groups[i].Group]
		groups = append(groups, s.Groups[i].Group)
	}
	s.Flows = flows
	if err != nil {
		s.Unavailable = append(s.Unavailable, Unavailable{"the lag of " + strings.Join(groups, ", "), err.Error()})
	}
}

// addGroups merges the groups of another process.
func addGroups(all, more []Group, process string) []Group {
	for _, g := range more {
		for i := range g.Partitions {
			g.Partitions[i].Process = process
		}
	}
	return merge(all, more, func(g Group) string { return g.Group }, (*Group).add)
}

// merge adds each element of another process to the one with the same key, or appends it if there is none.
func merge[T any, K comparable](all, more []T, key func(T) K, add func(*T, T)) []T {
	for _, one := range more {
		at := slices.IndexFunc(all, func(o T) bool { return key(o) == key(one) })
		if at < 0 {
			all = append(all, one)
			continue
		}
		add(&all[at], one)
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

func shareKey(s schemas.FeedShare) schemas.FeedShare {
	return schemas.FeedShare{Feed: s.Feed, Arm: s.Arm, Source: s.Source}
}

// addShare adds the items of another process. Targets come from the configuration, which all processes share.
func addShare(all *schemas.FeedShare, more schemas.FeedShare) { all.Items += more.Items }
