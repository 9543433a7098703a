package training

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"slices"

	"github.com/parquet-go/parquet-go"
)

// Writer writes the rows of one file.
type Writer struct {
	file    *parquet.Writer
	columns []column
	row     reflect.Type
}

// NewWriter returns a writer of a file with a layout. Close completes the file.
func NewWriter(out io.Writer, l Layout) (*Writer, error) {
	w := &Writer{columns: l.columns()}
	w.row = rowType(w.columns)
	options := []parquet.WriterOption{parquet.SchemaOf(reflect.New(w.row).Interface()), parquet.Compression(&parquet.Zstd)}
	for key, part := range l.metadata() {
		text, err := json.Marshal(part)
		if err != nil {
			return nil, fmt.Errorf("metadata %s: %w", key, err)
		}
		options = append(options, parquet.KeyValueMetadata(key, string(text)))
	}
	w.file = parquet.NewWriter(out, options...)
	return w, nil
}

// Write adds a row.
func (w *Writer) Write(item Item, columns Columns) error {
	row := reflect.New(w.row)
	row.Elem().Field(0).Set(reflect.ValueOf(item))
	for i, c := range w.columns {
		switch n, found := columns[c.name]; {
		case !found || math.IsNaN(n): // null or false
		case c.kind == reflect.TypeFor[bool]():
			row.Elem().Field(1 + i).SetBool(n != 0)
		default:
			row.Elem().Field(1 + i).Set(reflect.ValueOf(&n))
		}
	}
	return w.file.Write(row.Interface())
}

// Close writes the rest of the rows and the metadata. It does not close the underlying writer.
func (w *Writer) Close() error { return w.file.Close() }

// Log is a log of served items: a folder of exported files.
type Log struct {
	// Layout is that of all files, without features. Visits without a model lack outputs.
	Layout
	// Each calls visit with all rows, in the order of the files' names, until it returns an error.
	Each func(visit func(*Row) error) error
}

// Open returns the log in a folder. It returns an error if there are no files, or if they are of different exports.
func Open(dir string) (*Log, error) {
	l, files := &Log{}, []string(nil)
	err := filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		if err != nil || filepath.Ext(path) != ".parquet" {
			return err
		}
		files = append(files, path)
		return l.add(files)
	})
	if err == nil && len(files) == 0 {
		err = fmt.Errorf("%s: no files *.parquet: want a folder that smartfeed training export has written", dir)
	}
	if err != nil {
		return nil, fmt.Errorf("open training rows: %w", err)
	}
	l.Each = func(visit func(*Row) error) error {
		for _, path := range files {
			if err := l.read(path, visit); err != nil {
				return fmt.Errorf("read training rows: %s: %w", path, err)
			}
		}
		return nil
	}
	return l, nil
}

// add adds the layout of the last file.
func (l *Log) add(files []string) error {
	path := files[len(files)-1]
	of, err := LayoutOf(path)
	if err != nil {
		return err
	}
	if len(files) == 1 {
		l.Labels, l.Topic = of.Labels, of.Topic
	}
	if !maps.Equal(l.Labels, of.Labels) || l.Topic != of.Topic {
		return fmt.Errorf("%s: labels or topic differ from those of %s: export all days with the same --label", path, files[0])
	}
	for _, output := range of.Outputs {
		if !slices.Contains(l.Outputs, output) {
			l.Outputs = append(l.Outputs, output)
		}
	}
	return nil
}

// open returns a file. It reads all of it: the export writes files of some megabytes.
func open(path string) (*parquet.File, error) {
	content, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	return parquet.OpenFile(bytes.NewReader(content), int64(len(content)))
}

// LayoutOf returns the layout of a file.
func LayoutOf(path string) (l Layout, err error) {
	f, err := open(path)
	if err != nil {
		return l, fmt.Errorf("%s: %w", path, err)
	}
	for key, part := range l.metadata() {
		text, _ := f.Lookup(key)
		if err := json.Unmarshal([]byte(text), part); err != nil {
			return l, fmt.Errorf("%s: metadata %s: %q: want what smartfeed training export writes: %w", path, key, text, err)
		}
	}
	return l, nil
}

// read visits the rows of a file.
func (l *Log) read(path string, visit func(*Row) error) error {
	f, err := open(path)
	if err != nil {
		return err
	}
	row := reflect.New(rowType(Layout{Labels: l.Labels}.columns()))
	reader := parquet.NewReader(f, parquet.SchemaOf(row.Interface()))
	defer reader.Close()
	for {
		row.Elem().SetZero()
		if err := reader.Read(row.Interface()); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		r := &Row{row.Elem().Field(0).Interface().(Item), map[string]bool{}}
		for i, verb := range l.Verbs() { // each label has two columns
			r.Acted[verb] = row.Elem().Field(1 + 2*i).Bool()
		}
		if err := visit(r); err != nil {
			return err
		}
	}
}
