package featurelog

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/smartfeed/smartfeed/schemas"
	"github.com/smartfeed/smartfeed/topics"
)

// DeadLetters takes the records that cannot be read. *topics.Publisher is one.
type DeadLetters interface {
	// Bury returns when the dead letter is acknowledged.
	Bury(ctx context.Context, group string, r *kgo.Record, reason string) error
}

// FilesDeps are the collaborators of Files.
type FilesDeps struct {
	Kafka       topics.Kafka
	Stream      topics.Stream[schemas.LoggedFeatures]
	DeadLetters DeadLetters
	Metrics     *Metrics
	Now         func() time.Time
}

// Files is the sink that writes the log to files.
type Files struct {
	cfg  Config
	deps FilesDeps

	mu   sync.Mutex      // held while files are written, closed or counted
	open map[int32]*file // by partition
	next map[int32]int64 // by partition: the first offset that is in no file
}

// NewFiles makes the sink; cfg.Dir must be as it is to be opened. It fails when cfg is not valid.
func NewFiles(cfg Config, deps FilesDeps) (*Files, error) {
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("feature files: %w", err)
	}
	return &Files{cfg: cfg, deps: deps}, nil
}

// Run writes until ctx ends (nil) or something breaks (the error). It may be called again: what was not committed comes
// again, and what of it is in files already is not written a second time. A topic that is not the one of the files is a
// *topics.ChangedTopicError: its records have offsets that the files know as written.
func (f *Files) Run(ctx context.Context) (err error) {
	if err := f.begin(ctx); err != nil {
		if ctx.Err() != nil {
			return nil
		}
		return fmt.Errorf("feature files: %w", err)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := f.closeOld(ctx); err != nil {
			cancel(err)
		}
	}()
	err = topics.Consume(ctx, topics.ConsumerConfig{
		Kafka: f.deps.Kafka, Group: topics.FeatureFiles, Topics: []string{f.deps.Stream.Name},
	}, f.handle)
	cancel(nil)
	<-done
	var changed *topics.ChangedTopicError
	if errors.As(err, &changed) { // what is lost was for training alone: the process goes on to answer, and this part tries again
		err = fmt.Errorf("%v; the files lack these records: set the group back with "+ //nolint:errorlint // not to be fatal
			"\"kafka-consumer-groups.sh --group %s --topic %s --reset-offsets --to-earliest --execute\"", err, topics.FeatureFiles, f.deps.Stream.Name)
	}
	if cause := context.Cause(ctx); err == nil && !errors.Is(cause, context.Canceled) && !errors.Is(cause, context.DeadlineExceeded) {
		err = cause
	}
	return errors.Join(err, f.closeAll())
}

func (f *Files) begin(ctx context.Context) error {
	if err := f.recover(); err != nil {
		return err
	}
	return f.checkTopic(ctx)
}

// recover finds out how far the files go. What a killed process left open is mended and named.
func (f *Files) recover() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := os.MkdirAll(f.cfg.Dir, 0o700); err != nil {
		return err
	}
	f.open, f.next = map[int32]*file{}, map[int32]int64{}
	left, err := filepath.Glob(filepath.Join(f.cfg.Dir, "date=*", "part-*"+openSuffix))
	if err != nil {
		return err
	}
	for _, path := range left {
		if err := mend(path); err != nil {
			return err
		}
	}
	closed, err := filepath.Glob(filepath.Join(f.cfg.Dir, "date=*", "part-*"+suffix))
	if err != nil {
		return err
	}
	for _, path := range closed {
		if partition, _, last, ok := parseName(filepath.Base(path)); ok {
			f.next[partition] = max(f.next[partition], last+1)
		}
	}
	return nil
}

// checkTopic holds the files against the topic that there is, and notes which it is.
func (f *Files) checkTopic(ctx context.Context) error {
	path := filepath.Join(f.cfg.Dir, topicFile)
	known, err := readTopic(path)
	if err != nil {
		return err
	}
	name, marks := f.deps.Stream.Name, topics.Marks{}
	for partition, next := range f.next {
		marks.Set(name, partition, topics.Mark{Topic: known, Next: next})
	}
	at, err := topics.Resume(ctx, f.deps.Kafka, []string{name}, marks)
	var changed *topics.ChangedTopicError
	if errors.As(err, &changed) {
		return fmt.Errorf("%w; move what is in %s elsewhere, or set feature_log.dir to another directory", err, f.cfg.Dir)
	}
	if err != nil || at[name][0].Topic == known {
		return err
	}
	return writeTopic(path, at[name][0].Topic)
}

// handle makes records durable. It returns nil only when all are in files or buried.
func (f *Files) handle(ctx context.Context, records []*kgo.Record) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, r := range records {
		if r.Offset < f.next[r.Partition] { // it came again
			continue
		}
		if err := f.take(ctx, r); err != nil {
			return err
		}
		f.next[r.Partition] = r.Offset + 1
	}
	for _, file := range f.open {
		if err := file.flush(); err != nil {
			return err
		}
	}
	return f.closeWhere(func(file *file) bool { return file.size >= f.cfg.MaxFileBytes })
}

func (f *Files) take(ctx context.Context, r *kgo.Record) error {
	rec, err := f.deps.Stream.Decode(r.Value)
	var bad *schemas.BadRecordError
	switch {
	case errors.As(err, &bad):
		f.deps.Metrics.bad.Inc()
		return f.deps.DeadLetters.Bury(ctx, topics.FeatureFiles, r, bad.Reason)
	case err != nil:
		return fmt.Errorf("read %s/%d/%d: %w", r.Topic, r.Partition, r.Offset, err)
	}
	file, err := f.fileFor(r.Partition, r.Offset, rec.Logged.Time())
	if err != nil {
		return err
	}
	f.deps.Metrics.filed.Inc()
	return file.write(&schemas.FiledFeatures{LoggedFeatures: *rec, Partition: r.Partition, Offset: r.Offset})
}

// fileFor returns the open file of a partition, for another date a new one.
func (f *Files) fileFor(partition int32, offset int64, logged time.Time) (*file, error) {
	date := logged.Format(time.DateOnly)
	if file := f.open[partition]; file != nil {
		if file.date == date {
			return file, nil
		}
		if err := f.close(partition); err != nil {
			return nil, err
		}
	}
	file, err := create(f.cfg.Dir, date, partition, offset, f.deps.Now())
	if err != nil {
		return nil, err
	}
	f.open[partition] = file
	return file, nil
}

// close gives a partition's file its name.
func (f *Files) close(partition int32) error {
	file := f.open[partition]
	delete(f.open, partition)
	return file.close()
}

func (f *Files) closeWhere(done func(*file) bool) error {
	var errs []error
	for partition, file := range f.open {
		if done(file) {
			errs = append(errs, f.close(partition))
		}
	}
	return errors.Join(errs...)
}

// closeAll ends all files. One that was written to after its last flush, because something broke in between, is left as
// it is: what of it counts is found out by mending.
func (f *Files) closeAll() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	var errs []error
	for partition, file := range f.open {
		if file.dirty {
			delete(f.open, partition)
			errs = append(errs, file.f.Close())
		}
	}
	return errors.Join(append(errs, f.closeWhere(func(*file) bool { return true }))...)
}

// closeOld closes files that have been open for long enough, also when nothing comes any more.
func (f *Files) closeOld(ctx context.Context) error {
	tick := time.NewTicker(max(f.cfg.MaxFileAge/10, 100*time.Millisecond))
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		f.mu.Lock()
		now := f.deps.Now()
		err := f.closeWhere(func(file *file) bool { return now.Sub(file.opened) >= f.cfg.MaxFileAge })
		f.mu.Unlock()
		if err != nil {
			return err
		}
	}
}
