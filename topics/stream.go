// Package topics says where every record flows: each stream and table as data, under which key, with how many
// partitions and what retention; the one hash that decides the partition; provisioning and verification; typed
// producers and consumers; and the broker and registry that a single machine embeds.
package topics

import (
	"github.com/smartfeed/smartfeed/schemas"
)

// Stream is a topic bound to its record type: it frames what it encodes with the schema id that the registry gave,
// and decodes what any compatible writer framed.
type Stream[T any] struct {
	Name  string
	serde *schemas.Serde[T]
}

// Encode frames rec for the topic. It fails on a record that breaks the schema's own bounds.
func (s Stream[T]) Encode(rec *T) ([]byte, error) { return s.serde.Encode(rec) }

// Decode reads a framed value. A value that can never be read is a *schemas.BadRecordError; any other error means
// the registry could not be asked, and that trying again may help.
func (s Stream[T]) Decode(value []byte) (*T, error) { return s.serde.Decode(value) }

// Streams are all topics with a record type of their own, bound to one registry. The zero value is of no use; see Open.
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
	FanoutLoop      Stream[schemas.FanoutStep]
	EdgeModes       Stream[schemas.EdgeMode]
	RecentsPulled   Stream[schemas.PulledPin]
	Returns         Stream[schemas.Return]
	Rebuilds        Stream[schemas.Rebuild]
	RelatedRequests Stream[schemas.RelatedRequest]
	BoardSaves      Stream[schemas.BoardSave]
	RelatedPairs    Stream[schemas.RelatedPairs]
	Deliveries      Stream[schemas.Delivery]
	Served          Stream[schemas.Served]
	FeedEntries     Stream[schemas.FeedEntry]
	Impressions     Stream[schemas.Impression]
	FeatureLog      Stream[schemas.LoggedFeatures]
	DeadLetters     Stream[schemas.DeadLetter]
	RetryOrders     Stream[schemas.RetryOrder]
}
