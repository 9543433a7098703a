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
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/smartfeed/smartfeed/internal/pause"
	"github.com/smartfeed/smartfeed/schemas"
)

// Reader is a consumer that commits an offset once the record's effect is there, with the topics it reads.
type Reader struct {
	Group  string
	Topics []string
	Each   bool // every process is one by itself, in a group named after Group: see InstanceGroup
}

func (r Reader) reads(topic string) bool { return slices.Contains(r.Topics, topic) }

// ReadersOf returns the consumers of a catalogue, without those that hold a topic whole: there is one a process.
func ReadersOf(catalogue []Topic) []Reader {
	var readers []Reader
	for _, group := range consumers(catalogue) {
		r := Reader{Group: group, Each: slices.Contains(instanceReaders(), group)}
		for _, t := range catalogue {
			if slices.Contains(t.Readers, group) {
				r.Topics = append(r.Topics, t.Name)
			}
		}
		readers = append(readers, r)
	}
	return readers
}

// Lag is what one consumer has not worked off of one topic.
type Lag struct {
	Group   string `json:"group"`
	Topic   string `json:"topic"`
	Records int64  `json:"records"` // at most: markers and records of later events among them
}

// String is for people.
func (l Lag) String() string { return fmt.Sprintf("%s: %d of %s", l.Group, l.Records, l.Topic) }

// WaitState is what is still waited for.
type WaitState struct {
	Behind []Lag `json:"behind"` // in the order of the readers
	Err    error `json:"-"`      // why the brokers, or an outsider, could not be asked the last time
}

// String is one line for people, "unknown" before the first look.
func (s WaitState) String() string {
	parts := make([]string, len(s.Behind), len(s.Behind)+1)
	for i, l := range s.Behind {
		parts[i] = l.String()
	}
	if s.Err != nil {
		parts = append(parts, s.Err.Error())
	}
	if len(parts) == 0 {
		return "unknown"
	}
	return strings.Join(parts, ", ")
}

// WaitError says what had not been worked off when the context of Wait ended.
type WaitError struct {
	State WaitState
	Cause error // of the context's end
}

// Error says why waiting ended and what is still behind.
func (e *WaitError) Error() string {
	return fmt.Sprintf("wait: %v: still behind: %s", e.Cause, e.State)
}

// Unwrap returns why waiting ended.
func (e *WaitError) Unwrap() error { return e.Cause }

// Wait returns nil when everything whose publication was acknowledged before the call has had its whole effect in every
// reader, whatever came of it on the way included, and a *WaitError when ctx ends before. since is the caller's now;
// records that a later event began are not waited for, so that Wait ends while events keep coming. The clock that
// stamps records may be up to schemas.MaxAhead before the caller's. Brokers that are away are asked again.
//
// Brokers without one of the readers' topics are a *MissingTopicsError, when they have said so for missingPatience: one
// that was just made is not known to all of them at once.
//
// Who commits nothing to the brokers is waited for by AwaitOutsiders, afterwards.
//
// No readers: those of the catalogue. In any case every process that holds a topic whole is waited for. Of a reader that
// each process is by itself those are waited for that run, and, where none does, the first that will. progress, which may
// be nil, is called after each look at the brokers.
//
// A reader has worked a partition off when between the offset it has committed and the partition's end there is no
// committed data record that is older than the call. That is exact, loops included, because one look first reads all
// committed offsets and then all ends: follow any event and what came of it from record to record; each is either
// committed by its reader, and then what that reader made of it was in the log before, and so before the ends were
// read, or it is the one that keeps Wait waiting.
func Wait(ctx context.Context, k Kafka, since schemas.Micros, progress func(WaitState), readers ...Reader) error {
	l, err := NewLog(k)
	if err != nil {
		return err
	}
	defer l.Close()
	if len(readers) == 0 {
		readers = ReadersOf(Catalogue(Profile{Partitions: k.Partitions}))
	}
	w := &waiter{log: l, since: since, readers: readers, backlogs: map[place]*backlog{}, generations: &GenerationWatch{Log: l}}
	var missing missingTopics
	for {
		state, err := w.look(ctx)
		switch {
		case ctx.Err() != nil:
			return &WaitError{State: w.last, Cause: context.Cause(ctx)}
		case missing.forLong(err):
			return fmt.Errorf("wait: %w", err)
		case err != nil:
			w.last.Err = err
		default:
			w.last = state
		}
		if progress != nil {
			progress(w.last)
		}
		if err == nil && len(state.Behind) == 0 {
			return nil
		}
		letWork(ctx, w.last)
	}
}

// missingPatience is how long brokers may lack a topic: they tell each other of a new one within a second.
const missingPatience = 5 * time.Second

// missingTopics remembers since when brokers have lacked topics without a break; zero: they do not.
type missingTopics struct{ since time.Time }

// forLong takes what came of the last look, and says whether topics have been missing for missingPatience.
func (m *missingTopics) forLong(err error) bool {
	var missing *MissingTopicsError
	switch {
	case !errors.As(err, &missing):
		m.since = time.Time{}
	case m.since.IsZero():
		m.since = time.Now()
	default:
		return time.Since(m.since) >= missingPatience
	}
	return false
}

// letWork lets the readers work: for longer when there is much to do.
func letWork(ctx context.Context, s WaitState) {
	d := 20 * time.Millisecond
	var lag int64
	for _, l := range s.Behind {
		lag += l.Records
	}
	if lag > maxScan || s.Err != nil {
		d = 200 * time.Millisecond
	}
	pause.For(ctx, d)
}

// waiter is one call of Wait.
type waiter struct {
	log         *Log
	since       schemas.Micros
	readers     []Reader
	generations *GenerationWatch // of the readers
	before      Offsets          // ends at the first look: what lies below was there at the call
	latest      schemas.Micros   // newest timestamp at the first look, on the clock that stamps records
	starts      Offsets
	backlogs    map[place]*backlog
	last        WaitState
}

// place is one partition as one group sees it.
type place struct {
	group, topic string
	partition    int32
}

// look compares once what is committed with what is there.
func (w *waiter) look(ctx context.Context) (WaitState, error) {
	readers, err := w.withWholes(ctx)
	if err != nil {
		return WaitState{}, err
	}
	committed, err := w.log.committed(ctx, readers)
	if err != nil {
		return WaitState{}, err
	}
	ends, err := w.ends(ctx, readers) // after the committed offsets: see Wait
	if err != nil {
		return WaitState{}, err
	}
	var state WaitState
	for _, r := range readers {
		for _, topic := range r.Topics {
			lag, err := w.lag(ctx, r.Group, topic, committed[r.Group][topic], ends[topic])
			if err != nil {
				return WaitState{}, err
			}
			if lag > 0 {
				state.Behind = append(state.Behind, Lag{Group: r.Group, Topic: topic, Records: lag})
			}
		}
	}
	return state, nil
}

// withWholes adds the groups of the processes that hold a topic whole at the moment.
func (w *waiter) withWholes(ctx context.Context) ([]Reader, error) {
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
			if t.Whole && strings.HasPrefix(g, wholePrefix(t.Name)) {
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

// instances puts the processes that run in the place of each reader that every process is by itself. One of which none
// runs stays: it has committed nothing. (One group of its plain name is that of processes of the release before.)
func instances(readers []Reader, running []string) []Reader {
	var list []Reader
	for _, r := range readers {
		before := len(list)
		for _, group := range running {
			if r.Each && (group == r.Group || strings.HasPrefix(group, instancePrefix(r.Group))) {
				list = append(list, Reader{Group: group, Topics: r.Topics})
			}
		}
		if len(list) == before {
			list = append(list, r)
		}
	}
	return list
}

// Instances returns readers with the processes that run in the place of each that every process is by itself; one of
// which none runs stays as it is.
func (l *Log) Instances(ctx context.Context, readers []Reader) ([]Reader, error) {
	running, err := l.running(ctx)
	if err != nil {
		return nil, err
	}
	return instances(readers, running), nil
}

// ends returns the ends of all topics. The first time it also notes what was there at the call.
func (w *waiter) ends(ctx context.Context, readers []Reader) (Offsets, error) {
	topics := map[string]bool{}
	for _, r := range readers {
		for _, t := range r.Topics {
			topics[t] = true
		}
	}
	names := slices.Sorted(maps.Keys(topics))
	ends, err := w.log.Ends(ctx, names...)
	if err != nil || w.before != nil {
		return ends, err
	}
	if w.starts, err = w.log.Starts(ctx, names...); err != nil {
		return nil, err
	}
	newest, err := w.log.admin.ListMaxTimestampOffsets(ctx, names...)
	if err != nil {
		return nil, fmt.Errorf("list newest timestamps: %w", err)
	}
	newest.Each(func(o kadm.ListedOffset) {
		// The caller's clock may be behind the one that stamps records, though not by much: because of a record from the far
		// future Wait would wait for everything that comes.
		if at := schemas.MicrosOf(time.UnixMilli(o.Timestamp)); at.Time().Sub(w.since.Time()) <= schemas.MaxAhead {
			w.latest = max(w.latest, at)
		}
	})
	w.before = ends
	return ends, nil
}

// lag returns how many records of a topic the group has still to work off, 0 if no old one is among them.
func (w *waiter) lag(ctx context.Context, group, topic string, committed, ends map[int32]int64) (int64, error) {
	var sum int64
	for _, p := range slices.Sorted(maps.Keys(ends)) {
		from, ok := committed[p]
		if !ok {
			from = w.starts[topic][p]
		}
		at := place{group, topic, p}
		if w.backlogs[at] == nil {
			w.backlogs[at] = &backlog{before: w.before[topic][p], since: max(w.since, w.latest), lastOld: -1}
		}
		pending, err := w.backlogs[at].pending(from, ends[p], func(from int64) ([]*kgo.Record, int64, error) {
			return w.log.Read(ctx, topic, p, from)
		})
		if err != nil {
			return 0, err
		}
		if pending {
			sum += max(1, ends[p]-from)
		}
	}
	return sum, nil
}

// maxScan is how many records a look reads at most of a partition that still has records from before the call.
const maxScan = 20_000

// backlog remembers what has been seen between a group's committed offset and the end of a partition. A record that is
// not old will never be: each is read once.
type backlog struct {
	before int64          // records below were there at the call: all of them are old
	since  schemas.Micros // records that began at or before are old

	scanned int64 // everything from the committed offset to here has been looked at …
	lastOld int64 // … and this was the last old record, -1: none
}

// pending says whether an old record lies in [from, end). read returns committed records from an offset on, and where
// to go on; no progress means that a transaction is open there. A long stretch that begins before the call is taken to
// hold one unread.
func (b *backlog) pending(from, end int64, read func(from int64) ([]*kgo.Record, int64, error)) (bool, error) {
	b.scanned = max(b.scanned, from)
	if from <= b.lastOld {
		return true, nil
	}
	if b.scanned < b.before && end-b.scanned > maxScan {
		return true, nil
	}
	for b.scanned < end {
		records, next, err := read(b.scanned)
		if err != nil {
			return false, err
		}
		if next <= b.scanned {
			return true, nil
		}
		for _, r := range records {
			if r.Offset < b.before || SinceOf(r) <= b.since {
				b.lastOld, b.scanned = r.Offset, r.Offset+1
				return true, nil
			}
		}
		b.scanned = next
	}
	return false, nil
}
