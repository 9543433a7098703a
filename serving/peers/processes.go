package peers

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"golang.org/x/sync/errgroup"
)

// Process reports the status of this process only, as JSON that this package does not interpret.
type Process interface {
	Process(ctx context.Context) (json.RawMessage, error)
}

const callProcess = "process"

func handleProcess(mux *http.ServeMux, p Process) {
	mux.Handle("POST "+Path+callProcess, answer(func(ctx context.Context, _ struct{}) (json.RawMessage, error) {
		return p.Process(ctx)
	}))
}

// Everybody lists the processes.
type Everybody interface {
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
		return nil, fmt.Errorf("ask for the members of all groups: %w", err)
	}
	var problems []error
	there := map[string]bool{}
	for _, group := range described.Sorted() {
		if group.Err != nil && !errors.Is(group.Err, kerr.GroupIDNotFound) {
			problems = append(problems, fmt.Errorf("ask for the members of group %s: %w", group.Group, group.Err))
		}
		for _, member := range group.Members {
			if address := addressOf(member.ClientID); address != "" {
				there[address] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(there)), errors.Join(problems...)
}

// Heard is the result of a status request to one process.
type Heard struct {
	Address string
	Said    json.RawMessage // the result of its Process; nil if Err is set
	Err     error
}

const (
	// everybodyTimeout limits the listing of the processes, and processTimeout the status requests, which run in parallel.
	// The caller wants to find faults, and a process that does not answer may be one.
	everybodyTimeout = time.Second
	processTimeout   = time.Second

	// processesAtOnce is the maximum number of status requests in flight.
	processesAtOnce = 64
)

// everybody is a directory that remembers the last known processes.
type everybody struct {
	directory Everybody
	timeout   time.Duration // everybodyTimeout

	mu    sync.Mutex
	known []string
}

// now returns the current processes. If they cannot be listed, it returns the last known ones and the error.
func (e *everybody) now(ctx context.Context) ([]string, error) {
	ctx, cancel := context.WithTimeout(ctx, e.timeout)
	defer cancel()
	found, err := e.directory.Addresses(ctx)
	e.mu.Lock()
	defer e.mu.Unlock()
	if err == nil {
		e.known = found
		return found, nil
	}
	all := append(slices.Clone(e.known), found...)
	slices.Sort(all)
	return slices.Compact(all), err
}

// Processes requests the status of every process except the one at the address but. It returns after all have answered, or
// after two seconds. The results are in the order of the addresses, each with the status or an error. Processes returns an
// error if the groups cannot be read: there may then be further processes, and the last known ones are asked.
func (c *Client) Processes(ctx context.Context, but string) ([]Heard, error) {
	addresses, err := c.everybody.now(ctx)
	addresses = slices.DeleteFunc(slices.Clone(addresses), func(a string) bool { return a == but })
	all := make([]Heard, len(addresses))
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	var group errgroup.Group
	group.SetLimit(processesAtOnce)
	for i, address := range addresses {
		group.Go(func() error {
			said, err := c.call(ctx, callProcess, address, []byte("{}"))
			c.count(callProcess, err)
			all[i] = Heard{address, said, err}
			return nil
		})
	}
	_ = group.Wait() // the results contain the errors
	return all, err
}
