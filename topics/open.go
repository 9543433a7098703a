package topics

import (
	"context"
	"errors"
	"fmt"

	"github.com/smartfeed/smartfeed/schemas"
)

// Registry assigns ids to schemas. *schemas.Registry implements it.
type Registry interface {
	schemas.SchemaSource
	// Register returns the id of a schema under a subject, and registers the schema if it is new. It returns an error if
	// the schema cannot read records written earlier under the subject.
	Register(ctx context.Context, subject, schema string) (int, error)
}

// SubjectOf returns the registry's subject for the values of a topic.
func SubjectOf(topic string) string { return topic + "-value" }

// Open binds every stream to the id of its record's schema, and registers the schemas that the registry does not have. It
// reports the problems of all streams together, such as a schema that cannot read records of an older one. If the registry
// is unavailable, Open returns one error for it and makes no further requests.
func Open(ctx context.Context, r Registry) (*Streams, error) {
	b := &binder{ctx: ctx, registry: r}
	s := &Streams{byTopic: map[string]binding{}}
	for _, row := range s.rows(Profile{}) {
		if row.stream != nil {
			row.stream.bind(b, row.Name)
			s.byTopic[row.Name] = row.stream
		}
	}
	if err := errors.Join(b.errs...); err != nil {
		return nil, fmt.Errorf("open streams: %w", err)
	}
	return s, nil
}

// binder registers schemas and collects the errors.
type binder struct {
	ctx         context.Context // the context of Open
	registry    Registry
	errs        []error
	unavailable bool // the registry does not answer; errs has the error
}

// register registers the schema of a topic and returns its id.
func (b *binder) register(topic, schema string) (int, error) {
	if err := b.ctx.Err(); err != nil {
		return 0, fmt.Errorf("%s: %w", topic, err)
	}
	id, err := b.registry.Register(b.ctx, SubjectOf(topic), schema)
	b.unavailable = errors.Is(err, schemas.ErrRegistryUnavailable)
	return id, err
}
