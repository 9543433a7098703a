package schemas

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/hamba/avro/v2"
	"github.com/hamba/avro/v2/ocf"
)

// FiledFeatures is a LoggedFeatures record in a file, with its partition and offset in the topic, which identify it.
type FiledFeatures struct {
	LoggedFeatures
	Partition int32 `avro:"partition" json:"partition"`
	Offset    int64 `avro:"offset" json:"offset"`
}

// filedSchema returns the schema of LoggedFeatures with these two fields added.
func filedSchema() (avro.Schema, error) {
	text, err := Schema[LoggedFeatures]()
	if err != nil {
		return nil, err
	}
	var record map[string]any
	if err := json.Unmarshal([]byte(text), &record); err != nil {
		return nil, fmt.Errorf("parse schema: %w", err)
	}
	fields, _ := record["fields"].([]any)
	record["name"], record["fields"] = "FiledFeatures", append(fields,
		map[string]any{"name": "partition", "type": "int"}, map[string]any{"name": "offset", "type": "long"})
	whole, err := json.Marshal(record)
	if err != nil {
		return nil, fmt.Errorf("write schema: %w", err)
	}
	return avro.ParseWithCache(string(whole), "", &avro.SchemaCache{})
}

// FileWriter writes an Avro object container file, compressed with deflate, which Spark, Trino and DuckDB read.
type FileWriter struct{ enc *ocf.Encoder }

// NewFileWriter starts a file of FiledFeatures.
func NewFileWriter(w io.Writer) (*FileWriter, error) {
	schema, err := filedSchema()
	if err != nil {
		return nil, fmt.Errorf("start file: %w", err)
	}
	enc, err := ocf.NewEncoderWithSchema(schema, w,
		ocf.WithCodec(ocf.Deflate),
		ocf.WithEncoderSchemaCache(&avro.SchemaCache{}),
		ocf.WithBlockLength(1<<20), // blocks end where Flush is called
		ocf.WithBlockSize(1<<20))
	if err != nil {
		return nil, fmt.Errorf("start file: %w", err)
	}
	return &FileWriter{enc}, nil
}

// Write adds a record to the current block.
func (w *FileWriter) Write(rec *FiledFeatures) error {
	if err := w.enc.Encode(rec); err != nil {
		return fmt.Errorf("write record of %s/%d: %w", rec.Entity, rec.Offset, err)
	}
	return nil
}

// Flush ends the current block and writes it.
func (w *FileWriter) Flush() error {
	if err := w.enc.Flush(); err != nil {
		return fmt.Errorf("flush file: %w", err)
	}
	return nil
}

// ReadFiled visits the records of a file that a FileWriter wrote. The file must be complete; see RepairFile.
func ReadFiled(r io.Reader, visit func(*FiledFeatures) error) error {
	dec, err := ocf.NewDecoder(bufio.NewReader(r), ocf.WithDecoderSchemaCache(&avro.SchemaCache{}))
	if err != nil {
		return fmt.Errorf("read file: %w", err)
	}
	for dec.HasNext() {
		rec := &FiledFeatures{}
		if err := dec.Decode(rec); err != nil {
			return fmt.Errorf("read file: %w", err)
		}
		if err := visit(rec); err != nil {
			return err
		}
	}
	if err := dec.Error(); err != nil {
		return fmt.Errorf("read file: %w", err)
	}
	return nil
}

// RepairFile truncates an object container file after its last complete block, for a file whose writer was killed. It returns
// the number of remaining records.
func RepairFile(f *os.File) (records int64, err error) {
	text, err := io.ReadAll(io.NewSectionReader(f, 0, 1<<40))
	if err != nil {
		return 0, fmt.Errorf("repair %s: %w", f.Name(), err)
	}
	records, end := completeBlocks(text)
	if err := f.Truncate(int64(end)); err != nil {
		return 0, fmt.Errorf("repair %s: %w", f.Name(), err)
	}
	return records, nil
}

// syncBytes is the length of the marker that ends every block.
const syncBytes = 16

// completeBlocks returns the number of records in the complete blocks of a file, and the end of the last one; 0 if the header
// is incomplete. The layout is that of the Avro specification, Object Container Files.
func completeBlocks(text []byte) (records int64, end int) {
	c := &cursor{b: text}
	sync, err := fileHeader(c)
	if err != nil {
		return 0, 0
	}
	for {
		end = c.pos
		count, err := c.long()
		if err != nil || count < 0 {
			return records, end
		}
		if _, err = c.bytes(); err != nil || !bytes.HasPrefix(c.b[c.pos:], sync) {
			return records, end
		}
		c.pos += syncBytes
		records += count
	}
}

var errFileHeader = errors.New("not an object container file")

// fileHeader reads the header and returns the marker that ends every block.
func fileHeader(c *cursor) (sync []byte, err error) {
	magic := []byte("Obj\x01")
	if !bytes.HasPrefix(c.b, magic) {
		return nil, errFileHeader
	}
	c.pos = len(magic)
	err = c.blocks(2, func() error { // names and values, each at least one length
		_, errName := c.bytes()
		_, errValue := c.bytes()
		return errors.Join(errName, errValue)
	})
	if err != nil || c.left() < syncBytes {
		return nil, errors.Join(errFileHeader, err)
	}
	sync = c.b[c.pos : c.pos+syncBytes]
	c.pos += syncBytes
	return sync, nil
}
