package schemas

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"

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

// fileTopic is the key of the topic id in the metadata of a file.
const fileTopic = "smartfeed.topic"

// FileWriter writes an Avro object container file, compressed with deflate, which Spark, Trino and DuckDB read. Encode adds a
// record, and Close completes the file.
type FileWriter = ocf.Encoder

// NewFileWriter starts a file of FiledFeatures. topic is the id of their topic.
func NewFileWriter(w io.Writer, topic []byte) (*FileWriter, error) {
	schema, err := filedSchema()
	if err != nil {
		return nil, fmt.Errorf("start file: %w", err)
	}
	return ocf.NewEncoderWithSchema(schema, w,
		ocf.WithCodec(ocf.Deflate),
		ocf.WithEncoderSchemaCache(&avro.SchemaCache{}),
		ocf.WithMetadataKeyVal(fileTopic, topic),
		ocf.WithBlockLength(0), // bytes limit a block
		ocf.WithBlockSize(1<<20))
}

// ReadFiled visits the records of a file that a FileWriter wrote, unless visit is nil. It returns the id of their topic.
func ReadFiled(r io.Reader, visit func(*FiledFeatures) error) (topic []byte, err error) {
	dec, err := ocf.NewDecoder(bufio.NewReader(r), ocf.WithDecoderSchemaCache(&avro.SchemaCache{}))
	if err != nil {
		return nil, fmt.Errorf("read file: %w", err)
	}
	for visit != nil && dec.HasNext() {
		rec := &FiledFeatures{}
		if err := dec.Decode(rec); err != nil {
			return nil, fmt.Errorf("read file: %w", err)
		}
		if err := visit(rec); err != nil {
			return nil, err
		}
	}
	if err := dec.Error(); err != nil {
		return nil, fmt.Errorf("read file: %w", err)
	}
	return dec.Metadata()[fileTopic], nil
}
