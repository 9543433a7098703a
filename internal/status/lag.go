package status

import (
	"context"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/smartfeed/smartfeed/topics"
)

// AddLag requests the end offsets of the inputs and sets the lag of each group, with one request per group. A request fails
// as a whole if this process may not describe one of the topics. AddLag lists the groups without lag in Unavailable.
func (s *Status) AddLag(ctx context.Context, from Ends) {
	errs := make([]error, len(s.Groups))
	var all sync.WaitGroup
	for i := range s.Groups {
		all.Go(func() { errs[i] = s.Groups[i].addLag(ctx, from) })
	}
	all.Wait()
	for i, err := range errs {
		if err != nil {
			s.withoutLag(s.Groups[i].Group, err.Error())
		}
	}
}

// withoutLag lists groups without lag, in one entry per reason.
func (s *Status) withoutLag(group, why string) {
	const what = "the lag of "
	at := slices.IndexFunc(s.Unavailable, func(u Unavailable) bool { return u.Reason == why && strings.HasPrefix(u.Source, what) })
	if at < 0 {
		s.Unavailable = append(s.Unavailable, Unavailable{what + group, why})
		return
	}
	s.Unavailable[at].Source += ", " + group
}

// Ends returns the end offsets of topics. topics.Log implements it.
type Ends interface {
	Ends(ctx context.Context, topics ...string) (topics.Offsets, error)
}

func (g *Group) addLag(ctx context.Context, from Ends) error {
	inputs := map[string]bool{}
	for _, part := range g.Partitions {
		for topic := range part.Applied {
			inputs[topic] = true
		}
	}
	var ends topics.Offsets
	if len(inputs) > 0 { // an empty list would mean all topics
		var err error
		if ends, err = from.Ends(ctx, slices.Sorted(maps.Keys(inputs))...); err != nil {
			return err
		}
	}
	g.Lag = lagOf(g.Partitions, ends)
	return nil
}

// lagOf returns the number of unprocessed records by topic. During a rebalance, two processes may report a partition. The
// higher offset counts.
func lagOf(partitions []Partition, ends topics.Offsets) map[string]int64 {
	applied := topics.Offsets{}
	for _, p := range partitions {
		for topic, at := range p.Applied {
			if applied[topic] == nil {
				applied[topic] = map[int32]int64{}
			}
			if known, twice := applied[topic][p.Partition]; !twice || at > known {
				applied[topic][p.Partition] = at
			}
		}
	}
	lag := map[string]int64{}
	for topic, by := range applied {
		for p, at := range by {
			lag[topic] += max(0, ends[topic][p]-at-1)
		}
	}
	return lag
}
