package export

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/gofrs/flock"

	"github.com/smartfeed/smartfeed/internal/durable"
	"github.com/smartfeed/smartfeed/topics"
)

const (
	suffix     = ".parquet"
	tempSuffix = ".tmp" // does not match the patterns of readers
)

// extent is the range of offsets of a batch.
type extent struct {
	partition   int32
	first, last int64
}

// name returns the name of the files of a batch.
func (e extent) name() string {
	return fmt.Sprintf("part-%02d-%012d-%012d%s", e.partition, e.first, e.last, suffix)
}

// parseName is the reverse of name.
func parseName(name string) (e extent, ok bool) {
	n, err := fmt.Sscanf(name, "part-%d-%d-%d", &e.partition, &e.first, &e.last)
	return e, err == nil && n == 3 && name == e.name()
}

// folder is the directory of the files.
type folder string

// lock creates and locks the folder.
func (f folder) lock() (*flock.Flock, error) {
	if err := os.MkdirAll(string(f), 0o700); err != nil {
		return nil, fmt.Errorf("out: %w", err)
	}
	lock := flock.New(filepath.Join(string(f), "_lock")) // readers of folders ignore names that start with an underscore
	held, err := lock.TryLock()
	if err == nil && !held {
		err = errors.New("another export writes to it")
	}
	if err != nil {
		return nil, fmt.Errorf("out: lock %s: %w", f, err)
	}
	return lock, nil
}

// file is a file and the batch in its name.
type file struct {
	extent
	path string
}

// list returns the files with a suffix.
func (f folder) list(suffix string) (files []file, err error) {
	paths, err := filepath.Glob(filepath.Join(string(f), "day=*", "part-*"+suffix))
	for _, path := range paths {
		if e, ok := parseName(strings.TrimSuffix(filepath.Base(path), tempSuffix)); ok {
			files = append(files, file{e, path})
		}
	}
	return files, err
}

// removeIncomplete removes the files that a killed process has not completed.
func (f folder) removeIncomplete() error {
	left, err := f.list(suffix + tempSuffix)
	for _, half := range left {
		err = errors.Join(err, os.Remove(half.path))
	}
	return err
}

// written returns the offsets after the last batches, as the checkpoint of a topic.
func written(topic string, files []file) topics.Checkpoint {
	at := topics.Checkpoint{}
	for _, f := range files {
		at.Set(topic, f.partition, topics.PartitionCheckpoint{Next: max(at[topic][f.partition].Next, f.last+1)})
	}
	return at
}

// write writes the file of a batch of a day. The file gets its name when it is complete.
func (f folder) write(day string, batch extent, write func(io.Writer) error) error {
	path := filepath.Join(string(f), "day="+day, batch.name())
	if err := durable.Folder(filepath.Dir(path)); err != nil {
		return err
	}
	if err := durable.Write(path+tempSuffix, write); err != nil {
		return err
	}
	return durable.Rename(path+tempSuffix, path)
}
