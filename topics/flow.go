package topics

import (
	"context"
	"maps"
	"slices"

	"github.com/twmb/franz-go/pkg/kadm"
)

// Flow is one topic with its writers, its readers, and its record count.
type Flow struct {
	Topic       string   `json:"topic"`
	Key         string   `json:"key"`                    // the meaning of the record key
	GlobalTable bool     `json:"global_table,omitempty"` // global table: every process that needs it holds a full copy
	Writers     []string `json:"writers"`
	Readers     []Lag    `json:"readers"` // in the order of the catalogue; for a reader with one group per process, the largest lag
	Records     int64    `json:"records"` // end offsets summed: records and transaction markers
}

// Flows returns the current state of the topics between the groups of a catalogue, in its order. It omits topics that are
// private to one group, such as changelogs and ticks. readers lists the consumers that commit offsets. Records produced
// while Flows runs may count as lag but not as records.
func (l *Log) Flows(ctx context.Context, catalogue []Topic, readers []Reader) ([]Flow, error) {
	shared := slices.DeleteFunc(slices.Clone(catalogue), func(t Topic) bool { return t.Record == "" })
	names := Names(shared)
	running, err := l.running(ctx)
	if err != nil {
		return nil, err
	}
	at, err := l.snapshot(ctx, instances(readers, running), names)
	if err != nil {
		return nil, err
	}
	flows := make([]Flow, 0, len(names))
	for _, t := range shared {
		f := Flow{Topic: t.Name, Key: t.Key, GlobalTable: t.GlobalTable, Writers: t.Writers, Readers: []Lag{}}
		for _, end := range at.ends[t.Name] {
			f.Records += end
		}
		for _, r := range readers {
			if r.reads(t.Name) {
				lag := Lag{Group: r.Group, Topic: t.Name}
				for _, one := range instances([]Reader{r}, running) {
					lag.Records = max(lag.Records, at.waiting(one.Group, t))
				}
				f.Readers = append(f.Readers, lag)
			}
		}
		flows = append(flows, f)
	}
	return flows, nil
}

// snapshot holds the positions of readers in topics.
type snapshot struct {
	committed map[string]Offsets // by group
	extent
}

// waiting returns the number of records of a topic that a group has not processed.
func (s snapshot) waiting(group string, t Topic) int64 {
	return sumOfLags(s.committed[group][t.Name], s.starts[t.Name], s.ends[t.Name], t.transactional())
}

// snapshot reads committed offsets before end offsets, so that no reader is ahead of an end.
func (l *Log) snapshot(ctx context.Context, readers []Reader, names []string) (s snapshot, err error) {
	if s.committed, err = l.committed(ctx, readers); err == nil {
		s.extent, err = l.extent(ctx, names...)
	}
	return s, err
}

// transactional reports whether all records of a topic are written in transactions.
func (t Topic) transactional() bool {
	return !slices.ContainsFunc(t.Writers, func(w string) bool { return !slices.Contains(RowGroups(), w) })
}

// sumOfLags returns the sum of the lags of all partitions. A partition without a committed offset counts from its start. In a
// transactional topic a marker follows each record, so a lag of one is a marker, or a record that is not committed yet.
func sumOfLags(committed, starts, ends map[int32]int64, transactional bool) int64 {
	var sum int64
	for p, end := range ends {
		from, ok := committed[p]
		if !ok {
			from = starts[p]
		}
		if lag := end - from; lag > 1 || lag == 1 && !transactional {
			sum += lag
		}
	}
	return sum
}

// committed returns the committed offsets by group. A group that has never committed has none. For a reader with one group
// per process (Reader.Each), pass the groups of the processes, see instances.
func (l *Log) committed(ctx context.Context, readers []Reader) (map[string]Offsets, error) {
	var groups []string
	for _, r := range readers {
		if !r.Each {
			groups = append(groups, r.Group)
		}
	}
	all, err := fetchOffsets(ctx, l.admin, groups...)
	if err != nil {
		return nil, err
	}
	out := map[string]Offsets{}
	for group, fetched := range all {
		out[group] = Offsets{}
		fetched.Fetched.Each(func(o kadm.OffsetResponse) {
			if o.At >= 0 {
				out[group].Set(o.Topic, o.Partition, o.At)
			}
		})
	}
	return out, nil
}

// Position is the position of a consumer in one partition.
type Position struct {
	Topic      string
	Partition  int32
	Committed  int64 // offset of the next record to read; -1: nothing committed
	Start, End int64 // of the partition
}

// Positions returns the positions of readers in all partitions that they read, by group.
func (l *Log) Positions(ctx context.Context, readers []Reader) (map[string][]Position, error) {
	var names []string
	for _, r := range readers {
		names = append(names, r.Topics...)
	}
	at, err := l.snapshot(ctx, readers, names)
	if err != nil {
		return nil, err
	}
	all := map[string][]Position{}
	for _, r := range readers {
		for _, topic := range r.Topics {
			all[r.Group] = append(all[r.Group], at.positions(topic, at.committed[r.Group][topic])...)
		}
	}
	return all, nil
}

// positions returns the positions in all partitions of a topic, in order.
func (e extent) positions(topic string, committed map[int32]int64) []Position {
	var all []Position
	for _, p := range slices.Sorted(maps.Keys(e.ends[topic])) {
		next, ok := committed[p]
		if !ok {
			next = -1
		}
		all = append(all, Position{topic, p, next, e.starts[topic][p], e.ends[topic][p]})
	}
	return all
}
