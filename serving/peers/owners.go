package peers

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"golang.org/x/sync/singleflight"

	"github.com/smartfeed/smartfeed/schemas"
)

// Groups tells the members of consumer groups. *kadm.Client is one.
type Groups interface {
	DescribeGroups(ctx context.Context, groups ...string) (kadm.DescribedGroups, error)
}

// owners knows which address has which partition of a group, as the brokers last said.
type owners struct {
	groups Groups
	group  string
	topic  string // an input of the group: its assignment is the group's

	flight singleflight.Group
	mu     sync.RWMutex
	known  map[int32]string // address by partition
	asked  time.Time        // when the brokers were last asked
}

// freshness is how long what the brokers said is not asked again: that is how often all the calls that fail in a
// rebalance can trouble them, together.
const freshness = 50 * time.Millisecond

// refreshTimeout bounds one question to the brokers. It outlives the call that asked: others wait for the same answer.
const refreshTimeout = 5 * time.Second

// owner returns the address of the process that has the partition. Without one that can be asked the error is
// schemas.ErrElsewhere.
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
	return "", fmt.Errorf("nobody who can be asked has partition %d of group %s: %w", partition, o.group, schemas.ErrElsewhere)
}

func (o *owners) lookUp(partition int32) (string, bool) {
	o.mu.RLock()
	defer o.mu.RUnlock()
	address, ok := o.known[partition]
	return address, ok
}

// forget drops what turned out to be wrong, unless somebody has learned better meanwhile.
func (o *owners) forget(partition int32, address string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.known[partition] == address {
		delete(o.known, partition)
	}
}

// refresh asks the brokers, once for all who wait.
func (o *owners) refresh(ctx context.Context) error {
	done := o.flight.DoChan(o.group, func() (any, error) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), refreshTimeout)
		defer cancel()
		return nil, o.ask(ctx)
	})
	select {
	case r := <-done:
		return r.Err
	case <-ctx.Done():
		return fmt.Errorf("look for the owner in group %s: %w", o.group, ctx.Err())
	}
}

// ask reads the group's assignment, if that is not known well enough.
func (o *owners) ask(ctx context.Context) error {
	o.mu.RLock()
	asked := o.asked
	o.mu.RUnlock()
	if time.Since(asked) < freshness {
		return nil
	}
	described, err := o.groups.DescribeGroups(ctx, o.group)
	if err == nil {
		err = described[o.group].Err
	}
	if err != nil {
		return fmt.Errorf("ask for the members of group %s: %w", o.group, err)
	}
	known := assignment(described[o.group], o.topic)
	o.mu.Lock()
	defer o.mu.Unlock()
	o.known, o.asked = known, time.Now()
	return nil
}

// assignment returns who has which partition of a topic. Members that name no address are left out.
func assignment(group kadm.DescribedGroup, topic string) map[int32]string {
	by := map[int32]string{}
	for _, m := range group.Members {
		address := addressOf(m.ClientID)
		assigned, ok := m.Assigned.AsConsumer()
		if address == "" || !ok {
			continue
		}
		for _, t := range assigned.Topics {
			if t.Topic != topic {
				continue
			}
			for _, p := range t.Partitions {
				by[p] = address
			}
		}
	}
	return by
}
