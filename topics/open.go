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
// is unavailable, Open reports that once and makes no further requests.
func Open(ctx context.Context, r Registry) (*Streams, error) {
	b := &binder{ctx: ctx, registry: r}
	s := &Streams{
		Pins:       bind[schemas.PinEvent](b, Pins),
		Follows:    bind[schemas.FollowEvent](b, Follows),
		Actions:    bind[schemas.ActionEvent](b, Actions),
		Users:      bind[schemas.UserEvent](b, Users),
		Candidates: bind[schemas.Offer](b, Candidates),

		Publications:    bind[schemas.Publication](b, Publications),
		PinCards:        bind[schemas.Card](b, PinCards),
		PinAttributes:   bind[schemas.PinAttributes](b, PinAttributes),
		PinActors:       bind[schemas.PinActor](b, PinActors),
		ActionsJoined:   bind[schemas.EnrichedAction](b, ActionsJoined),
		ActionsEnriched: bind[schemas.EnrichedAction](b, ActionsEnriched),
		ItemFeatures:    bind[schemas.ItemCounts](b, ItemFeatures),
		HotPins:         bind[schemas.HotPin](b, HotPins),
		EdgeWeights:     bind[schemas.EdgeWeight](b, EdgeWeights),
		Affinities:      bind[schemas.Affinities](b, Affinities),
		UsersDeleted:    bind[schemas.DeletedUser](b, UsersDeleted),
		Erasures:        bind[schemas.Erasure](b, Erasures),
		Edges:           bind[schemas.Edge](b, Edges),
		FanoutLoop:      bind[schemas.Continuation](b, FanoutLoop),
		EdgeModes:       bind[schemas.EdgeMode](b, EdgeModes),
		RecentsPulled:   bind[schemas.PulledPin](b, RecentsPulled),
		Returns:         bind[schemas.Return](b, Returns),
		Rebuilds:        bind[schemas.Rebuild](b, Rebuilds),
		Replays:         bind[schemas.Replay](b, Replays),
		RelatedRequests: bind[schemas.RelatedRequest](b, RelatedRequests),
		BoardSaves:      bind[schemas.BoardSave](b, BoardSaves),
		RelatedPairs:    bind[schemas.RelatedPairs](b, RelatedPairs),
		Deliveries:      bind[schemas.Delivery](b, Deliveries),
		Served:          bind[schemas.Served](b, Served),
		FeedEntries:     bind[schemas.FeedEntries](b, FeedEntries),
		Impressions:     bind[schemas.Impressions](b, Impressions),
		FeatureLog:      bind[schemas.LoggedFeatures](b, FeatureLog),
		DeadLetters:     bind[schemas.DeadLetter](b, DeadLetters),
		RetryOrders:     bind[schemas.RetryOrder](b, RetryOrders),
		InterestMarks:   bind[schemas.InterestMarks](b, InterestMarks),

		InterestDecisions: bind[schemas.InterestDecision](b, InterestDecisions),
	}
	if err := errors.Join(b.errs...); err != nil {
		return nil, fmt.Errorf("open streams: %w", err)
	}
	return s, nil
}

// binder collects the errors of bind.
type binder struct {
	ctx      context.Context // the context of Open
	registry Registry
	errs     []error
	away     bool // the registry is unavailable; errs has the error
}

// bind registers the schema of T for a topic.
func bind[T any](b *binder, topic string) Stream[T] {
	serde, err := serdeOf[T](b, topic)
	if err != nil {
		b.errs = append(b.errs, err)
	}
	return Stream[T]{Name: topic, serde: serde}
}

func serdeOf[T any](b *binder, topic string) (*schemas.Serde[T], error) {
	if b.away {
		return nil, nil
	}
	if err := b.ctx.Err(); err != nil {
		return nil, fmt.Errorf("%s: %w", topic, err)
	}
	text, err := schemas.Schema[T]()
	if err != nil {
		return nil, err
	}
	subject := SubjectOf(topic)
	id, err := b.registry.Register(b.ctx, subject, text)
	b.away = errors.Is(err, schemas.ErrRegistryAway)
	if err != nil {
		return nil, err
	}
	return schemas.NewSerde[T](subject, id, b.registry)
}
