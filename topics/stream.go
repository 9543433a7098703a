package topics

import (
	"fmt"

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

// Streams are all topics with a record type, bound to one registry. The zero value is not usable; see Open.
type Streams struct {
	Pins       Stream[schemas.PinEvent]
	Follows    Stream[schemas.FollowEvent]
	Actions    Stream[schemas.ActionEvent]
	Users      Stream[schemas.UserEvent]
	Candidates Stream[schemas.Offer]

	Publications    Stream[schemas.Publication]
	PinCards        Stream[schemas.Card]
	PinAttributes   Stream[schemas.PinAttributes]
	PinActors       Stream[schemas.PinActor]
	ActionsJoined   Stream[schemas.EnrichedAction]
	ActionsEnriched Stream[schemas.EnrichedAction]
	ItemFeatures    Stream[schemas.ItemCounts]
	HotPins         Stream[schemas.HotPin]
	EdgeWeights     Stream[schemas.EdgeWeight]
	Affinities      Stream[schemas.Affinities]
	UsersDeleted    Stream[schemas.DeletedUser]
	Erasures        Stream[schemas.Erasure]
	Edges           Stream[schemas.Edge]
	FanoutLoop      Stream[schemas.Continuation]
	EdgeModes       Stream[schemas.EdgeMode]
	RecentsPulled   Stream[schemas.PulledPin]
	Returns         Stream[schemas.Return]
	Rebuilds        Stream[schemas.Rebuild]
	Replays         Stream[schemas.Replay]
	RelatedRequests Stream[schemas.RelatedRequest]
	BoardSaves      Stream[schemas.BoardSave]
	RelatedPairs    Stream[schemas.RelatedPairs]
	Deliveries      Stream[schemas.Delivery]
	Served          Stream[schemas.Served]
	FeedEntries     Stream[schemas.FeedEntries]
	Impressions     Stream[schemas.Impressions]
	FeatureLog      Stream[schemas.LoggedFeatures]
	DeadLetters     Stream[schemas.DeadLetter]
	RetryOrders     Stream[schemas.RetryOrder]
	InterestMarks   Stream[schemas.InterestMarks]

	InterestDecisions Stream[schemas.InterestDecision]
}
