package topics

import (
	"context"
	"errors"
	"fmt"
	"reflect"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/smartfeed/smartfeed/schemas"
)

// Stream is a topic with its record type. It frames encoded records with the schema id from the registry, and decodes
// records of any compatible writer.
type Stream[T any] struct {
	Name  string
	serde *schemas.Serde[T]
}

// Encode frames rec for the topic. It returns an error for a record that violates the bounds of its schema.
func (s Stream[T]) Encode(rec *T) ([]byte, error) { return s.serde.Encode(rec) }

// Decode decodes a framed value. It returns a *schemas.BadRecordError for a value that can never be decoded. Any other
// error means that the registry did not answer, and a retry may help.
func (s Stream[T]) Decode(value []byte) (*T, error) { return s.serde.Decode(value) }

// Into returns a function that decodes one record of the topic, checks it, and adds it to a batch. check returns an error
// for an invalid record, and otherwise the expected record key. A record under another key is in the wrong partition and
// out of order with related records. A record that can never be processed is a *schemas.BadRecordError.
func Into[B, T any](s Stream[T], check func(*T) (key string, err error), add func(*B, *T, *kgo.Record)) func(*B, *kgo.Record) error {
	return func(b *B, r *kgo.Record) error {
		rec, err := s.Decode(r.Value)
		if err != nil {
			return err
		}
		want, err := check(rec)
		if err != nil {
			return schemas.Bad(err.Error())
		}
		if string(r.Key) != want {
			return schemas.Bad(fmt.Sprintf("key %.64q: want %.64q", r.Key, want))
		}
		add(b, rec, r)
		return nil
	}
}

// Decoded returns a function for Log.ReadTo that decodes the records of a topic for visit. It skips records that can never be
// decoded. In an input topic, groups have sent dead letters for them.
func Decoded[T any](s Stream[T], visit func(*T, *kgo.Record) error) func(*kgo.Record) error {
	return func(r *kgo.Record) error {
		rec, err := s.Decode(r.Value)
		if bad := new(schemas.BadRecordError); errors.As(err, &bad) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("read %s/%d/%d: %w", r.Topic, r.Partition, r.Offset, err)
		}
		return visit(rec, r)
	}
}

// encodeAny is Encode for a record of any type. It returns an error unless rec is a *T.
func (s *Stream[T]) encodeAny(rec any) ([]byte, error) {
	own, ok := rec.(*T)
	if !ok {
		return nil, fmt.Errorf("encode %T: not the record type of topic %s", rec, s.Name)
	}
	return s.Encode(own)
}

// record returns the name of the record type.
func (s *Stream[T]) record() string { return reflect.TypeFor[T]().Name() }

// bind registers the schema of T for a topic.
func (s *Stream[T]) bind(ctx context.Context, r Registry, topic string) error {
	text, err := schemas.Schema[T]()
	if err != nil {
		return err
	}
	id, err := r.Register(ctx, SubjectOf(topic), text)
	if err != nil {
		return err
	}
	s.Name = topic
	s.serde, err = schemas.NewSerde[T](SubjectOf(topic), id, r)
	return err
}
