package schemas

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"sync"
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

	frameHead   = 5                // a zero byte and the schema's id
	askTimeout  = 5 * time.Second  // for one question to the registry
	forgetAfter = 10 * time.Second // an id that the registry did not know is asked for again
	maxWriters  = 1024             // ids remembered; more than that are forgotten all at once
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

	mu      sync.Mutex
	writers map[uint32]writer // other schemas met, by id
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
		reader: reader, source: source, writers: map[uint32]writer{},
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
	w, err := s.writer(id)
	if err != nil {
		return nil, err
	}
	body, err := w.rewrite(value[frameHead:])
	if err != nil {
		return nil, badf("decode %s: schema %d: %v", s.subject, id, err)
	}
	return body, nil
}

// writer is another schema than the serde's own.
type writer struct {
	schema *node
	step   step      // nil: the bytes are the same
	err    error     // why records of it can not be read; a *BadRecordError
	until  time.Time // when err is to be forgotten; zero: never
}

// rewrite returns body in the reader's schema.
func (w writer) rewrite(body []byte) ([]byte, error) {
	if w.err != nil {
		return nil, w.err
	}
	if w.step == nil {
		return body, nil
	}
	if err := conform(w.schema, body); err != nil {
		return nil, err
	}
	return w.step(&cursor{b: body}, nil)
}

// writer returns what is known of a schema id, asking the source if it has to. Two callers may ask for the same id at
// once; both learn the same.
func (s *framing) writer(id uint32) (writer, error) {
	s.mu.Lock()
	w, ok := s.writers[id]
	s.mu.Unlock()
	if ok && (w.until.IsZero() || time.Now().Before(w.until)) {
		return w, nil
	}
	w, err := s.ask(id)
	if err != nil {
		return writer{}, fmt.Errorf("decode %s: schema %d: %w", s.subject, id, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.writers) >= maxWriters {
		clear(s.writers) // only hostile input has so many ids
	}
	s.writers[id] = w
	return w, nil
}

func (s *framing) ask(id uint32) (writer, error) {
	if id > math.MaxInt32 {
		return writer{err: ErrNoSchema}, nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), askTimeout)
	defer cancel()
	text, err := s.source.SchemaByID(ctx, int(id))
	var bad *BadRecordError
	switch {
	case errors.Is(err, ErrNoSchema):
		return writer{err: ErrNoSchema, until: time.Now().Add(forgetAfter)}, nil
	case errors.As(err, &bad):
		return writer{err: bad}, nil
	case err != nil:
		return writer{}, err
	}
	return s.plan(text), nil
}

// plan prepares reading records of a writer's schema.
func (s *framing) plan(text string) writer {
	n, err := parseSchema(text)
	if err != nil {
		return writer{err: err}
	}
	if alike(s.reader, n) {
		return writer{schema: n}
	}
	step, _ := resolve(s.reader, n) // the step fails where it meets a problem
	return writer{schema: n, step: step}
}
