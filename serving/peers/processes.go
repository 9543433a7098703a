package peers

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"golang.org/x/sync/errgroup"
)

// ProcessLister lists the processes.
type ProcessLister interface {
	// Addresses returns the addresses of the processes, sorted. It may return some of them together with an error for the
	// others.
	Addresses(ctx context.Context) ([]string, error)
}

// AllMembers lists every process that the brokers know as a member of any of the groups.
type AllMembers struct {
	Admin  *kadm.Client
	Groups func() []string // names of consumer groups on the brokers
}

// Addresses reads the members from the brokers. A group that has never had a member has none.
func (a AllMembers) Addresses(ctx context.Context) ([]string, error) {
	described, err := a.Admin.DescribeGroups(ctx, a.Groups()...)
	if err != nil {
		return nil, fmt.Errorf("list the members of all groups: %w", err)
	}
	var problems []error
	there := map[string]bool{}
	for _, group := range described.Sorted() {
		if group.Err != nil && !errors.Is(group.Err, kerr.GroupIDNotFound) {
			problems = append(problems, fmt.Errorf("list the members of group %s: %w", group.Group, group.Err))
		}
		for _, member := range group.Members {
			if address := addressOf(member.ClientID); address != "" {
				there[address] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(there)), errors.Join(problems...)
}

// StatusResult is the result of a status request to one process.
type StatusResult struct {
	Address string
	Status  json.RawMessage // the result of its Process; nil if Err is set
	Err     error
}

const (
	// listTimeout limits the listing of the processes, and processTimeout the status requests, which run in parallel.
	// The caller wants to find faults, and a process that does not answer may be one.
	listTimeout    = time.Second
	processTimeout = time.Second

	// processesAtOnce is the maximum number of status requests in flight.
	processesAtOnce = 64
)

// processes caches the last known processes.
type processes struct {
	lister  ProcessLister
	timeout time.Duration // listTimeout

	mu    sync.Mutex
	known []string
}

// addresses returns the current processes. If they cannot be listed, it returns the last known ones and the error.
func (p *processes) addresses(ctx context.Context) ([]string, error) {
	ctx, cancel := context.WithTimeout(ctx, p.timeout)
	defer cancel()
	found, err := p.lister.Addresses(ctx)
	p.mu.Lock()
	defer p.mu.Unlock()
	if err == nil {
		p.known = found
		return found, nil
	}
	all := append(slices.Clone(p.known), found...)
	slices.Sort(all)
	return slices.Compact(all), err
}

// Processes requests the status of every process except the one at the address but. It returns after all have answered, or
// after two seconds. The results are in the order of the addresses, each with the status or an error. Processes returns an
// error if the groups cannot be read: there may then be further processes, and Processes queries the last known ones.
func (c *Client) Processes(ctx context.Context, but string) ([]StatusResult, error) {
	addresses, err := c.processes.addresses(ctx)
	addresses = slices.DeleteFunc(slices.Clone(addresses), func(a string) bool { return a == but })
	all := make([]StatusResult, len(addresses))
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	var group errgroup.Group
	group.SetLimit(processesAtOnce)
	for i, address := range addresses {
		group.Go(func() error {
			said, err := c.call(ctx, string(callProcess), address, []byte("{}"))
			all[i] = StatusResult{address, said, err}
			return nil
		})
	}
	_ = group.Wait() // the results contain the errors
	return all, err
}
