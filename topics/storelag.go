package topics

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/smartfeed/smartfeed/internal/pause"
)

// StoreLag knows which feed stores lack records that another feed store already has. It compares the offsets that the
// stores' consumer groups have committed; a store's group commits once the store has the records. Run it. It is safe for
// concurrent use.
type StoreLag struct {
	log        *Log
	groups     map[string]string // that fill the stores, by store
	readers    []Reader
	partitions int32
	every      time.Duration

	most   Offsets // what any of the stores had at the last look
	behind atomic.Pointer[map[storePlace]bool]
}

// storePlace is one partition as a store has it.
type storePlace struct {
	store, topic string
	partition    int32
}

// NewStoreLag compares the stores that groups fill, by store, every so often. A store lags where it lacks what another
// one had at the previous look, so the difference is found between one and two intervals later. Close log after Run.
func NewStoreLag(log *Log, groups map[string]string, partitions int32, every time.Duration) *StoreLag {
	l := &StoreLag{log: log, groups: groups, partitions: partitions, every: every}
	for _, group := range groups {
		l.readers = append(l.readers, Reader{Group: group})
	}
	return l
}

// Behind reports whether a store lags in one of the partitions of a topic that hold keys. Before the first look no store
// does. While the brokers cannot be asked, the last answer stands: stores then get no records either.
func (l *StoreLag) Behind(store, topic string, keys ...string) bool {
	behind := l.behind.Load()
	if behind == nil || len(*behind) == 0 {
		return false
	}
	for _, key := range keys {
		if (*behind)[storePlace{store, topic, Partition(key, l.partitions)}] {
			return true
		}
	}
	return false
}

// Run looks until ctx ends (nil) or the brokers cannot be asked (the error). It may be called again.
func (l *StoreLag) Run(ctx context.Context) error {
	for {
		if err := l.look(ctx); err != nil {
			if ctx.Err() != nil {
				return nil
			}
			return err
		}
		if !pause.For(ctx, l.every) {
			return nil
		}
	}
}

func (l *StoreLag) look(ctx context.Context) error {
	committed, err := l.log.committed(ctx, l.readers)
	if err != nil {
		return err
	}
	before, most := l.most, mostOf(committed)
	if before == nil {
		before = most
	}
	behind := map[storePlace]bool{}
	for topic, partitions := range before {
		for p, had := range partitions {
			for store, group := range l.groups {
				if committed[group][topic][p] < had {
					behind[storePlace{store, topic, p}] = true
				}
			}
		}
	}
	l.most = most
	l.behind.Store(&behind)
	return nil
}

// mostOf returns the highest offset of each partition that any group has committed.
func mostOf(committed map[string]Offsets) Offsets {
	most := Offsets{}
	for _, offsets := range committed {
		for topic, partitions := range offsets {
			if most[topic] == nil {
				most[topic] = map[int32]int64{}
			}
			for p, at := range partitions {
				most[topic][p] = max(most[topic][p], at)
			}
		}
	}
	return most
}
