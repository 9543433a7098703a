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
	s := &Streams{byTopic: map[string]binding{}}
	var errs []error
	for _, row := range s.rows(Profile{}) {
		if row.stream == nil {
			continue
		}
		s.byTopic[row.Name] = row.stream
		err := row.stream.bind(ctx, r, row.Name)
		if errs = append(errs, err); errors.Is(err, schemas.ErrRegistryUnavailable) {
			break
		}
	}
	if err := errors.Join(errs...); err != nil {
		return nil, fmt.Errorf("open streams: %w", err)
	}
	return s, nil
}
