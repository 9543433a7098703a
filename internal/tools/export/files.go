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
	"github.com/smartfeed/smartfeed/internal/training"
)

const (
	suffix     = ".parquet"
	openSuffix = "-open.parquet"
	tempSuffix = ".tmp" // does not match the patterns of readers
)

// extent is the range of offsets of a batch.
type extent struct {
	partition   int32
	first, last int64
	open        bool // windows of its visits have not ended
}

// name returns the name of the files of a batch.
func (e extent) name() string {
	end := suffix
	if e.open {
		end = openSuffix
	}
	return fmt.Sprintf("part-%02d-%012d-%012d%s", e.partition, e.first, e.last, end)
}

// parseName is the reverse of name.
func parseName(name string) (e extent, ok bool) {
	e.open = strings.HasSuffix(name, openSuffix)
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

// paths returns the files with a suffix, by the batch that wrote them.
func (f folder) paths(suffix string) (map[extent][]string, error) {
	paths, err := filepath.Glob(filepath.Join(string(f), "day=*", "part-*"+suffix))
	byBatch := map[extent][]string{}
	for _, path := range paths {
		if e, ok := parseName(strings.TrimSuffix(filepath.Base(path), tempSuffix)); ok {
			byBatch[e] = append(byBatch[e], path)
		}
	}
	return byBatch, err
}

// recover completes the batch whose files a killed process had begun to rename, and removes other incomplete files. Run
// writes open batches again in any case.
func (f folder) recover() error {
	complete, err := f.paths(suffix)
	if err != nil {
		return err
	}
	left, err := f.paths(suffix + tempSuffix)
	if err != nil {
		return err
	}
	for batch, paths := range left {
		finish := removeAll
		if !batch.open && len(complete[batch]) > 0 {
			finish = renameAll
		}
		if err := finish(paths); err != nil {
			return err
		}
	}
	return nil
}

// next returns the offset after the last complete batch, by partition.
func (f folder) next() (map[int32]int64, error) {
	complete, err := f.paths(suffix)
	next := map[int32]int64{}
	for batch := range complete {
		if !batch.open {
			next[batch.partition] = max(next[batch.partition], batch.last+1)
		}
	}
	return next, err
}

// commit gives the complete files of a batch their names. They replace the open files of the partition.
func (f folder) commit(batch extent, temps []string) error {
	open, err := f.paths(openSuffix)
	if err != nil {
		return err
	}
	for old, paths := range open {
		if old.partition == batch.partition && old.last >= batch.first {
			if err := removeAll(paths); err != nil {
				return err
			}
		}
	}
	return renameAll(temps)
}

// create writes a file of a batch to disk, and returns its path.
func (f folder) create(day string, batch extent, write func(io.Writer) error) (path string, err error) {
	dir := filepath.Join(string(f), "day="+day)
	if err := durable.Folder(dir); err != nil {
		return "", err
	}
	path = filepath.Join(dir, batch.name()+tempSuffix)
	return path, durable.Write(path, write)
}

func removeAll(paths []string) error {
	var errs []error
	for _, path := range paths {
		errs = append(errs, os.Remove(path))
	}
	return errors.Join(errs...)
}

// renameAll removes the suffix of incomplete files. The names are durable when it returns.
func renameAll(temps []string) error {
	for _, path := range temps {
		if err := durable.Rename(path, strings.TrimSuffix(path, tempSuffix)); err != nil {
			return err
		}
	}
	return nil
}

// layout returns the layout of any file of the folder, and the path of the file; "": no files.
func (f folder) layout() (l training.Layout, path string, err error) {
	complete, err := f.paths(suffix)
	for _, paths := range complete {
		l, err = training.LayoutOf(paths[0])
		return l, paths[0], err
	}
	return l, "", err
}
