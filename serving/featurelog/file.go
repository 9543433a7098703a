package featurelog

import (
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"

	"github.com/smartfeed/smartfeed/internal/durable"
	"github.com/smartfeed/smartfeed/schemas"
)

const (
	suffix     = ".avro"
	openSuffix = ".avro.open" // does not match the patterns of readers
)

// file is an open file.
type file struct {
	f      *os.File
	w      *schemas.FileWriter
	date   string
	opened time.Time
	size   int64 // after the last flush
	dirty  bool
	named  func(last int64) string // path of the closed file
	last   int64                   // offset of the last record
}

// fileName returns the name of a file with the records from first to last.
func fileName(partition int32, first, last int64) string {
	return fmt.Sprintf("part-%02d-%012d-%012d%s", partition, first, last, suffix)
}

// openName returns the name of an open file that starts at first.
func openName(partition int32, first int64) string {
	return fmt.Sprintf("part-%02d-%012d%s", partition, first, openSuffix)
}

// parseName is the reverse of fileName.
func parseName(name string) (partition int32, first, last int64, ok bool) {
	n, err := fmt.Sscanf(name, "part-%d-%d-%d"+suffix, &partition, &first, &last)
	return partition, first, last, err == nil && n == 3 && name == fileName(partition, first, last)
}

// create opens a new file that starts at offset first.
func create(dir, date string, partition int32, first int64, now time.Time) (*file, error) {
	dir = filepath.Join(dir, "date="+date)
	if err := durable.Folder(dir); err != nil {
		return nil, fmt.Errorf("create file: %w", err)
	}
	f, err := os.Create(filepath.Join(dir, openName(partition, first)))
	if err != nil {
		return nil, fmt.Errorf("create file: %w", err)
	}
	// A commit requires that the file exists even after a power failure.
	if err := durable.SyncFolder(dir); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	w, err := schemas.NewFileWriter(f)
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return &file{f: f, w: w, date: date, opened: now, last: first - 1, named: func(last int64) string {
		return filepath.Join(dir, fileName(partition, first, last))
	}}, nil
}

func (f *file) write(rec *schemas.FiledFeatures) error {
	f.last, f.dirty = rec.Offset, true
	return f.w.Write(rec)
}

// flush writes the buffered records to disk.
func (f *file) flush() error {
	if !f.dirty {
		return nil
	}
	if err := f.w.Flush(); err != nil {
		return err
	}
	if err := f.f.Sync(); err != nil {
		return fmt.Errorf("flush %s: %w", f.f.Name(), err)
	}
	info, err := f.f.Stat()
	if err != nil {
		return fmt.Errorf("flush %s: %w", f.f.Name(), err)
	}
	f.size, f.dirty = info.Size(), false
	return nil
}

// close closes the file and gives it its final name.
func (f *file) close() error {
	if err := errors.Join(f.flush(), f.f.Close()); err != nil {
		return fmt.Errorf("close %s: %w", f.f.Name(), err)
	}
	return durable.Rename(f.f.Name(), f.named(f.last))
}

// repair drops the incomplete end of a file that was left open, and closes it. It removes a file without records.
func repair(path string) error {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return fmt.Errorf("repair: %w", err)
	}
	records, err := schemas.RepairFile(f)
	if err == nil {
		err = f.Sync()
	}
	if err := errors.Join(err, f.Close()); err != nil {
		return err
	}
	if records == 0 {
		return os.Remove(path)
	}
	first, last, partition := int64(-1), int64(-1), int32(0)
	err = readFile(path, func(rec *schemas.FiledFeatures) error {
		if first < 0 {
			first, partition = rec.Offset, rec.Partition
		}
		last = rec.Offset
		return nil
	})
	if err != nil {
		return err
	}
	return durable.Rename(path, filepath.Join(filepath.Dir(path), fileName(partition, first, last)))
}

func readFile(path string, visit func(*schemas.FiledFeatures) error) error {
	f, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("read: %w", err)
	}
	if err := errors.Join(schemas.ReadFiled(f, visit), f.Close()); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return nil
}

// ReadFiles visits the records of every closed file below dir, by date, partition and offset.
func ReadFiles(dir string, visit func(*schemas.FiledFeatures) error) error {
	paths, err := filepath.Glob(filepath.Join(dir, "date=*", "part-*"+suffix))
	if err != nil {
		return fmt.Errorf("list files: %w", err)
	}
	for _, path := range paths { // Glob sorts them
		if _, _, _, ok := parseName(filepath.Base(path)); !ok {
			continue
		}
		if err := readFile(path, visit); err != nil {
			return err
		}
	}
	return nil
}

// topicFile is the name of the file with the topic's id. Readers of folders of Avro files ignore names that start with
// an underscore.
const topicFile = "_topic"

// readTopic returns the id of the topic of the files, or zero if it is not recorded.
func readTopic(path string) (id kadm.TopicID, err error) {
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return id, nil
	}
	if err != nil {
		return id, fmt.Errorf("read topic id of the files: %w", err)
	}
	b, err := base64.StdEncoding.DecodeString(strings.TrimSpace(string(text)))
	if err != nil || len(b) != len(id) {
		return id, fmt.Errorf("read topic id of the files: %s holds %.40q, which is not an id: remove it if the files are of the current topic",
			path, text)
	}
	return kadm.TopicID(b), nil
}

// writeTopic is durable when it returns.
func writeTopic(path string, id kadm.TopicID) error {
	err := durable.Replace(path, func(out io.Writer) error {
		_, err := fmt.Fprintln(out, id)
		return err
	})
	if err != nil {
		return fmt.Errorf("record topic id of the files: %w", err)
	}
	return nil
}
