package featurelog

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/smartfeed/smartfeed/internal/durable"
	"github.com/smartfeed/smartfeed/schemas"
	"github.com/smartfeed/smartfeed/topics"
)

// FilesDeps are the dependencies of Files.
type FilesDeps struct {
	Kafka       topics.Kafka
	Stream      topics.Stream[schemas.LoggedFeatures]
	DeadLetters topics.DeadLetterSender
	Metrics     *Metrics
}

// Files is the sink that writes the log to files.
type Files struct {
	cfg   Config
	deps  FilesDeps
	parts durable.Parts
	topic kadm.TopicID    // the present topic
	next  map[int32]int64 // by partition: the first offset that is in no file
}

// NewFiles returns the sink. cfg.Dir must be the resolved path. It returns an error if cfg is invalid.
func NewFiles(cfg Config, deps FilesDeps) (*Files, error) {
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("feature files: %w", err)
	}
	return &Files{cfg: cfg, deps: deps, parts: partsOf(cfg.Dir)}, nil
}

func partsOf(dir string) durable.Parts { return durable.Parts{Dir: dir, Key: "date", Ext: ".avro"} }

// Run writes until ctx is done, then returns nil; it returns an error if something fails. It may be called again:
// uncommitted records are read again, and those already in files are skipped. If the topic is not the topic of the
// files, Run returns a *topics.ChangedTopicError, because the files count the offsets of its records as written.
func (f *Files) Run(ctx context.Context) error {
	lock, err := f.parts.Lock()
	if err != nil {
		return fmt.Errorf("feature files: %w", err)
	}
	defer func() { _ = lock.Unlock() }() // the end of the process unlocks it, too
	if err := f.resume(ctx); err != nil {
		if ctx.Err() != nil {
			return nil
		}
		return fmt.Errorf("feature files: %w", err)
	}
	err = topics.Consume(ctx, topics.ConsumerConfig{
		Kafka: f.deps.Kafka, Group: topics.FeatureFiles, Topics: []string{f.deps.Stream.Name},
		MaxAge: f.cfg.MaxFileAge, MaxBytes: int(f.cfg.MaxFileBytes),
	}, f.handle)
	// Only training data is affected: the process keeps answering, and this component retries.
	if _, changed := errors.AsType[*topics.ChangedTopicError](err); changed {
		err = fmt.Errorf("%v; the files lack these records: set the group back with "+ //nolint:errorlint // not to be fatal
			"\"kafka-consumer-groups.sh --group %s --topic %s --reset-offsets --to-earliest --execute\"", err, topics.FeatureFiles, f.deps.Stream.Name)
	}
	return err
}

// resume determines the present topic, and the last offsets in the files. It checks that the files are of this topic.
func (f *Files) resume(ctx context.Context) error {
	paths, next, err := f.parts.List()
	if err != nil {
		return err
	}
	known := kadm.TopicID{}
	if len(paths) > 0 {
		id, err := readFile(paths[0], nil)
		if err != nil {
			return err
		}
		copy(known[:], id)
	}
	name, written := f.deps.Stream.Name, topics.Checkpoint{}
	for partition, offset := range next {
		written.Set(name, partition, topics.PartitionCheckpoint{Topic: known, Next: offset})
	}
	at, err := topics.Resume(ctx, f.deps.Kafka, []string{name}, written)
	if _, changed := errors.AsType[*topics.ChangedTopicError](err); changed {
		return fmt.Errorf("%w; move the content of %s elsewhere, or set feature_log.dir to another directory", err, f.cfg.Dir)
	}
	f.topic, f.next = at[name][0].Topic, next
	return err
}

// file is the content of a file that has no name yet.
type file struct {
	durable.Part
	date    string
	content bytes.Buffer
	*schemas.FileWriter
}

// handle writes files with the records. It returns nil only after all are in files or acknowledged as dead letters.
func (f *Files) handle(ctx context.Context, records []*kgo.Record) error {
	last := map[int32]*file{}
	for _, r := range records {
		if r.Offset < f.next[r.Partition] { // read again
			continue
		}
		if err := f.take(ctx, r, last); err != nil {
			return err
		}
	}
	for _, file := range last {
		if err := f.write(file); err != nil {
			return err
		}
	}
	return nil
}

// take adds a record to the last file of its partition. For another date, it writes this file and starts a new one.
func (f *Files) take(ctx context.Context, r *kgo.Record, last map[int32]*file) error {
	rec, err := f.deps.Stream.Decode(r.Value)
	if err != nil {
		return topics.SendIfBad(ctx, f.deps.DeadLetters, topics.FeatureFiles, r, err, f.deps.Metrics.bad.Inc)
	}
	to, date := last[r.Partition], rec.Logged.Time().Format(time.DateOnly)
	if to != nil && to.date != date {
		if err := f.write(to); err != nil {
			return err
		}
		to = nil
	}
	if to == nil {
		to = &file{Part: durable.Part{Partition: r.Partition, First: r.Offset}, date: date}
		if to.FileWriter, err = schemas.NewFileWriter(&to.content, f.topic[:]); err != nil {
			return err
		}
		last[r.Partition] = to
	}
	to.Last = r.Offset
	return to.Encode(&schemas.FiledFeatures{LoggedFeatures: *rec, Partition: r.Partition, Offset: r.Offset})
}

// write writes a file durably.
func (f *Files) write(file *file) error {
	if err := file.Close(); err != nil {
		return err
	}
	err := f.parts.Write(file.date, file.Part, func(out io.Writer) error {
		_, err := file.content.WriteTo(out)
		return err
	})
	if err == nil {
		f.next[file.Partition] = file.Last + 1
	}
	return err
}

func readFile(path string, visit func(*schemas.FiledFeatures) error) (topic []byte, err error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("read: %w", err)
	}
	topic, err = schemas.ReadFiled(f, visit)
	if err := errors.Join(err, f.Close()); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return topic, nil
}

// ReadFiles visits the records of every file below dir, by date, partition and offset.
func ReadFiles(dir string, visit func(*schemas.FiledFeatures) error) error {
	paths, _, err := partsOf(dir).List()
	if err != nil {
		return err
	}
	for _, path := range paths {
		if _, err := readFile(path, visit); err != nil {
			return err
		}
	}
	return nil
}
