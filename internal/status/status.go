// Package status contains the response of GET /v1/status: the state of a process, merged with that of all others.
package status

import (
	"github.com/smartfeed/smartfeed/internal/reload"
	"github.com/smartfeed/smartfeed/processors"
	"github.com/smartfeed/smartfeed/processors/rows"
	"github.com/smartfeed/smartfeed/schemas"
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

// Process is the state of one process, as the process itself reports it.
type Process struct {
	Version    string                      `json:"version"`
	Ready      bool                        `json:"ready"`
	Missing    []string                    `json:"missing"`
	Components []processors.ComponentState `json:"components"`
	Groups     []Group                     `json:"groups"`
	Reloads    []reload.State              `json:"reloads,omitempty"` // of the files that this process reloads; absent: none
	Shares     []schemas.FeedShare         `json:"shares,omitempty"`  // of the items in composed chunks, by feed and source; absent: this process composes none
}

// Summary is the state of one process among others.
type Summary struct {
	Address    string                      `json:"address"`
	Version    string                      `json:"version"`
	Ready      bool                        `json:"ready"`
	Missing    []string                    `json:"missing"`
	Components []processors.ComponentState `json:"components"`
	Reloads    []reload.State              `json:"reloads,omitempty"`
}

func (p Process) summary(address string) Summary {
	return Summary{address, p.Version, p.Ready, p.Missing, p.Components, p.Reloads}
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
	Lag        map[string]int64 `json:"lag,omitempty"` // by input topic: records, including transaction markers; absent: unknown
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
