package topics

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"sync"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/smartfeed/smartfeed/schemas"
)

// GlobalTable is a global table: an in-memory copy of a compacted topic, with the newest record of every key. Has and Get answer
// from the records read so far. Ready is closed once these include all records that existed when Run was called.
//
// Run reads every partition under its own consumer group, named after the topic and the instance, and commits an offset
// once the record is visible. So Wait covers the table. The instance name must be unique among the running processes.
type GlobalTable[T any] struct {
	kafka    Kafka
	stream   Stream[T]
	instance string
	log      *slog.Logger

	onChange func(key string, was, is *T) // nil: no callback

	ready     chan struct{}
	readyOnce sync.Once

	mu     sync.RWMutex
	newest map[string]*T

	at Checkpoint // next offsets; only Run uses it
}

// NewGlobalTable returns an empty global table of a stream's topic; call Run to fill it. It skips records that cannot be decoded,
// and logs them to log.
func NewGlobalTable[T any](k Kafka, s Stream[T], instance string, log *slog.Logger) *GlobalTable[T] {
	return &GlobalTable[T]{
		kafka: k, stream: s, instance: instance, log: log,
		ready: make(chan struct{}), newest: map[string]*T{},
	}
}

// OnChange sets a function that Run calls whenever the newest record of a key changes, with the previous and the new
// record; nil means none. f returns before the record's offset is committed, so Wait covers its effect. Calls do not
// overlap. f must not call methods of t. Call OnChange before Run.
func (t *GlobalTable[T]) OnChange(f func(key string, was, is *T)) { t.onChange = f }

// globalTableGroup returns the consumer group of a process that holds a global table.
func globalTableGroup(topic, instance string) string { return globalTablePrefix(topic) + instance }

func globalTablePrefix(topic string) string { return instancePrefix(topic + "-global-table") }

// Has reports whether the topic has a record with the key.
func (t *GlobalTable[T]) Has(key string) bool {
	_, ok := t.Get(key)
	return ok
}

// Get returns the newest record with the key. The caller must not change it.
func (t *GlobalTable[T]) Get(key string) (*T, bool) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	rec, ok := t.newest[key]
	return rec, ok
}

// Each calls visit for the newest record of every key, in no order. Updates wait meanwhile. visit must not change the
// records or call methods of t.
func (t *GlobalTable[T]) Each(visit func(key string, rec *T)) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	for key, rec := range t.newest {
		visit(key, rec)
	}
}

// Len returns the number of keys.
func (t *GlobalTable[T]) Len() int {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return len(t.newest)
}

// Ready returns a channel that is closed when two conditions hold. All records that existed at the first call of Run have
// been read, and Wait can see the progress of this process. The channel stays closed.
func (t *GlobalTable[T]) Ready() <-chan struct{} { return t.ready }

// Run reads the topic and then follows it until ctx is canceled (nil) or an error occurs. It may be called again, and
// resumes where it stopped. It returns a *ChangedTopicError if the topic no longer has the next record. Keys that were
// deleted meanwhile would then stay in memory, so the process must be restarted.
func (t *GlobalTable[T]) Run(ctx context.Context) error {
	if err := t.load(ctx); err != nil {
		return unlessCanceled(ctx, "load topic "+t.stream.Name, err)
	}
	return t.follow(ctx)
}

// load reads the records that exist now, by offset. It does not depend on the group.
func (t *GlobalTable[T]) load(ctx context.Context) error {
	l, err := NewLog(t.kafka)
	if err != nil {
		return err
	}
	defer l.Close()
	at, err := resume(ctx, t.kafka, []string{t.stream.Name}, t.at, true)
	if err != nil {
		return restart(err)
	}
	t.at = at
	ends, err := l.Ends(ctx, t.stream.Name)
	if err != nil {
		return err
	}
	for p, end := range ends[t.stream.Name] {
		if err := l.ReadTo(ctx, t.stream.Name, p, t.at[t.stream.Name][p].Next, end, t.apply); err != nil {
			return err
		}
		t.advance(p, end)
	}
	return nil
}

// follow joins the group and reads further records.
func (t *GlobalTable[T]) follow(ctx context.Context) error {
	return restart(Follow(ctx, FollowConfig{
		ConsumerConfig: ConsumerConfig{Kafka: t.kafka, Group: globalTableGroup(t.stream.Name, t.instance), Topics: []string{t.stream.Name}},
		Checkpoint:     func() (Checkpoint, error) { return Checkpoint{t.stream.Name: maps.Clone(t.at[t.stream.Name])}, nil },
		Joined:         func() { t.readyOnce.Do(func() { close(t.ready) }) },
	}, t.handle))
}

// restart adds the remedy to a *ChangedTopicError.
func restart(err error) error {
	if _, changed := errors.AsType[*ChangedTopicError](err); changed {
		return fmt.Errorf("%w; restart the process, which reads the topic again", err)
	}
	return err
}

// advance records that everything before an offset of a partition is applied.
func (t *GlobalTable[T]) advance(partition int32, next int64) {
	mark := t.at[t.stream.Name][partition]
	mark.Next = max(mark.Next, next)
	t.at.Set(t.stream.Name, partition, mark)
}

func (t *GlobalTable[T]) handle(_ context.Context, records []*kgo.Record, to Checkpoint) error {
	for _, r := range records {
		if err := t.apply(r); err != nil {
			return err
		}
	}
	for p, mark := range to[t.stream.Name] {
		t.advance(p, mark.Next)
	}
	return nil
}

// apply makes one record visible. It skips a record that can never be decoded. An error means that the record could not be
// decoded now, because the registry is unavailable.
func (t *GlobalTable[T]) apply(r *kgo.Record) error {
	rec, err := t.decode(r)
	if _, bad := errors.AsType[*schemas.BadRecordError](err); err != nil && !bad {
		return fmt.Errorf("read record %s/%d/%d: %w", r.Topic, r.Partition, r.Offset, err)
	}
	if err != nil {
		t.log.Error("undecodable record skipped", "topic", r.Topic, "partition", r.Partition, "offset", r.Offset, "error", err)
	}
	t.advance(r.Partition, r.Offset+1)
	t.mu.Lock()
	defer t.mu.Unlock()
	if err == nil {
		t.put(string(r.Key), rec)
	}
	return nil
}

// put sets the newest record of a key; nil is a tombstone.
func (t *GlobalTable[T]) put(key string, rec *T) {
	was := t.newest[key]
	if rec == nil {
		delete(t.newest, key)
	} else {
		t.newest[key] = rec
	}
	if t.onChange != nil {
		t.onChange(key, was, rec)
	}
}

// addUnread adds a record that this process learned of before reading it from the topic. It does not replace a record.
func (t *GlobalTable[T]) addUnread(key string, rec *T) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.newest[key] == nil {
		t.put(key, rec)
	}
}

// decode returns nil for a tombstone.
func (t *GlobalTable[T]) decode(r *kgo.Record) (*T, error) {
	if r.Value == nil {
		return nil, nil
	}
	return t.stream.Decode(r.Value)
}

// DeletedUsers is the global table of the topic users-deleted: the permanently deleted users.
type DeletedUsers struct {
	*GlobalTable[schemas.DeletedUser]
}

// Has reports whether the user is deleted.
func (d DeletedUsers) Has(user schemas.UserID) bool { return d.GlobalTable.Has(string(user)) }

// Note marks a user as deleted before the record on the topic is read. The code that processes an erasure calls it, so that
// later records in this process do not recreate data of the user.
func (d DeletedUsers) Note(user schemas.UserID, at schemas.Micros) {
	d.GlobalTable.addUnread(string(user), &schemas.DeletedUser{User: user, Time: at})
}
