package topics

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"

	"github.com/smartfeed/smartfeed/internal/convert"
	"github.com/smartfeed/smartfeed/schemas"
)

// Reader is a consumer with the topics that it reads. It commits an offset once the effect of the record exists.
type Reader struct {
	Group  string
	Topics []string
	Each   bool // every process has its own group, named after Group: see InstanceGroup
}

func (r Reader) reads(topic string) bool { return slices.Contains(r.Topics, topic) }

// ReadersOf returns the consumers of a catalogue, in the order in which records reach them, apart from those of global tables,
// of which there is one per process.
func ReadersOf(catalogue []Topic) []Reader {
	var readers []Reader
	for _, t := range catalogue {
		for _, group := range t.Readers {
			i := slices.IndexFunc(readers, func(r Reader) bool { return r.Group == group })
			if i < 0 {
				i = len(readers)
				readers = append(readers, Reader{Group: group, Each: slices.Contains(instanceReaders(), group)})
			}
			readers[i].Topics = append(readers[i].Topics, t.Name)
		}
	}
	return readers
}

// Lag is the number of records of a topic that one consumer has not processed.
type Lag struct {
	Group   string `json:"group"`
	Topic   string `json:"topic"`
	Records int64  `json:"records"` // upper bound: includes markers and records of later events
}

// String returns the lag for people.
func (l Lag) String() string { return fmt.Sprintf("%s: %d of %s", l.Group, l.Records, l.Topic) }

// WaitState holds the unprocessed records that Wait waits for.
type WaitState struct {
	Lags []Lag `json:"lags"` // in the order of the readers
	Err  error `json:"-"`    // the last error of the brokers or of an external consumer
}

// String returns one line for people, "unknown" before the first check.
func (s WaitState) String() string {
	parts := convert.All(s.Lags, Lag.String)
	if s.Err != nil {
		parts = append(parts, s.Err.Error())
	}
	if len(parts) == 0 {
		return "unknown"
	}
	return strings.Join(parts, ", ")
}

// WaitError is returned when the context of Wait is canceled while records are unprocessed.
type WaitError struct {
	State WaitState
	Cause error // cause of the cancellation
}

// Error names the cause of the cancellation and the readers that lag.
func (e *WaitError) Error() string {
	return fmt.Sprintf("wait: %v: unprocessed: %s", e.Cause, e.State)
}

// Unwrap returns the cause of the cancellation.
func (e *WaitError) Unwrap() error { return e.Cause }

// Wait returns nil when every event whose publication was acknowledged before the call has had its complete effect in every
// reader, including all derived records. It returns a *WaitError when ctx is canceled before. since is the caller's current
// time. Wait does not wait for records that originate from later events, so it returns while events keep arriving. The
// clock that stamps records may be ahead of the caller's by up to schemas.MaxAhead. Brokers that are unavailable are
// retried.
//
// If a topic of a reader is missing for missingPatience, Wait returns a *MissingTopicsError. The delay is necessary because
// brokers learn of a new topic at different times.
//
// Wait does not cover external consumers, which commit no offsets. Call AwaitExternalConsumers after it. It does not wait for
// FeatureFiles either: its records are answers, not effects of events, and it keeps them in memory for minutes.
//
// Without readers, Wait uses those of the catalogue. It always waits for every process that holds a global table. For a
// reader with one group per process, it waits for the running processes or, if there is none, for the first to start. Wait
// calls progress, unless nil, after each check.
//
// A reader has processed a partition when no committed data record from before the call lies between the reader's committed
// offset and the partition's end. This is exact, even with loop topics, because each check reads all committed offsets
// first and then all ends. Follow any event through its derived records. Either the reader of a record has committed it:
// then the derived records were in the log before, and so before the ends were read. Or the reader has not committed it,
// and Wait continues.
func Wait(ctx context.Context, k Kafka, since schemas.Micros, progress func(WaitState), readers ...Reader) error {
	l, err := NewLog(k)
	if err != nil {
		return err
	}
	defer l.Close()
	if len(readers) == 0 {
		readers = ReadersOf(Catalogue(Profile{Partitions: k.Partitions}))
	}
	readers = slices.DeleteFunc(slices.Clone(readers), func(r Reader) bool { return r.Group == FeatureFiles })
	w := &waiter{log: l, since: since, readers: readers, backlogs: map[groupPartition]*backlog{}, generations: &GenerationWatch{Log: l}}
	return await(ctx, waitInterval, progress, w.check)
}

// waitInterval is the time between two checks if the lag is small.
const waitInterval = 20 * time.Millisecond

// await calls check until nothing is unprocessed. It returns a *WaitError when ctx is canceled, and the error of check if
// topics have been missing for missingPatience. It retries after any other error.
func await(ctx context.Context, interval time.Duration, progress func(WaitState), check func(context.Context) (WaitState, error)) error {
	var last WaitState
	var missing missingTopics
	for {
		state, err := check(ctx)
		switch {
		case ctx.Err() != nil:
			return &WaitError{State: last, Cause: context.Cause(ctx)}
		case missing.exceedPatience(err):
			return fmt.Errorf("wait: %w", err)
		case err != nil:
			last.Err = err
		default:
			last = state
		}
		if progress != nil {
			progress(last)
		}
		if last.Err == nil && len(last.Lags) == 0 {
			return nil
		}
		pause(ctx, interval, last)
	}
}

// missingPatience is the time after which a missing topic is an error. Brokers announce a new topic to each other within a second.
const missingPatience = 5 * time.Second

// missingTopics records the time since when topics have been missing continuously; zero: none is missing.
type missingTopics struct{ since time.Time }

// exceedPatience evaluates the error of a check, and reports whether topics have been missing for missingPatience.
func (m *missingTopics) exceedPatience(err error) bool {
	_, missing := errors.AsType[*MissingTopicsError](err)
	switch {
	case !missing:
		m.since = time.Time{}
	case m.since.IsZero():
		m.since = time.Now()
	default:
		return time.Since(m.since) >= missingPatience
	}
	return false
}

// pause waits between two checks, for at least 200 ms if the lag is large or the brokers do not answer.
func pause(ctx context.Context, d time.Duration, s WaitState) {
	var lag int64
	for _, l := range s.Lags {
		lag += l.Records
	}
	if lag > maxScan || s.Err != nil {
		d = max(d, 200*time.Millisecond)
	}
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}

// waiter is one call of Wait or AwaitExternalConsumers.
type waiter struct {
	log         *Log
	since       schemas.Micros
	readers     []Reader
	generations *GenerationWatch // of the readers
	first       extent           // at the first check: records below the ends existed at the call
	latest      schemas.Micros   // newest timestamp at the first check, by the clock that stamps records
	backlogs    map[groupPartition]*backlog
}

// groupPartition is one partition as read by one group.
type groupPartition struct {
	group, topic string
	partition    int32
}

// backlog returns the backlog of a group in a partition, see the fields of backlog.
func (w *waiter) backlog(at groupPartition, before int64, since schemas.Micros) *backlog {
	if w.backlogs[at] == nil {
		w.backlogs[at] = &backlog{before: before, since: since, lastOld: -1}
	}
	return w.backlogs[at]
}

// check compares the committed offsets with the ends once.
func (w *waiter) check(ctx context.Context) (state WaitState, err error) {
	readers, err := w.withGlobalTables(ctx)
	if err != nil {
		return state, err
	}
	committed, err := w.log.committed(ctx, readers)
	if err != nil {
		return state, err
	}
	ends, err := w.ends(ctx, readers) // after the committed offsets: see Wait
	if err != nil {
		return state, err
	}
	for _, r := range readers {
		for _, topic := range r.Topics {
			lag, err := w.lag(ctx, r.Group, extent{w.first.starts, ends}.positions(topic, committed[r.Group][topic]))
			if err != nil {
				return state, err
			}
			state.add(Lag{Group: r.Group, Topic: topic, Records: lag})
		}
	}
	return state, nil
}

// add adds a lag, unless it is 0.
func (s *WaitState) add(l Lag) {
	if l.Records > 0 {
		s.Lags = append(s.Lags, l)
	}
}

// withGlobalTables adds the groups of the running processes that hold a global table.
func (w *waiter) withGlobalTables(ctx context.Context) ([]Reader, error) {
	groups, err := w.log.running(ctx)
	if err != nil {
		return nil, err
	}
	if err := w.generations.Refresh(ctx); err != nil {
		return nil, err
	}
	readers := instances(w.generations.Readers(w.readers), groups)
	for _, t := range Catalogue(Profile{}) {
		for _, g := range groups {
			if t.GlobalTable && strings.HasPrefix(g, globalTablePrefix(t.Name)) {
				readers = append(readers, Reader{Group: g, Topics: []string{t.Name}})
			}
		}
	}
	return readers, nil
}

// running returns the groups that have members, sorted.
func (l *Log) running(ctx context.Context) ([]string, error) {
	groups, err := l.admin.ListGroups(ctx)
	if err != nil {
		return nil, fmt.Errorf("list groups: %w", err)
	}
	var names []string
	for _, g := range groups.Sorted() {
		if g.State != "Empty" && g.State != "Dead" {
			names = append(names, g.Group)
		}
	}
	return names, nil
}

// instances replaces each reader with one group per process (Each) by its running processes. A reader without a running
// process stays; it has committed nothing. A group with the reader's plain name belongs to processes of the previous
// release.
func instances(readers []Reader, running []string) []Reader {
	var list []Reader
	for _, r := range readers {
		before := len(list)
		for _, group := range running {
			if r.Each && strings.HasPrefix(group, instancePrefix(r.Group)) {
				list = append(list, Reader{Group: group, Topics: r.Topics})
			}
		}
		if len(list) == before {
			list = append(list, r)
		}
	}
	return list
}

// ends returns the ends of all topics. The first call also records the ends and timestamps at the call of Wait.
func (w *waiter) ends(ctx context.Context, readers []Reader) (Offsets, error) {
	topics := map[string]bool{}
	for _, r := range readers {
		for _, t := range r.Topics {
			topics[t] = true
		}
	}
	names := slices.Sorted(maps.Keys(topics))
	if w.first.ends != nil {
		return w.log.Ends(ctx, names...)
	}
	first, err := w.log.extent(ctx, names...)
	if err != nil {
		return nil, err
	}
	newest, err := w.log.admin.ListMaxTimestampOffsets(ctx, names...)
	if err != nil {
		return nil, fmt.Errorf("list newest timestamps: %w", err)
	}
	newest.Each(func(o kadm.ListedOffset) {
		// The caller's clock may be behind the clock that stamps records, but only by MaxAhead. With a record from the far
		// future, Wait would wait for all later records.
		if at := schemas.MicrosOf(time.UnixMilli(o.Timestamp)); at.Time().Sub(w.since.Time()) <= schemas.MaxAhead {
			w.latest = max(w.latest, at)
		}
	})
	w.first = first
	return first.ends, nil
}

// lag returns the number of records after the positions of a group, or 0 if none of them is old.
func (w *waiter) lag(ctx context.Context, group string, positions []Position) (sum int64, err error) {
	for _, at := range positions {
		if at.Committed >= 0 {
			at.Start = at.Committed // records that retention deleted unread count, too
		}
		b := w.backlog(groupPartition{group, at.Topic, at.Partition}, w.first.ends[at.Topic][at.Partition], max(w.since, w.latest))
		records, err := w.log.unprocessed(ctx, b, at, readBytes)
		if err != nil {
			return 0, err
		}
		sum += records
	}
	return sum, nil
}
