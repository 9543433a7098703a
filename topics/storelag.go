package topics

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/smartfeed/smartfeed/internal/periodic"
)

// StoreLag detects feed stores that lag behind another feed store. It compares the committed offsets of the stores' consumer
// groups. A group commits once its store has the records. Call Run to keep it up to date. It is safe for concurrent use.
type StoreLag struct {
	log        *Log
	groups     map[string]string // consumer groups, by store
	readers    []Reader
	partitions int32
	every      time.Duration

	highest Offsets // highest offsets of any store at the last check
	lagging atomic.Pointer[map[storePartition]bool]
}

// storePartition is one partition in one store.
type storePartition struct {
	store, topic string
	partition    int32
}

// NewStoreLag returns a StoreLag that compares the stores at the given interval. groups has the consumer group of each
// store. A store lags if it lacks records that another store had at the previous check. A difference is therefore detected
// after one to two intervals. Close log after Run has returned.
func NewStoreLag(log *Log, groups map[string]string, partitions int32, every time.Duration) *StoreLag {
	l := &StoreLag{log: log, groups: groups, partitions: partitions, every: every}
	for _, group := range groups {
		l.readers = append(l.readers, Reader{Group: group})
	}
	return l
}

// Lags reports whether a store lags in one of the partitions of a topic that hold keys. Before the first check it returns
// false. While the brokers are unavailable, the last result stays valid, because stores get no records then, either.
func (l *StoreLag) Lags(store, topic string, keys ...string) bool {
	behind := l.lagging.Load()
	if behind == nil || len(*behind) == 0 {
		return false
	}
	for _, key := range keys {
		if (*behind)[storePartition{store, topic, Partition(key, l.partitions)}] {
			return true
		}
	}
	return false
}

// Run checks until ctx is canceled (nil) or the brokers do not answer (the error). It may be called again.
func (l *StoreLag) Run(ctx context.Context) error {
	return periodic.Run(ctx, l.every, func() error {
		if err := l.check(ctx); ctx.Err() == nil {
			return err
		}
		return nil
	})
}

func (l *StoreLag) check(ctx context.Context) error {
	committed, err := l.log.committed(ctx, l.readers)
	if err != nil {
		return err
	}
	before, most := l.highest, mostOf(committed)
	if before == nil {
		before = most
	}
	behind := map[storePartition]bool{}
	for topic, partitions := range before {
		for p, had := range partitions {
			for store, group := range l.groups {
				if committed[group][topic][p] < had {
					behind[storePartition{store, topic, p}] = true
				}
			}
		}
	}
	l.highest = most
	l.lagging.Store(&behind)
	return nil
}

// mostOf returns the highest offset of each partition that any group has committed.
func mostOf(committed map[string]Offsets) Offsets {
	most := Offsets{}
	for _, offsets := range committed {
		for topic, partitions := range offsets {
			for p, at := range partitions {
				most.Set(topic, p, max(most[topic][p], at))
			}
		}
	}
	return most
}
