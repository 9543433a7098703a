package peers

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kmsg"
	"golang.org/x/sync/singleflight"

	"github.com/smartfeed/smartfeed/schemas"
	"github.com/smartfeed/smartfeed/topics/generation"
)

// Directory finds the owners of partitions.
type Directory interface {
	// Owners returns the address of the owner of each partition. It omits partitions without an owner.
	Owners(ctx context.Context) (map[int32]string, error)
}

// Members is the directory of a consumer group on the brokers: the members whose client id contains an address.
type Members struct {
	Admin *kadm.Client
	Group string
	Topic string // an input of the group; its assignment is that of the group

	// Generation returns the number of the group's active generation; nil: the first.
	Generation func() int
}

// group returns the name of the members' consumer group.
func (m Members) group() string {
	if m.Generation == nil {
		return m.Group
	}
	return generation.Name(m.Group, m.Generation())
}

// Owners reads the assignment from the brokers.
func (m Members) Owners(ctx context.Context) (map[int32]string, error) {
	group := m.group()
	described, err := m.Admin.DescribeGroups(ctx, group)
	if err == nil {
		err = described[group].Err
	}
	if err != nil {
		return nil, fmt.Errorf("list the members of group %s: %w", group, err)
	}
	by := map[int32]string{}
	for _, member := range described[group].Members {
		assigned, ok := member.Assigned.AsConsumer()
		if address := addressOf(member.ClientID); ok && address != "" {
			note(by, assigned, m.Topic, address)
		}
	}
	return by, nil
}

// note records a member's partitions of a topic.
func note(by map[int32]string, assigned *kmsg.ConsumerMemberAssignment, topic, address string) {
	for _, t := range assigned.Topics {
		if t.Topic != topic {
			continue
		}
		for _, p := range t.Partitions {
			by[p] = address
		}
	}
}

// owners caches the result of a directory.
type owners struct {
	directory Directory

	flight singleflight.Group
	mu     sync.RWMutex
	known  map[int32]string // address by partition
	read   time.Time        // time of the last read of the directory
}

// freshness is the minimum interval between two reads of the directory. It limits the load on the brokers from all calls
// that fail during a rebalance.
const freshness = 50 * time.Millisecond

// refreshTimeout limits one read of the directory. The read outlives the call that started it, because other calls wait for
// the same result.
const refreshTimeout = 5 * time.Second

// owner returns the address of the owner of the partition. If there is no owner with an address, the error is
// schemas.ErrNotOwner.
func (o *owners) owner(ctx context.Context, partition int32) (string, error) {
	if address, ok := o.lookUp(partition); ok {
		return address, nil
	}
	if err := o.refresh(ctx); err != nil {
		return "", err
	}
	if address, ok := o.lookUp(partition); ok {
		return address, nil
	}
	return "", fmt.Errorf("partition %d has no owner with an address: %w", partition, schemas.ErrNotOwner)
}

func (o *owners) lookUp(partition int32) (string, bool) {
	o.mu.RLock()
	defer o.mu.RUnlock()
	address, ok := o.known[partition]
	return address, ok
}

// forget removes an address that turned out to be wrong, unless it has been replaced in the meantime.
func (o *owners) forget(partition int32, address string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.known[partition] == address {
		delete(o.known, partition)
	}
}

// refresh reads the directory, once for all waiting calls.
func (o *owners) refresh(ctx context.Context) error {
	done := o.flight.DoChan("owners", func() (any, error) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), refreshTimeout)
		defer cancel()
		return nil, o.reload(ctx)
	})
	select {
	case r := <-done:
		return r.Err
	case <-ctx.Done():
		return fmt.Errorf("find the owner: %w", ctx.Err())
	}
}

// reload reads the directory unless the last result is fresh.
func (o *owners) reload(ctx context.Context) error {
	o.mu.RLock()
	read := o.read
	o.mu.RUnlock()
	if time.Since(read) < freshness {
		return nil
	}
	known, err := o.directory.Owners(ctx)
	if err != nil {
		return err
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.known, o.read = known, time.Now()
	return nil
}
