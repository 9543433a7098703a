package topics

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
)

// Flow is one topic with who writes and who reads it, and how much has gone through.
type Flow struct {
	Topic   string   `json:"topic"`
	Key     string   `json:"key"`             // what the record key is
	Whole   bool     `json:"whole,omitempty"` // every process that needs it holds all of it
	Writers []string `json:"writers"`
	Readers []Lag    `json:"readers"` // in the order of the catalogue; of one that each process is by itself, the one farthest behind
	Records int64    `json:"records"` // offsets given: records and transaction markers
}

// Flows returns the topics that join the groups of a catalogue, in its order, as they stand now. What is one
// group's own (its rows, its ticks) is left out. readers say who commits offsets. Records that came while Flows asked
// may count as lag and not as records.
func (l *Log) Flows(ctx context.Context, catalogue []Topic, readers []Reader) ([]Flow, error) {
	var names []string
	for _, t := range catalogue {
		if t.Record != "" {
			names = append(names, t.Name)
		}
	}
	running, err := l.running(ctx)
	if err != nil {
		return nil, err
	}
	at, err := l.snapshot(ctx, instances(readers, running), names)
	if err != nil {
		return nil, err
	}
	flows := make([]Flow, 0, len(names))
	for _, t := range catalogue {
		if t.Record == "" {
			continue
		}
		f := Flow{Topic: t.Name, Key: t.Key, Whole: t.Whole, Writers: t.Writers, Readers: []Lag{}}
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

// snapshot is where readers stand in topics.
type snapshot struct {
	committed    map[string]Offsets // by group
	starts, ends Offsets
}

// waiting is how much of a topic a group has not worked off.
func (s snapshot) waiting(group string, t Topic) int64 {
	return behind(s.committed[group][t.Name], s.starts[t.Name], s.ends[t.Name], t.transactional())
}

// snapshot asks in this order, so that no reader is ahead of an end.
func (l *Log) snapshot(ctx context.Context, readers []Reader, names []string) (s snapshot, err error) {
	if s.committed, err = l.committed(ctx, readers); err != nil {
		return s, err
	}
	if s.starts, err = l.Starts(ctx, names...); err != nil {
		return s, err
	}
	s.ends, err = l.Ends(ctx, names...)
	return s, err
}

// transactional says whether all that is in a topic came in transactions.
func (t Topic) transactional() bool {
	return !slices.ContainsFunc(t.Writers, func(w string) bool { return !slices.Contains(RowGroups(), w) })
}

// behind counts what lies between committed offsets, or where a partition begins, and the ends. In a transactional topic
// a record has a marker behind it: a single offset is a marker, or not committed yet.
func behind(committed, starts, ends map[int32]int64, transactional bool) int64 {
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

// committed returns the committed offsets by group. A group that has never committed has none, and of readers that every
// process is by itself only those processes have any.
func (l *Log) committed(ctx context.Context, readers []Reader) (map[string]Offsets, error) {
	var groups []string
	for _, r := range readers {
		if !r.Each {
			groups = append(groups, r.Group)
		}
	}
	out := map[string]Offsets{}
	for group, fetched := range l.admin.FetchManyOffsets(ctx, groups...) {
		if fetched.Err != nil && !errors.Is(fetched.Err, kerr.GroupIDNotFound) {
			return nil, fmt.Errorf("fetch offsets of %s: %w", group, fetched.Err)
		}
		out[group] = Offsets{}
		for topic, partitions := range fetched.Fetched {
			out[group][topic] = atOf(partitions)
		}
	}
	return out, nil
}

func atOf(partitions map[int32]kadm.OffsetResponse) map[int32]int64 {
	at := map[int32]int64{}
	for p, o := range partitions {
		if o.At >= 0 {
			at[p] = o.At
		}
	}
	return at
}

// Position is where a consumer stands in one partition.
type Position struct {
	Topic      string
	Partition  int32
	Committed  int64 // what it reads next; -1: it has committed nothing
	Start, End int64 // of the partition
}

// Positions returns where readers stand in all partitions that they read, by group.
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
			for p, end := range at.ends[topic] {
				next, ok := at.committed[r.Group][topic][p]
				if !ok {
					next = -1
				}
				all[r.Group] = append(all[r.Group], Position{topic, p, next, at.starts[topic][p], end})
			}
		}
	}
	return all, nil
}
