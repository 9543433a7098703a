package schemas

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"time"
)

const (
	// MaxRecordBytes is the maximum length of a framed record, both for encoding and for decoding. It is the default limit
	// of a Kafka topic.
	MaxRecordBytes = 1 << 20
	// MaxDeadLetterBytes is the same for a DeadLetter, which holds a whole record of any topic. The dead-letter topic must
	// accept messages of this size.
	MaxDeadLetterBytes = 2 << 20

	// maxResolvedBytes bounds the size of a record of another schema after it is rewritten.
	maxResolvedBytes = MaxDeadLetterBytes

	frameHead      = 5               // zero byte and schema id
	requestTimeout = 5 * time.Second // timeout of one request to the registry
)

// ErrNoSchema is returned when a registry responds that it has no schema with an id.
var ErrNoSchema = errors.New("no such schema")

// SchemaSource returns schemas by their id in a registry. *Registry implements it.
type SchemaSource interface {
	// SchemaByID returns the text of an Avro schema. An error that wraps ErrNoSchema means that the schema does not exist.
	// A *BadRecordError means that it exists but cannot be used. Any other error means that the source is unavailable.
	SchemaByID(ctx context.Context, id int) (string, error)
}

// Serde encodes and decodes one record type in Confluent framing: a zero byte, the schema id as four bytes big-endian, and
// the Avro body. It is safe for concurrent use.
type Serde[T any] struct {
	framing *framing // everything that does not depend on T: generic code is compiled once per record type in every package that uses one
}

// framing is the type-independent part of a Serde.
type framing struct {
	subject  string
	id       uint32
	head     [frameHead]byte
	maxBytes int
	codec    *codec
	reader   *node
	source   SchemaSource

	writers *writers
}

// NewSerde returns the serde of a record type of this package, with the id under which Schema[T] is registered. subject is
// used in errors. Records with another id are read with their writer's schema, which the serde requests from source once
// per id, with a timeout of five seconds.
func NewSerde[T any](subject string, id int, source SchemaSource) (*Serde[T], error) {
	f, err := newFraming(subject, id, source, new(T))
	if err != nil {
		return nil, err
	}
	return &Serde[T]{f}, nil
}

func newFraming(subject string, id int, source SchemaSource, rec any) (*framing, error) {
	if id < 0 || id > math.MaxInt32 {
		return nil, fmt.Errorf("serde of %s: schema id %d is out of range [0, %d]", subject, id, math.MaxInt32)
	}
	text, err := schemaText(rec)
	if err != nil {
		return nil, fmt.Errorf("serde of %s: %w", subject, err)
	}
	reader, err := parseReader(text)
	if err != nil {
		return nil, fmt.Errorf("serde of %s: %w", subject, err)
	}
	s := &framing{
		subject: subject, id: uint32(id), maxBytes: maxBytes(rec),
		reader: reader, source: source, writers: newWriters(),
	}
	if s.codec, err = newCodec(text, s.maxBytes); err != nil {
		return nil, fmt.Errorf("serde of %s: %w", subject, err)
	}
	binary.BigEndian.PutUint32(s.head[1:], s.id)
	return s, nil
}

func maxBytes(rec any) int {
	if _, ok := rec.(*DeadLetter); ok {
		return MaxDeadLetterBytes
	}
	return MaxRecordBytes
}

// Encode returns the framed record, which Decode can read. It returns a *BadRecordError for a record that exceeds its
// maximum length: a caller that derives it from another record must not retry. It returns another error for a string that
// is not UTF-8.
func (s *Serde[T]) Encode(rec *T) ([]byte, error) {
	if rec == nil {
		return nil, fmt.Errorf("encode %s: no record", s.framing.subject)
	}
	return s.framing.encode(rec)
}

// Decode decodes a complete framed record. It returns a *BadRecordError for a value that can never be read: not framed, too
// long, shorter or longer than its schema requires, or with a schema that the registry does not have or that is
// incompatible. Any other error means that the registry is unavailable. The record does not refer to value.
//
// A value with a new schema id costs a request to the registry. If many ids of a record type are unknown to the registry,
// Decode skips most of these requests and returns a *BadRecordError as well. Such a value must be retried later, as dead
// letters are.
//
// Repeated interests are dropped; the first of each is kept. Absent lists and maps are empty, not nil. An absent embedding
// of an event is nil.
func (s *Serde[T]) Decode(value []byte) (*T, error) {
	rec := new(T)
	if err := s.framing.decode(value, rec); err != nil {
		return nil, err
	}
	return rec, nil
}

// encode frames a record. rec is a pointer.
func (s *framing) encode(rec any) ([]byte, error) {
	value, err := s.codec.encode(s.head[:], wireOf(rec))
	if err != nil {
		return nil, fmt.Errorf("encode %s: %w", s.subject, err)
	}
	if len(value) > s.maxBytes {
		return nil, badf("encode %s: %d bytes, at most %d are allowed", s.subject, len(value), s.maxBytes)
	}
	if err := conform(s.reader, value[frameHead:]); err != nil {
		return nil, fmt.Errorf("encode %s: %w", s.subject, err)
	}
	return value, nil
}

// decode decodes a framed record into rec, a pointer. After an error, rec may be partially written.
func (s *framing) decode(value []byte, rec any) error {
	body, err := s.body(value)
	if err != nil {
		return err
	}
	if err := conform(s.reader, body); err != nil {
		return s.badRecord(err)
	}
	w := wireOf(rec)
	if err := s.codec.decode(body, w); err != nil {
		return s.badRecord(err)
	}
	finishDecoding(w)
	return nil
}

func (s *framing) badRecord(err error) error { return badf("decode %s: %v", s.subject, err) }

// body returns the record's body in the serde's own schema.
func (s *framing) body(value []byte) ([]byte, error) {
	switch {
	case len(value) > s.maxBytes:
		return nil, badf("decode %s: %d bytes, at most %d are allowed", s.subject, len(value), s.maxBytes)
	case len(value) < frameHead:
		return nil, badf("decode %s: %d bytes are too short for a framed record", s.subject, len(value))
	case value[0] != 0:
		return nil, badf("decode %s: first byte is %#02x, want 0x00 of a framed record", s.subject, value[0])
	}
	id := binary.BigEndian.Uint32(value[1:])
	if id == s.id {
		return value[frameHead:], nil
	}
	if id > math.MaxInt32 {
		return nil, badf("decode %s: schema %d: %v", s.subject, id, ErrNoSchema)
	}
	w, err := s.writers.get(id, time.Now, s.requestSchema)
	if errors.Is(err, errBudget) {
		return nil, badf("decode %s: schema %d: %v", s.subject, id, err)
	}
	if err != nil {
		return nil, fmt.Errorf("decode %s: schema %d: %w", s.subject, id, err)
	}
	body, err := w.rewrite(value[frameHead:])
	if err != nil {
		return nil, badf("decode %s: schema %d: %v", s.subject, id, err)
	}
	return body, nil
}
