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
	// MaxRecordBytes is how long a framed record may be, both when it is encoded and when it is decoded. It is what a
	// Kafka topic takes by default.
	MaxRecordBytes = 1 << 20
	// MaxDeadLetterBytes is the same for a DeadLetter, which holds a whole record of any topic. Its topic must take
	// messages of this size.
	MaxDeadLetterBytes = 2 << 20

	// maxResolvedBytes bounds what a record of another schema may grow to when it is rewritten.
	maxResolvedBytes = MaxDeadLetterBytes

	frameHead  = 5               // a zero byte and the schema's id
	askTimeout = 5 * time.Second // for one question to the registry
)

// ErrNoSchema says that a registry answered, and that it has no schema of that id.
var ErrNoSchema = errors.New("no such schema")

// SchemaSource finds schemas by the id that a registry gave them. *Registry is one.
type SchemaSource interface {
	// SchemaByID returns the text of an Avro schema. An error that wraps ErrNoSchema is an answer: there is none. A
	// *BadRecordError is one too: there is one, and it is of no use here. Any other error means that the source could
	// not be asked.
	SchemaByID(ctx context.Context, id int) (string, error)
}

// Serde encodes and decodes one record type in Confluent framing: a zero byte, the schema id as four bytes
// big-endian, the Avro body. It is safe for concurrent use.
type Serde[T any] struct {
	framing *framing // all that does not need T: what does is compiled once a record type, in every package that uses one
}

// framing is the Serde of any record.
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

// NewSerde returns the serde of a record type of this package, bound to the id under which Schema[T] is registered.
// The subject stands in errors. Records of another id are read with their writer's schema, which source is asked for
// once an id, within five seconds.
func NewSerde[T any](subject string, id int, source SchemaSource) (*Serde[T], error) {
	f, err := newFraming(subject, id, source, new(T))
	if err != nil {
		return nil, err
	}
	return &Serde[T]{f}, nil
}

func newFraming(subject string, id int, source SchemaSource, rec any) (*framing, error) {
	if id < 0 || id > math.MaxInt32 {
		return nil, fmt.Errorf("serde of %s: schema id %d is not one of 32 bits", subject, id)
	}
	text, err := schemaText(rec)
	if err != nil {
		return nil, fmt.Errorf("serde of %s: %w", subject, err)
	}
	reader, err := parseSchema(text)
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

// Encode returns the framed record. It fails on a record that is longer than its bound, with a *BadRecordError: whoever
// makes it of another record need not try again. And on one that holds a string that is not UTF-8: what it returns, Decode
// reads.
func (s *Serde[T]) Encode(rec *T) ([]byte, error) {
	if rec == nil {
		return nil, fmt.Errorf("encode %s: no record", s.framing.subject)
	}
	return s.framing.encode(rec)
}

// Decode reads a framed record, whole. A value that can never be read (not framed, too long, cut short or too long for
// its schema, of a schema that the registry does not know or that does not fit) is a *BadRecordError; any other error
// means that the registry could not be asked. The record does not refer to value.
//
// A value of a schema id that Decode has not met costs a request to the registry. While a record type's values have many ids that
// the registry does not know, most of these requests are not made, and the value is a *BadRecordError as well: it has to be tried
// again later, as dead letters are.
//
// Repeated interests are dropped, the first of each kept. Absent lists and maps are empty, not nil; an absent embedding
// of an event is nil.
func (s *Serde[T]) Decode(value []byte) (*T, error) {
	rec := new(T)
	if err := s.framing.decode(value, rec); err != nil {
		return nil, err
	}
	return rec, nil
}

// encode frames a record, which is a pointer.
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

// decode reads a framed record into rec, a pointer. After an error rec may be half written.
func (s *framing) decode(value []byte, rec any) error {
	body, err := s.body(value)
	if err != nil {
		return err
	}
	if err := conform(s.reader, body); err != nil {
		return s.bad(err)
	}
	w := wireOf(rec)
	if err := s.codec.decode(body, w); err != nil {
		return s.bad(err)
	}
	settle(w)
	return nil
}

func (s *framing) bad(err error) error { return badf("decode %s: %v", s.subject, err) }

// body returns the record's body in the serde's own schema.
func (s *framing) body(value []byte) ([]byte, error) {
	switch {
	case len(value) > s.maxBytes:
		return nil, badf("decode %s: %d bytes, at most %d are allowed", s.subject, len(value), s.maxBytes)
	case len(value) < frameHead:
		return nil, badf("decode %s: %d bytes are no framed record", s.subject, len(value))
	case value[0] != 0:
		return nil, badf("decode %s: first byte is %#02x, not the zero of a framed record", s.subject, value[0])
	}
	id := binary.BigEndian.Uint32(value[1:])
	if id == s.id {
		return value[frameHead:], nil
	}
	if id > math.MaxInt32 {
		return nil, badf("decode %s: schema %d: %v", s.subject, id, ErrNoSchema)
	}
	w, err := s.writers.get(id, time.Now, s.ask)
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
