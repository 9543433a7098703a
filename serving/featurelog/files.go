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
	"golang.org/x/sync/errgroup"

	"github.com/smartfeed/smartfeed/internal/periodic"
	"github.com/smartfeed/smartfeed/schemas"
	"github.com/smartfeed/smartfeed/topics"
)

// DeadLetters accepts records that cannot be read. *topics.Publisher implements it.
type DeadLetters interface {
	// SendDeadLetter returns when the dead letter is acknowledged.
	SendDeadLetter(ctx context.Context, group string, r *kgo.Record, reason string) error
}

// FilesDeps are the dependencies of Files.
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

// NewFiles returns the sink. cfg.Dir must be the resolved path. It returns an error if cfg is invalid.
func NewFiles(cfg Config, deps FilesDeps) (*Files, error) {
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("feature files: %w", err)
	}
	return &Files{cfg: cfg, deps: deps}, nil
}

// Run writes until ctx is done, then returns nil; it returns an error if something fails. It may be called again:
// uncommitted records are read again, and those already in files are skipped. If the topic is not the topic of the
// files, Run returns a *topics.ChangedTopicError, because the files count the offsets of its records as written.
func (f *Files) Run(ctx context.Context) error {
	if err := f.begin(ctx); err != nil {
		if ctx.Err() != nil {
			return nil
		}
		return fmt.Errorf("feature files: %w", err)
	}
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return f.consume(ctx) })
	group.Go(func() error { return f.closeOld(ctx) })
	return errors.Join(group.Wait(), f.closeAll())
}

func (f *Files) consume(ctx context.Context) error {
	err := topics.Consume(ctx, topics.ConsumerConfig{
		Kafka: f.deps.Kafka, Group: topics.FeatureFiles, Topics: []string{f.deps.Stream.Name},
	}, f.handle)
	var changed *topics.ChangedTopicError
	if errors.As(err, &changed) { // only training data is affected: the process keeps answering, and this component retries
		err = fmt.Errorf("%v; the files lack these records: set the group back with "+ //nolint:errorlint // not to be fatal
			"\"kafka-consumer-groups.sh --group %s --topic %s --reset-offsets --to-earliest --execute\"", err, topics.FeatureFiles, f.deps.Stream.Name)
	}
	return err
}

func (f *Files) begin(ctx context.Context) error {
	if err := f.recover(); err != nil {
		return err
	}
	return f.checkTopic(ctx)
}

// recover determines the last offset in the files. It repairs and closes files that a killed process left open.
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
		if err := repair(path); err != nil {
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

// checkTopic compares the topic of the files with the present one, and records it.
func (f *Files) checkTopic(ctx context.Context) error {
	path := filepath.Join(f.cfg.Dir, topicFile)
	known, err := readTopic(path)
	if err != nil {
		return err
	}
	name, marks := f.deps.Stream.Name, topics.Checkpoint{}
	for partition, next := range f.next {
		marks.Set(name, partition, topics.PartitionCheckpoint{Topic: known, Next: next})
	}
	at, err := topics.Resume(ctx, f.deps.Kafka, []string{name}, marks)
	var changed *topics.ChangedTopicError
	if errors.As(err, &changed) {
		return fmt.Errorf("%w; move the content of %s elsewhere, or set feature_log.dir to another directory", err, f.cfg.Dir)
	}
	if err != nil || at[name][0].Topic == known {
		return err
	}
	return writeTopic(path, at[name][0].Topic)
}

// handle writes records durably. It returns nil only after all are in files or acknowledged as dead letters.
func (f *Files) handle(ctx context.Context, records []*kgo.Record) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, r := range records {
		if r.Offset < f.next[r.Partition] { // read again
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
	return f.closeWhere(func(file *file) bool { return file.size >= int64(f.cfg.MaxFileBytes) })
}

func (f *Files) take(ctx context.Context, r *kgo.Record) error {
	rec, err := f.deps.Stream.Decode(r.Value)
	var bad *schemas.BadRecordError
	switch {
	case errors.As(err, &bad):
		f.deps.Metrics.bad.Inc()
		return f.deps.DeadLetters.SendDeadLetter(ctx, topics.FeatureFiles, r, bad.Reason)
	case err != nil:
		return fmt.Errorf("read %s/%d/%d: %w", r.Topic, r.Partition, r.Offset, err)
	}
	file, err := f.fileFor(r.Partition, r.Offset, rec.Logged.Time())
	if err != nil {
		return err
	}
	return file.write(&schemas.FiledFeatures{LoggedFeatures: *rec, Partition: r.Partition, Offset: r.Offset})
}

// fileFor returns the open file of a partition, and opens a new one for another date.
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

// close closes the file of a partition.
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

// closeAll closes all files. A file with unflushed records, because of an error in between, stays open: the next start
// repairs it and determines its last complete block.
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

// closeOld closes files at their maximum age, even if no more records arrive.
func (f *Files) closeOld(ctx context.Context) error {
	return periodic.Run(ctx, max(f.cfg.MaxFileAge/10, 100*time.Millisecond), func() error {
		f.mu.Lock()
		defer f.mu.Unlock()
		now := f.deps.Now()
		return f.closeWhere(func(file *file) bool { return now.Sub(file.opened) >= f.cfg.MaxFileAge })
	})
}
