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

// Process tells how the process is that is here, and not how others are: JSON of a form that this package does not know.
type Process interface {
	Process(ctx context.Context) (json.RawMessage, error)
}

const callProcess = "process"

func handleProcess(mux *http.ServeMux, p Process) {
	mux.Handle("POST "+Path+callProcess, answer(func(ctx context.Context, _ struct{}) (json.RawMessage, error) {
		return p.Process(ctx)
	}))
}

// Everybody tells which processes there are.
type Everybody interface {
	// Addresses returns where they can be asked, in order. It may return some, and an error of what it could not see.
	Addresses(ctx context.Context) ([]string, error)
}

// AllMembers is every process that the brokers name as a member of one of some groups.
type AllMembers struct {
	Admin  *kadm.Client
	Groups func() []string // consumer groups, as the brokers name them
}

// Addresses asks the brokers. A group that has never had a member has none.
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

// Heard is what came of asking one process.
type Heard struct {
	Address string
	Said    json.RawMessage // what its Process returned; nil if Err is not
	Err     error
}

const (
	// everybodyTimeout bounds the question which processes there are, and processTimeout what each is asked for, all at
	// once: who asks wants to know what is wrong, which one that does not answer may be.
	everybodyTimeout = time.Second
	processTimeout   = time.Second

	// processesAtOnce is how many are asked at once.
	processesAtOnce = 64
)

// everybody is the directory with whom it last knew of.
type everybody struct {
	directory Everybody
	timeout   time.Duration // everybodyTimeout

	mu    sync.Mutex
	known []string
}

// now returns who is there; when that cannot be asked, who was, and the error.
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

// Processes asks every process but the one at an address how it is, and returns when all have answered, or two seconds are
// over. What each said, or why it said nothing, is in the order of the addresses. The error is why there may be more of
// them than were asked: the groups cannot be looked at; then those are asked who were there before.
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
	_ = group.Wait() // each has its own error
	return all, err
}
