package training

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
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
	file   *parquet.Writer
	layout Layout
	row    reflect.Type
}

// NewWriter returns a writer of a file with a layout. Close completes the file.
func NewWriter(out io.Writer, l Layout) (*Writer, error) {
	row := l.rowType()
	options := []parquet.WriterOption{parquet.SchemaOf(reflect.New(row).Interface()), parquet.Compression(&parquet.Zstd)}
	for key, part := range l.metadata() {
		text, err := json.Marshal(part)
		if err != nil {
			return nil, fmt.Errorf("metadata %s: %w", key, err)
		}
		options = append(options, parquet.KeyValueMetadata(key, string(text)))
	}
	return &Writer{file: parquet.NewWriter(out, options...), layout: l, row: row}, nil
}

// Write adds a row. Its lists have the lengths of the layout.
func (w *Writer) Write(r *Row) error {
	row := reflect.New(w.row)
	for i, v := range w.layout.values(r) {
		row.Elem().Field(i).Set(v)
	}
	return w.file.Write(row.Interface())
}

// Close writes the rest of the rows and the metadata. It does not close the underlying writer.
func (w *Writer) Close() error { return w.file.Close() }

// LayoutOf returns the layout of a file.
func LayoutOf(path string) (l Layout, err error) {
	err = withFile(path, func(f *parquet.File) (err error) {
		l, err = layoutOf(f.Lookup)
		return err
	})
	return l, err
}

// Dir is a folder of exported files.
type Dir struct {
	Layout Layout // of all files, without features; visits without a model lack outputs
	files  []string
}

// Open returns the files of a folder. It returns an error if there are none, or if they are of different exports.
func Open(dir string) (*Dir, error) {
	d := &Dir{}
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || filepath.Ext(path) != ".parquet" {
			return err
		}
		d.files = append(d.files, path)
		return withFile(path, func(f *parquet.File) error { return d.add(f) })
	})
	if err == nil && len(d.files) == 0 {
		err = fmt.Errorf("%s: no files *.parquet: want a folder that smartfeed training export has written", dir)
	}
	if err != nil {
		return nil, fmt.Errorf("open training rows: %w", err)
	}
	return d, nil
}

// add checks the layout of a further file.
func (d *Dir) add(f *parquet.File) error {
	l, err := layoutOf(f.Lookup)
	if err != nil {
		return err
	}
	if len(d.files) == 1 {
		d.Layout = Layout{Labels: l.Labels, Topic: l.Topic}
	}
	if !maps.Equal(d.Layout.Labels, l.Labels) || d.Layout.Topic != l.Topic {
		return fmt.Errorf("labels or topic differ from those of %s: export all days with the same --label", d.files[0])
	}
	for _, output := range l.Outputs {
		if !slices.Contains(d.Layout.Outputs, output) {
			d.Layout.Outputs = append(d.Layout.Outputs, output)
		}
	}
	return nil
}

// withFile calls do with an open file.
func withFile(path string, do func(*parquet.File) error) error {
	in, err := os.Open(path)
	if err != nil {
		return err
	}
	defer in.Close()
	size, err := in.Seek(0, io.SeekEnd)
	if err != nil {
		return err
	}
	f, err := parquet.OpenFile(in, size)
	if err == nil {
		err = do(f)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return nil
}

// errStopped ends an iteration whose caller needs no more rows.
var errStopped = errors.New("stopped")

// Rows returns the rows of all files, in the order of the files' names. A row is valid until the next one. An error is the
// last element.
func (d *Dir) Rows() iter.Seq2[*Row, error] {
	return func(yield func(*Row, error) bool) {
		for _, path := range d.files {
			err := withFile(path, func(f *parquet.File) error { return d.read(f, yield) })
			if errors.Is(err, errStopped) {
				return
			}
			if err != nil {
				yield(nil, fmt.Errorf("read training rows: %w", err))
				return
			}
		}
	}
}

// read yields the rows of a file. Columns that the file lacks are null.
func (d *Dir) read(f *parquet.File, yield func(*Row, error) bool) error {
	l, err := layoutOf(f.Lookup)
	if err != nil {
		return err
	}
	row := reflect.New(d.Layout.rowType())
	reader := parquet.NewReader(f, parquet.SchemaOf(row.Interface()))
	defer reader.Close()
	for {
		row.Elem().SetZero()
		if err := reader.Read(row.Interface()); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		r := &Row{Outputs: make([]*float64, len(d.Layout.Outputs)), Labels: make([]Label, len(d.Layout.Labels))}
		for i, v := range d.Layout.values(r) {
			v.Set(row.Elem().Field(i))
		}
		for i := range r.Choices {
			r.Choices[i].Outputs = Align(r.Choices[i].Outputs, l.Outputs, d.Layout.Outputs)
		}
		if !yield(r, nil) {
			return errStopped
		}
	}
}

// Align returns the outputs of a model with the names from as those with the names to: NaN for a missing one. It returns nil for
// no outputs.
func Align[T ~float64](outputs []T, from, to []string) []float64 {
	if len(outputs) == 0 {
		return nil
	}
	aligned := slices.Repeat([]float64{math.NaN()}, len(to))
	for i, n := range outputs {
		aligned[slices.Index(to, from[i])] = float64(n)
	}
	return aligned
}
