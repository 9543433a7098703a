package doctor

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/smartfeed/smartfeed/internal/command"
	"github.com/smartfeed/smartfeed/topics"
	"github.com/smartfeed/smartfeed/topics/generation"
)

// groups checks the state and the lag of each consumer group.
func (k Kafka) groups(ctx context.Context, found *Findings) error {
	readers, lags, err := k.lags(ctx)
	if err != nil {
		return err
	}
	adm, err := k.Admin()
	if err != nil {
		return err
	}
	defer adm.Close()
	var names []string
	for _, r := range readers {
		names = append(names, r.Group)
	}
	groups, err := adm.DescribeGroups(ctx, names...)
	if err != nil {
		return fmt.Errorf("describe groups: %w", err)
	}
	members, total := 0, int64(0)
	for _, name := range names {
		members += len(groups[name].Members)
		total += lags[name].records
		group(groups[name], lags[name], name, found)
	}
	if len(*found) == 0 {
		found.OK("%s with %s, a lag of at most %s", command.Count(len(names), "group"), command.Count(members, "member"), command.Count(total, "record"))
	}
	return nil
}

// lag is the lag of a group, and the partitions whose records were deleted before the group read them.
type lag struct {
	records int64
	lost    []string // topic/partition
}

// largeLag is the lag above which a group gets a warning: ten seconds at 10,000 records per second.
const largeLag = 100_000

func group(g kadm.DescribedGroup, l lag, name string, found *Findings) {
	for _, place := range l.lost {
		found.Problem("find out which records were lost, then reset the offset to the oldest with kafka-consumer-groups.sh", "%s: retention deleted records of %s before the group read them", name, place)
	}
	switch {
	case g.Err != nil && !errors.Is(g.Err, kerr.GroupIDNotFound):
		found.Problem("this user may need DESCRIBE on the group", "%s: %v", name, g.Err)
	case g.State == "PreparingRebalance" || g.State == "CompletingRebalance":
		found.Warn("run this again: if the group still rebalances, a member is too slow or keeps rejoining", "%s: the group is rebalancing", name)
	case len(g.Members) == 0:
		found.Warn(start(name), "%s: no member; %s unprocessed", name, command.Count(l.records, "record"))
	case l.records > largeLag:
		found.Warn("run this again: if the lag grows, start more processes, or check the group's metrics and log", "%s: a lag of %s", name, command.Count(l.records, "record"))
	}
}

// start returns the command that runs a consumer group. A process that runs a group runs every generation of it.
func start(group string) string {
	switch base := generation.GroupOf(group); {
	case slices.Contains(topics.RowGroups(), base):
		return fmt.Sprintf(`start "smartfeed process %s"`, base)
	case strings.HasPrefix(group, topics.Materialize):
		return `start "smartfeed materialize", or "smartfeed serve" with an embedded feed store`
	}
	return `start "smartfeed serve"`
}

// lags compares the groups' committed offsets with the start and end offsets of the topics. It returns a reader for each
// generation of a group, and for each process of a consumer that has a group per process.
func (k Kafka) lags(ctx context.Context) ([]topics.Reader, map[string]lag, error) {
	l, err := topics.NewLog(k.Kafka)
	if err != nil {
		return nil, nil, err
	}
	defer l.Close()
	generations := topics.GenerationWatch{Log: l}
	if err := generations.Refresh(ctx); err != nil {
		return nil, nil, err
	}
	readers, err := l.Instances(ctx, generations.Readers(k.Readers))
	if err != nil {
		return nil, nil, err
	}
	all, err := l.Positions(ctx, readers)
	if err != nil {
		return nil, nil, err
	}
	out := map[string]lag{}
	for group, positions := range all {
		var sum lag
		for _, p := range positions {
			if p.Topic == topics.TicksOf(group) { // ticks only wake running processes, and are retained for a day
				continue
			}
			sum.records += p.End - max(p.Committed, p.Start)
			if p.Committed >= 0 && p.Committed < p.Start {
				sum.lost = append(sum.lost, fmt.Sprintf("%s/%d", p.Topic, p.Partition))
			}
		}
		out[group] = sum
	}
	return readers, out, nil
}
