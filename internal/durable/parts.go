package durable

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	"github.com/gofrs/flock"
)

// Parts is a folder of files. Each has the records of one partition and day from an offset to another:
//
//	DIR/date=2026-11-20/part-03-000000000120-000000004711.avro
//
// A file has its name only when it is complete, so that a killed process leaves no other file under such a name.
type Parts struct {
	Dir string
	Key string // before the day, such as date
	Ext string // such as .avro
}

// Part is the range of records in a file.
type Part struct {
	Partition   int32
	First, Last int64 // offsets
}

func (p Parts) name(of Part) string {
	return fmt.Sprintf("part-%02d-%012d-%012d%s", of.Partition, of.First, of.Last, p.Ext)
}

// paths returns the paths of all files with an extension.
func (p Parts) paths(ext string) ([]string, error) {
	return filepath.Glob(filepath.Join(p.Dir, p.Key+"=*", "part-*"+ext))
}

// Lock creates and locks the folder, for one process at a time. It removes the files that a killed process has not completed.
func (p Parts) Lock() (*flock.Flock, error) {
	if err := os.MkdirAll(p.Dir, 0o700); err != nil {
		return nil, err
	}
	lock := flock.New(filepath.Join(p.Dir, "_lock")) // readers of folders ignore names that start with an underscore
	held, err := lock.TryLock()
	if err == nil && !held {
		err = errors.New("another process writes to it")
	}
	if err != nil {
		return nil, fmt.Errorf("lock %s: %w", p.Dir, err)
	}
	incomplete, err := p.paths(p.Ext + temp)
	for _, path := range incomplete {
		err = errors.Join(err, os.Remove(path))
	}
	if err != nil {
		return nil, errors.Join(err, lock.Unlock())
	}
	return lock, nil
}

// Parse returns the range in the name of a file.
func (p Parts) Parse(path string) (of Part, ok bool) {
	name := filepath.Base(path)
	n, err := fmt.Sscanf(name, "part-%d-%d-%d", &of.Partition, &of.First, &of.Last)
	return of, err == nil && n == 3 && name == p.name(of)
}

// List returns the paths of the files by day, partition and offset, and the offset after the last record of each partition.
func (p Parts) List() (paths []string, next map[int32]int64, err error) {
	paths, err = p.paths(p.Ext) // sorted
	next = map[int32]int64{}
	paths = slices.DeleteFunc(paths, func(path string) bool {
		part, ok := p.Parse(path)
		if ok {
			next[part.Partition] = max(next[part.Partition], part.Last+1)
		}
		return !ok
	})
	return paths, next, err
}

// Write writes a file of a day. When it returns, the file is on disk under its name.
func (p Parts) Write(day string, part Part, write func(io.Writer) error) error {
	folder := filepath.Join(p.Dir, p.Key+"="+day)
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return err
	}
	if err := syncFolder(p.Dir); err != nil {
		return err
	}
	return Replace(filepath.Join(folder, p.name(part)), write)
}
