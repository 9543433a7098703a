package topics

import (
	"context"
	"slices"

	"github.com/smartfeed/smartfeed/schemas"
)

// Names of the topics, each with the key of its records.
const (
	Pins              = schemas.StreamPins              // pin
	Follows           = schemas.StreamFollows           // followee
	Actions           = schemas.StreamActions           // pin
	Users             = schemas.StreamUsers             // user
	Candidates        = schemas.StreamCandidates        // user
	ClientImpressions = schemas.StreamClientImpressions // user
	ImpressionReports = "impression-reports"            // user; the valid records of client-impressions

	Publications    = "publications"     // followee
	PinCards        = "pin-cards"        // pin
	PinAttributes   = "pin-attributes"   // pin
	PinActors       = "pin-actors"       // pin
	ActionsJoined   = "actions-joined"   // actor
	ActionsEnriched = "actions-enriched" // actor
	ItemFeatures    = "item-features"    // pin
	HotPins         = "hot-pins"         // pin, compacted
	PopularPins     = "popular-pins"     // partition and slot, compacted
	EdgeWeights     = "edge-weights"     // followee
	Affinities      = "affinities"       // user
	UsersDeleted    = "users-deleted"    // user, compacted
	Erasures        = "erasures"         // user or followee
	Edges           = "edges"            // user
	FanoutLoop      = "fanout-loop"      // followee
	EdgeModes       = "edge-modes"       // followee
	RecentsPulled   = "recents-pulled"   // followee and slot, compacted
	UserActivity    = "user-activity"    // user
	Rebuilds        = "rebuilds"         // user
	Replays         = "replays"          // pin
	RelatedRequests = "related-requests" // pin
	BoardSaves      = "board-saves"      // board
	RelatedPairs    = "related-pairs"    // none, in the partition of the pins and interests that the record lists
	Deliveries      = "deliveries"       // followee, in the partition of the users that it delivers to
	Served          = "served"           // user
	FeedEntries     = "feed-entries"     // user
	Impressions     = "impressions"      // none, in the partition of the pins
	FeatureLog      = "feature-log"      // entity
	VisitLog        = "visit-log"        // user
	DeadLetters     = "dead-letters"     // source topic
	RetryOrders     = "retry-orders"     // source topic
	Generations     = "generations"      // group, compacted: the active generation and the one being built
	InterestMarks   = "interest-marks"   // none, in the partition of the terms, users and interests that the record lists

	InterestDecisions = "interest-decisions" // term, compacted
)

// Streams are all topics with a record type, bound to one registry. The zero value is not usable; see Open.
type Streams struct {
	Pins              Stream[schemas.PinEvent]
	Follows           Stream[schemas.FollowEvent]
	Actions           Stream[schemas.ActionEvent]
	Users             Stream[schemas.UserEvent]
	Candidates        Stream[schemas.Offer]
	ClientImpressions Stream[schemas.ClientImpressions]
	ImpressionReports Stream[schemas.ClientImpressions]

	Publications    Stream[schemas.Publication]
	PinCards        Stream[schemas.Card]
	PinAttributes   Stream[schemas.PinAttributes]
	PinActors       Stream[schemas.PinActor]
	ActionsJoined   Stream[schemas.EnrichedAction]
	ActionsEnriched Stream[schemas.EnrichedAction]
	ItemFeatures    Stream[schemas.ItemCounts]
	HotPins         Stream[schemas.HotPin]
	PopularPins     Stream[schemas.PopularPin]
	EdgeWeights     Stream[schemas.EdgeWeight]
	Affinities      Stream[schemas.Affinities]
	UsersDeleted    Stream[schemas.DeletedUser]
	Erasures        Stream[schemas.Erasure]
	Edges           Stream[schemas.Edge]
	FanoutLoop      Stream[schemas.Continuation]
	EdgeModes       Stream[schemas.EdgeMode]
	RecentsPulled   Stream[schemas.PulledPin]
	UserActivity    Stream[schemas.UserActivity]
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
	VisitLog        Stream[schemas.LoggedVisit]
	DeadLetters     Stream[schemas.DeadLetter]
	RetryOrders     Stream[schemas.RetryOrder]
	InterestMarks   Stream[schemas.InterestMarks]

	InterestDecisions Stream[schemas.InterestDecision]

	byTopic map[string]binding
}

// binding is a *Stream of any record type.
type binding interface {
	bind(ctx context.Context, r Registry, topic string) error
	record() string
	encodeAny(rec any) ([]byte, error)
}

// row is a topic with its stream, which is nil for topics without a record type.
type row struct {
	stream binding
	Topic
}

// list keeps the rows short.
type list = []string

// Personal data that several topics hold, see Topic.Personal. A row without it has derivedData.
const (
	noData      = "none"
	userEvents  = "the user's events"
	derivedData = "records made of them"
	shownData   = "shown pins"
	unreadData  = "records that could not be read"
)

// rows is the registry of the topics with records, in the order in which records flow. To add a topic, add its name and its
// stream above, and a row below. A topic that clients write is also in the registry of input streams, in package schemas.
// Unless a row says otherwise, records are kept for derivedRetention.
func (s *Streams) rows(p Profile) []row {
	return slices.Concat(s.inputs(p), s.ofPins(), s.ofUsers(), s.ofEdges(), s.ofVisits(p), s.ofOperations())
}

// inputs returns the topics that clients write.
func (s *Streams) inputs(p Profile) []row {
	return []row{
		{&s.Users, Topic{Name: Users, Key: "user", Retention: unlimited, Readers: list{Actors}, Personal: "profile and delete"}},
		{&s.Follows, Topic{Name: Follows, Key: "followee", Retention: unlimited, Readers: list{Fanout}, Personal: "follows and blocks"}},
		{&s.Pins, Topic{
			Name: Pins, Key: "pin", Retention: unlimited,
			Writers: list{Fanout}, Readers: list{Objects}, Personal: "the pins' events, deletes included",
		}},
		{&s.ClientImpressions, Topic{Name: ClientImpressions, Key: "user", Readers: list{Actors}, Personal: userEvents}},
		{&s.Actions, Topic{Name: Actions, Key: "pin", Retention: p.Actions, Writers: list{Actors}, Readers: list{Objects}, Personal: userEvents}},
		{&s.Candidates, Topic{Name: Candidates, Key: "user", Readers: list{Pools}, Personal: "pins offered to the user"}},
	}
}

// ofPins returns the topics about pins and the actions on them.
func (s *Streams) ofPins() []row {
	return []row{
		{&s.Publications, Topic{Name: Publications, Key: "followee", Writers: list{Objects}, Readers: list{Fanout, Materialize}}},
		{&s.PinCards, Topic{Name: PinCards, Key: "pin", Writers: list{Objects}, Readers: list{Materialize, Related, Interests}}},
		{&s.PinAttributes, Topic{Name: PinAttributes, Key: "pin", Writers: list{Objects}, Readers: list{Features}}},
		{&s.ActionsJoined, Topic{Name: ActionsJoined, Key: "actor", Writers: list{Objects}, Readers: list{Actors}}},
		{&s.ItemFeatures, Topic{
			Name: ItemFeatures, Key: "pin",
			Writers: list{Objects}, Readers: list{Features}, Personal: "anonymous shares in counts, sketches and means",
		}},
		{&s.HotPins, Topic{Name: HotPins, Key: "pin", GlobalTable: true, Writers: list{Objects}, Personal: "authors of frequently shown pins"}},
		{&s.PopularPins, Topic{
			Name: PopularPins, Key: "partition and slot", GlobalTable: true, Explicit: true,
			Writers: list{Objects}, Personal: "authors of popular pins",
		}},
	}
}

// ofUsers returns the topics about users and their actions.
func (s *Streams) ofUsers() []row {
	return []row{
		{&s.ActionsEnriched, Topic{Name: ActionsEnriched, Key: "actor", Writers: list{Actors}, Readers: list{Features, Insights}}},
		{&s.ImpressionReports, Topic{
			Name: ImpressionReports, Key: "user",
			Writers: list{Actors}, Readers: list{Pools}, Personal: "pins on the user's screen",
		}},
		{&s.PinActors, Topic{
			Name: PinActors, Key: "pin",
			Writers: list{Actors}, Readers: list{Objects}, Personal: "the user's embedding, without a name",
		}},
		{&s.EdgeWeights, Topic{Name: EdgeWeights, Key: "followee", Writers: list{Actors}, Readers: list{Fanout}}},
		{&s.Affinities, Topic{Name: Affinities, Key: "user", Writers: list{Actors}, Readers: list{Pools}}},
		{&s.UsersDeleted, Topic{
			Name: UsersDeleted, Key: "user", GlobalTable: true,
			Writers: list{Actors}, Readers: list{Materialize, Interests, Insights}, Personal: "deletion of the user",
		}},
		{&s.Erasures, Topic{
			Name: Erasures, Key: "user or followee",
			Writers: list{Actors, Fanout, Pools}, Readers: list{Fanout, Pools}, Personal: "requests to erase data of the user",
		}},
	}
}

// ofEdges returns the topics that connect users, followees and related pins.
func (s *Streams) ofEdges() []row {
	return []row{
		{&s.Edges, Topic{Name: Edges, Key: "user", Writers: list{Fanout}, Readers: list{Pools, Materialize}}},
		{&s.FanoutLoop, Topic{Name: FanoutLoop, Key: "followee", Writers: list{Fanout, Pools}, Readers: list{Fanout}}},
		{&s.BoardSaves, Topic{Name: BoardSaves, Key: "board", Writers: list{Actors}, Readers: list{Related}}},
		{&s.RelatedRequests, Topic{Name: RelatedRequests, Key: "pin", Writers: list{Actors}, Readers: list{Related, Interests}}},
		{&s.RelatedPairs, Topic{Name: RelatedPairs, Key: "none", Explicit: true, Writers: list{Related}, Readers: list{Related}}},
		{&s.Deliveries, Topic{Name: Deliveries, Key: "followee", Explicit: true, Writers: list{Fanout, Related}, Readers: list{Pools}}},
		{&s.EdgeModes, Topic{Name: EdgeModes, Key: "followee", Writers: list{Pools}, Readers: list{Fanout}}},
		{&s.RecentsPulled, Topic{Name: RecentsPulled, Key: "followee and slot", GlobalTable: true, Explicit: true, Writers: list{Fanout}}},
	}
}

// ofVisits returns the topics about visits and rebuilds of pools.
func (s *Streams) ofVisits(p Profile) []row {
	return []row{
		{&s.UserActivity, Topic{Name: UserActivity, Key: "user", Writers: list{Serving}, Readers: list{Pools}, Personal: "visits"}},
		{&s.Rebuilds, Topic{
			Name: Rebuilds, Key: "user",
			Writers: list{Operators, Pools}, Readers: list{Pools}, Personal: "requests to rebuild pools of the user",
		}},
		{&s.Replays, Topic{Name: Replays, Key: "pin", Writers: list{Operators}, Readers: list{Objects}, Personal: "the pins' events, again"}},
		{&s.Served, Topic{Name: Served, Key: "user", Writers: list{Serving}, Readers: list{Pools, Insights}, Personal: shownData}},
		{&s.FeedEntries, Topic{Name: FeedEntries, Key: "user", Writers: list{Pools}, Readers: list{Materialize}, Personal: shownData}},
		{&s.Impressions, Topic{
			Name: Impressions, Key: "none", Explicit: true,
			Writers: list{Pools}, Readers: list{Objects, Interests}, Personal: shownData,
		}},
		{&s.FeatureLog, Topic{
			Name: FeatureLog, Key: "entity",
			Writers: list{Serving}, Readers: list{FeatureFiles}, Personal: "answered features",
		}},
		{&s.VisitLog, Topic{
			Name: VisitLog, Key: "user", Retention: p.VisitLog,
			Writers: list{Pools}, Personal: "shown pins and the features of a model",
		}},
	}
}

// ofOperations returns the topics of generations, dead letters, interests and retries.
func (s *Streams) ofOperations() []row {
	return []row{
		{nil, Topic{Name: Generations, Key: "group", Compact: true, Writers: list{Operators}, Personal: noData}},
		{&s.DeadLetters, Topic{
			Name: DeadLetters, Key: "topic",
			Writers: append(RowGroups(), Materialize, Features, FeatureFiles), Readers: list{Retries}, Personal: unreadData,
		}},
		{&s.InterestMarks, Topic{Name: InterestMarks, Key: "none", Explicit: true, Writers: list{Interests}, Readers: list{Interests}}},
		{&s.InterestDecisions, Topic{Name: InterestDecisions, Key: "term", GlobalTable: true, Writers: list{Serving}, Personal: noData}},
		{&s.RetryOrders, Topic{Name: RetryOrders, Key: "topic", Writers: list{Serving}, Readers: list{Retries}, Personal: unreadData}},
	}
}
