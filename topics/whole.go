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

// Whole is a compacted topic that a process holds whole in memory: the newest record of every key. Has and Get answer
// from what has been read so far; Ready says from when on that is all there was when Run was called.
//
// Run reads every partition under a consumer group of its own, named after topic and instance, and commits an offset
// once the record can be seen: so Wait knows it. An instance's name must be unique among the processes that run.
type Whole[T any] struct {
	kafka    Kafka
	stream   Stream[T]
	instance string
	log      *slog.Logger

	changed func(key string, was, is *T) // nil: nobody is told

	ready     chan struct{}
	readyOnce sync.Once

	mu     sync.RWMutex
	newest map[string]*T

	at Marks // where to go on, by Run alone
}

// NewWhole prepares to hold a stream's topic; see Run. log gets the records that cannot be read, which are left out.
func NewWhole[T any](k Kafka, s Stream[T], instance string, log *slog.Logger) *Whole[T] {
	return &Whole[T]{
		kafka: k, stream: s, instance: instance, log: log,
		ready: make(chan struct{}), newest: map[string]*T{},
	}
}

// OnChange sets f, which Run calls whenever the newest record of a key changes, with the one before and the new one; nil is none.
// f returns before the record's offset is committed, so Wait knows of what it did. One goroutine at a time calls it; it must
// not ask w. Call OnChange before Run.
func (w *Whole[T]) OnChange(f func(key string, was, is *T)) { w.changed = f }

// wholeGroup returns the consumer group of a process that holds a topic whole.
func wholeGroup(topic, instance string) string { return wholePrefix(topic) + instance }

func wholePrefix(topic string) string { return instancePrefix(topic + "-whole") }

// Has says whether the topic has a record under the key.
func (w *Whole[T]) Has(key string) bool {
	_, ok := w.Get(key)
	return ok
}

// Get returns the newest record under the key. It must not be changed.
func (w *Whole[T]) Get(key string) (*T, bool) {
	w.mu.RLock()
	defer w.mu.RUnlock()
	rec, ok := w.newest[key]
	return rec, ok
}

// Each visits the newest record of every key, in no order, while nothing new comes in. The records must not be changed,
// nor w be asked.
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

// Ready is closed when everything has been read that was there when Run was first called, and Wait can see how far this
// process is. It stays closed.
func (w *Whole[T]) Ready() <-chan struct{} { return w.ready }

// Run reads the topic and then follows it until ctx ends (nil) or something breaks (the error). It can be called again,
// and goes on where it was. If the topic no longer has what comes next, the error is a *ChangedTopicError: keys that were
// deleted meanwhile would stay in memory, so the process has to be restarted.
func (w *Whole[T]) Run(ctx context.Context) error {
	if err := w.load(ctx); err != nil {
		if ctx.Err() != nil {
			return nil
		}
		return fmt.Errorf("load topic %s: %w", w.stream.Name, err)
	}
	return w.follow(ctx)
}

// load reads what is there now, by offset: it waits for no group.
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

// follow joins the group and goes on.
func (w *Whole[T]) follow(ctx context.Context) error {
	return restart(Follow(ctx, FollowConfig{
		ConsumerConfig: ConsumerConfig{Kafka: w.kafka, Group: wholeGroup(w.stream.Name, w.instance), Topics: []string{w.stream.Name}},
		Marks:          func() (Marks, error) { return Marks{w.stream.Name: maps.Clone(w.at[w.stream.Name])}, nil },
		Joined:         func() { w.readyOnce.Do(func() { close(w.ready) }) },
	}, w.handle))
}

// restart adds to a *ChangedTopicError what to do.
func restart(err error) error {
	var changed *ChangedTopicError
	if errors.As(err, &changed) {
		return fmt.Errorf("%w; restart the process, which reads the topic again", err)
	}
	return err
}

// advance notes that everything before an offset of a partition is applied.
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

// apply puts one record where readers see it. One that can never be read is left out; an error is of one that could not be
// read now, because the registry is away.
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

// put makes a record the newest of its key; nil is a tombstone.
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

// note makes a record known that this process has read elsewhere, ahead of the topic; what the topic has said stands.
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

// DeletedUsers is the set of users who are gone for good, as a process holds it.
type DeletedUsers struct {
	*Whole[schemas.DeletedUser]
}

// NewDeletedUsers prepares to hold the topic users-deleted; see Whole.
func NewDeletedUsers(k Kafka, s *Streams, instance string, log *slog.Logger) DeletedUsers {
	return DeletedUsers{NewWhole(k, s.UsersDeleted, instance, log)}
}

// Has says whether the user is gone.
func (d DeletedUsers) Has(user schemas.UserID) bool { return d.Whole.Has(string(user)) }

// Note makes a user known to be gone who was learnt of in another way than by the topic, which may come later: whoever
// works an erasure off calls it, so that nothing that comes behind in this process brings the user back.
func (d DeletedUsers) Note(user schemas.UserID, at schemas.Micros) {
	d.Whole.note(string(user), &schemas.DeletedUser{User: user, Time: at})
}
