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

// Whole is a global table: an in-memory copy of a compacted topic, with the newest record of every key. Has and Get answer
// from the records read so far. Ready is closed once these include all records that existed when Run was called.
//
// Run reads every partition under its own consumer group, named after the topic and the instance, and commits an offset
// once the record is visible. So Wait covers the table. The instance name must be unique among the running processes.
type Whole[T any] struct {
	kafka    Kafka
	stream   Stream[T]
	instance string
	log      *slog.Logger

	changed func(key string, was, is *T) // nil: no callback

	ready     chan struct{}
	readyOnce sync.Once

	mu     sync.RWMutex
	newest map[string]*T

	at Marks // next offsets; only Run uses it
}

// NewWhole returns an empty global table of a stream's topic; call Run to fill it. It skips records that cannot be decoded,
// and logs them to log.
func NewWhole[T any](k Kafka, s Stream[T], instance string, log *slog.Logger) *Whole[T] {
	return &Whole[T]{
		kafka: k, stream: s, instance: instance, log: log,
		ready: make(chan struct{}), newest: map[string]*T{},
	}
}

// OnChange sets a function that Run calls whenever the newest record of a key changes, with the previous and the new
// record; nil means none. f returns before the record's offset is committed, so Wait covers its effect. Calls do not
// overlap. f must not call methods of w. Call OnChange before Run.
func (w *Whole[T]) OnChange(f func(key string, was, is *T)) { w.changed = f }

// wholeGroup returns the consumer group of a process that holds a global table.
func wholeGroup(topic, instance string) string { return wholePrefix(topic) + instance }

func wholePrefix(topic string) string { return instancePrefix(topic + "-whole") }

// Has reports whether the topic has a record with the key.
func (w *Whole[T]) Has(key string) bool {
	_, ok := w.Get(key)
	return ok
}

// Get returns the newest record with the key. The caller must not change it.
func (w *Whole[T]) Get(key string) (*T, bool) {
	w.mu.RLock()
	defer w.mu.RUnlock()
	rec, ok := w.newest[key]
	return rec, ok
}

// Each calls visit for the newest record of every key, in no order. Updates wait meanwhile. visit must not change the
// records or call methods of w.
func (w *Whole[T]) Each(visit func(key string, rec *T)) {
	w.mu.RLock()
	defer w.mu.RUnlock()
	for key, rec := range w.newest {
		visit(key, rec)
	}
}

// Len returns the number of keys.
func (w *Whole[T]) Len() int {
	w.mu.RLock()
	defer w.mu.RUnlock()
	return len(w.newest)
}

// Ready returns a channel that is closed when two conditions hold. All records that existed at the first call of Run have
// been read, and Wait can see the progress of this process. The channel stays closed.
func (w *Whole[T]) Ready() <-chan struct{} { return w.ready }

// Run reads the topic and then follows it until ctx is canceled (nil) or an error occurs. It may be called again, and
// resumes where it stopped. It returns a *ChangedTopicError if the topic no longer has the next record. Keys that were
// deleted meanwhile would then stay in memory, so the process must be restarted.
func (w *Whole[T]) Run(ctx context.Context) error {
	if err := w.load(ctx); err != nil {
		if ctx.Err() != nil {
			return nil
		}
		return fmt.Errorf("load topic %s: %w", w.stream.Name, err)
	}
	return w.follow(ctx)
}

// load reads the records that exist now, by offset. It does not depend on the group.
func (w *Whole[T]) load(ctx context.Context) error {
	l, err := NewLog(w.kafka)
	if err != nil {
		return err
	}
	defer l.Close()
	at, err := resumeWithoutGap(ctx, w.kafka, []string{w.stream.Name}, w.at)
	if err != nil {
		return restart(err)
	}
	w.at = at
	ends, err := l.Ends(ctx, w.stream.Name)
	if err != nil {
		return err
	}
	for p, end := range ends[w.stream.Name] {
		if err := l.ReadTo(ctx, w.stream.Name, p, w.at[w.stream.Name][p].Next, end, w.apply); err != nil {
			return err
		}
		w.advance(p, end)
	}
	return nil
}

// follow joins the group and reads further records.
func (w *Whole[T]) follow(ctx context.Context) error {
	return restart(Follow(ctx, FollowConfig{
		ConsumerConfig: ConsumerConfig{Kafka: w.kafka, Group: wholeGroup(w.stream.Name, w.instance), Topics: []string{w.stream.Name}},
		Marks:          func() (Marks, error) { return Marks{w.stream.Name: maps.Clone(w.at[w.stream.Name])}, nil },
		Joined:         func() { w.readyOnce.Do(func() { close(w.ready) }) },
	}, w.handle))
}

// restart adds the remedy to a *ChangedTopicError.
func restart(err error) error {
	var changed *ChangedTopicError
	if errors.As(err, &changed) {
		return fmt.Errorf("%w; restart the process, which reads the topic again", err)
	}
	return err
}

// advance records that everything before an offset of a partition is applied.
func (w *Whole[T]) advance(partition int32, next int64) {
	mark := w.at[w.stream.Name][partition]
	mark.Next = max(mark.Next, next)
	w.at.Set(w.stream.Name, partition, mark)
}

func (w *Whole[T]) handle(_ context.Context, records []*kgo.Record, to Marks) error {
	for _, r := range records {
		if err := w.apply(r); err != nil {
			return err
		}
	}
	for p, mark := range to[w.stream.Name] {
		w.advance(p, mark.Next)
	}
	return nil
}

// apply makes one record visible. It skips a record that can never be decoded. An error means that the record could not be
// decoded now, because the registry is unavailable.
func (w *Whole[T]) apply(r *kgo.Record) error {
	rec, err := w.decode(r)
	var bad *schemas.BadRecordError
	if err != nil && !errors.As(err, &bad) {
		return fmt.Errorf("read record %s/%d/%d: %w", r.Topic, r.Partition, r.Offset, err)
	}
	if err != nil {
		w.log.Error("leave out record", "topic", r.Topic, "partition", r.Partition, "offset", r.Offset, "error", err)
	}
	w.advance(r.Partition, r.Offset+1)
	w.mu.Lock()
	defer w.mu.Unlock()
	if err == nil {
		w.put(string(r.Key), rec)
	}
	return nil
}

// put sets the newest record of a key; nil is a tombstone.
func (w *Whole[T]) put(key string, rec *T) {
	was := w.newest[key]
	if rec == nil {
		delete(w.newest, key)
	} else {
		w.newest[key] = rec
	}
	if w.changed != nil {
		w.changed(key, was, rec)
	}
}

// note adds a record that this process learned of before reading it from the topic. It does not replace a record.
func (w *Whole[T]) note(key string, rec *T) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.newest[key] == nil {
		w.put(key, rec)
	}
}

// decode returns nil for a tombstone.
func (w *Whole[T]) decode(r *kgo.Record) (*T, error) {
	if r.Value == nil {
		return nil, nil
	}
	return w.stream.Decode(r.Value)
}

// DeletedUsers is the global table of permanently deleted users.
type DeletedUsers struct {
	*Whole[schemas.DeletedUser]
}

// NewDeletedUsers returns an empty table of the topic users-deleted; see Whole.
func NewDeletedUsers(k Kafka, s *Streams, instance string, log *slog.Logger) DeletedUsers {
	return DeletedUsers{NewWhole(k, s.UsersDeleted, instance, log)}
}

// Has reports whether the user is deleted.
func (d DeletedUsers) Has(user schemas.UserID) bool { return d.Whole.Has(string(user)) }

// Note marks a user as deleted before the record on the topic is read. The code that processes an erasure calls it, so that
// later records in this process do not recreate data of the user.
func (d DeletedUsers) Note(user schemas.UserID, at schemas.Micros) {
	d.Whole.note(string(user), &schemas.DeletedUser{User: user, Time: at})
}
