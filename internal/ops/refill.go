package ops

import (
	"context"
	"errors"
	"fmt"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/smartfeed/smartfeed/internal/command"
	"github.com/smartfeed/smartfeed/topics"
)

// Refilled is the result of Refill.
type Refilled struct {
	Group   string `json:"group"`
	Records int64  `json:"records"` // records in the topics, including transaction markers
	Again   int64  `json:"again"`   // records that the group had processed and will process again
}

// String returns the result as one line of text.
func (r Refilled) String() string {
	return fmt.Sprintf("reset %s to the oldest records of its topics: it had processed %d of %d", r.Group, r.Again, r.Records)
}

// MembersError is returned when the offsets of a group cannot be reset, because the group has members.
type MembersError struct {
	Group   string
	State   string // the state of the group in Kafka
	Members int
}

// Error includes the steps that make the group empty.
func (e *MembersError) Error() string {
	return fmt.Sprintf("%s is %s with %s: stop every process that fills its store, wait until they have left the group (6s after a kill), then try again",
		e.Group, e.State, command.Count(e.Members, "member"))
}

// Refill resets the group of a feed store to the oldest offsets. The next sink then fills the store from all records in
// the topics. You need not empty the store before, because writes to it are idempotent. Refill returns a *MembersError if
// the group has members, because their commits would overwrite the reset.
func Refill(ctx context.Context, k topics.Kafka, store string) (Refilled, error) {
	l, err := topics.NewLog(k)
	if err != nil {
		return Refilled{}, err
	}
	defer l.Close()
	adm, err := k.Admin()
	if err != nil {
		return Refilled{}, err
	}
	defer adm.Close()
	group := topics.MaterializeGroup(store)
	if err := emptyGroup(ctx, adm, group); err != nil {
		return Refilled{}, fmt.Errorf("refill: %w", err)
	}
	done, reset, err := oldest(ctx, l, topics.Reader{Group: group, Topics: topics.ReadBy(topics.Materialize)})
	if err == nil {
		err = adm.CommitAllOffsets(ctx, group, reset) // the brokers reject this if a member has joined in the meantime
	}
	if err != nil {
		return Refilled{}, fmt.Errorf("refill: reset the offsets of %s: %w", group, err)
	}
	return done, nil
}

// oldest returns the oldest offsets of the topics that a group reads, and the numbers of records.
func oldest(ctx context.Context, l *topics.Log, of topics.Reader) (Refilled, kadm.Offsets, error) {
	done, starts := Refilled{Group: of.Group}, kadm.Offsets{}
	at, err := l.Positions(ctx, []topics.Reader{of})
	if err != nil {
		return done, nil, err
	}
	for _, p := range at[of.Group] {
		starts.AddOffset(p.Topic, p.Partition, p.Start, -1)
		done.Records += max(0, p.End-p.Start)
		done.Again += max(0, p.Committed-p.Start)
	}
	return done, starts, nil
}

// emptyGroup returns nil for a group without members, and for a group that does not exist.
func emptyGroup(ctx context.Context, adm *kadm.Client, name string) error {
	groups, err := adm.DescribeGroups(ctx, name)
	if err == nil {
		err = groups[name].Err
	}
	switch g := groups[name]; {
	case errors.Is(err, kerr.GroupIDNotFound), errors.Is(err, kerr.CoordinatorNotAvailable): // the latter: the brokers never had any group
		return nil
	case err != nil:
		return fmt.Errorf("describe group %s: %w", name, err)
	case len(g.Members) > 0 || g.State != "Empty" && g.State != "Dead":
		return &MembersError{Group: name, State: g.State, Members: len(g.Members)}
	}
	return nil
}
