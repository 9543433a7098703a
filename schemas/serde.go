package schemas

import "errors"

// Serde encodes and decodes one record type in Confluent framing: a zero byte, the schema id as four bytes
// big-endian, the Avro body.
type Serde[T any] struct{ _ [0]T }

// Encode returns the framed record.
func (s *Serde[T]) Encode(rec *T) ([]byte, error) { return nil, errors.ErrUnsupported }

// Decode reads a framed record, whole. See Stream.Decode in package topics for its errors.
func (s *Serde[T]) Decode(value []byte) (*T, error) { return nil, errors.ErrUnsupported }

// BadRecordError is a record that can never be worked off as it is: it goes to the dead letters.
type BadRecordError struct{ Reason string }

func (e *BadRecordError) Error() string { return e.Reason }

// Bad returns a *BadRecordError with the reason.
func Bad(reason string) error { return &BadRecordError{Reason: reason} }
