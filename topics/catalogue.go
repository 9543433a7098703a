package topics

import (
	"slices"
	"time"
)

// Names of the topics, each with the key of its records.
const (
	Pins       = "pins"       // pin
	Follows    = "follows"    // followee
	Actions    = "actions"    // pin
	Users      = "users"      // user
	Candidates = "candidates" // user

	Publications    = "publications"     // followee
	PinCards        = "pin-cards"        // pin
	PinAttributes   = "pin-attributes"   // pin
	PinActors       = "pin-actors"       // pin
	ActionsJoined   = "actions-joined"   // actor
	ActionsEnriched = "actions-enriched" // actor
	ItemFeatures    = "item-features"    // pin
	HotPins         = "hot-pins"         // pin, compacted
	EdgeWeights     = "edge-weights"     // followee
	Affinities      = "affinities"       // user
	UsersDeleted    = "users-deleted"    // user, compacted
	Erasures        = "erasures"         // user, followee or a shard of it
	Edges           = "edges"            // user
	FanoutLoop      = "fanout-loop"      // followee, or a shard of it
	EdgeModes       = "edge-modes"       // followee
	RecentsPulled   = "recents-pulled"   // followee and slot, compacted
	Returns         = "returns"          // user
	Rebuilds        = "rebuilds"         // user
	Replays         = "replays"          // pin
	RelatedRequests = "related-requests" // pin
	BoardSaves      = "board-saves"      // board
	RelatedPairs    = "related-pairs"    // a partition's
	Deliveries      = "deliveries"       // followee, in the partition of the users it brings something to
	Served          = "served"           // user
	FeedEntries     = "feed-entries"     // user
	Impressions     = "impressions"      // none, in the partition of the pins
	FeatureLog      = "feature-log"      // entity
	DeadLetters     = "dead-letters"     // source topic
	RetryOrders     = "retry-orders"     // source topic
	Generations     = "generations"      // group, compacted: which generations of it there are
	InterestMarks   = "interest-marks"   // a partition's

	InterestDecisions = "interest-decisions" // term, compacted
)

// Names of the consumers: the groups with rows, and the sinks.
const (
	Objects      = "objects"
	Actors       = "actors"
	Fanout       = "fanout"
	Related      = "related" // pins and interests that go together
	Pools        = "pools"
	Retries      = "retries"     // dead letters that are tried again
	Interests    = "interests"   // terms, and who and what goes with interests
	Materialize  = "materialize" // once a feed store
	Features     = "features"
	FeatureFiles = "feature-files" // the training log's
	Insights     = "insights"
)

// Producers is who writes the input topics: any Kafka client.
const Producers = "producers"

// Serving is the feed service as a writer of topics.
const Serving = "serving"

// Operators is who runs commands, as a writer of topics.
const Operators = "operators"

// Default numbers of partitions of co-partitioned topics.
const (
	EmbeddedPartitions = 4
	RealPartitions     = 8
)

// TableOf returns the changelog topic of a group's rows.
func TableOf(group string) string { return group + "-table" }

// TicksOf returns the topic that wakes a group's timers.
func TicksOf(group string) string { return group + "-ticks" }

// RowGroups returns the groups that keep rows.
func RowGroups() []string {
	return []string{Objects, Actors, Fanout, Related, Pools, Interests, Retries}
}

// instanceReaders returns the sinks that fill a store of the process's own: each process is a consumer group by itself,
// see InstanceGroup, and reads everything. Retries and dead letters name the reader, and are of all of its processes.
func instanceReaders() []string { return []string{Features, Insights} }

// InstanceGroup returns the consumer group of a process, whose name among those that run is instance, as a reader.
func InstanceGroup(reader, instance string) string { return instancePrefix(reader) + instance }

func instancePrefix(reader string) string { return reader + "-" }

// Topic is one topic as it should be.
type Topic struct {
	Name       string
	Key        string        // what the record key is
	Record     string        // Go type of the value in package schemas; "" for bytes private to one group
	Partitions int32         // all topics of groups with rows have the same number
	Replicas   int16         // of each partition
	InSync     int16         // replicas that must have a record before it is acknowledged
	Compact    bool          // only the newest record of a key is kept; else all records of the last Retention
	Retention  time.Duration // 0: for ever
	AppendTime bool          // records carry the broker's clock instead of the producer's
	Writers    []string
	Readers    []string // consumers that commit offsets
	Explicit   bool     // the writer chooses the partition; else it is that of the key
	Whole      bool     // every process holds all of it, under a consumer group of its own
	Embedded   bool     // on the embedded broker: no clean-up, which is not safe there, and the producer's clock
}

// Profile is what of the catalogue depends on the installation.
type Profile struct {
	Partitions int32 // of co-partitioned topics; 0: 4 embedded, 8 real
	Replicas   int16 // 0: 1 embedded, 3 real
	Embedded   bool
	Actions    time.Duration // how long the topic actions is kept; 0: 7 days
}

// withDefaults fills in the zero fields.
func (p Profile) withDefaults() Profile {
	partitions, replicas := int32(RealPartitions), int16(3)
	if p.Embedded {
		partitions, replicas = EmbeddedPartitions, 1
	}
	if p.Partitions == 0 {
		p.Partitions = partitions
	}
	if p.Replicas == 0 {
		p.Replicas = replicas
	}
	if p.Actions == 0 {
		p.Actions = derivedRetention
	}
	return p
}

const (
	forever time.Duration = 0
	// derivedRetention is for records that are of no use once every reader has applied them: the longest stop of a
	// group that is survived without a rebuild.
	derivedRetention = 7 * 24 * time.Hour
	// DeletionsKept is how long a compacted topic says at least that a key was deleted: who has read it up to some moment
	// and goes on there later than this may miss deletions.
	DeletionsKept = derivedRetention
	// tickRetention is for ticks, which only wake whoever is awake.
	tickRetention = 24 * time.Hour
)

// Catalogue returns every topic and table, in the order in which records flow. Pins, follows and users are kept for
// ever; the topics of one group's rows are compacted; everything else is kept for a week.
func Catalogue(p Profile) []Topic {
	p = p.withDefaults()
	all := append(inputs(p), derived()...)
	for _, group := range RowGroups() {
		all = append(all, groupTopics(group)...)
	}
	settle(all, p)
	return all
}

// settle gives topics what they have of the profile.
func settle(list []Topic, p Profile) {
	for i := range list {
		t := &list[i]
		t.Partitions, t.Replicas = p.Partitions, p.Replicas
		t.InSync = max(1, p.Replicas-1) // one broker may be away
		t.AppendTime = !p.Embedded
		t.Embedded = p.Embedded
	}
}

func inputs(p Profile) []Topic {
	from, offers := []string{Producers}, []string{Producers}
	return []Topic{
		{Name: Users, Key: "user", Record: "UserEvent", Retention: forever, Writers: from, Readers: []string{Actors}},
		{Name: Follows, Key: "followee", Record: "FollowEvent", Retention: forever, Writers: from, Readers: []string{Fanout}},
		{Name: Pins, Key: "pin", Record: "PinEvent", Retention: forever, Writers: []string{Producers, Fanout}, Readers: []string{Objects}},
		{Name: Actions, Key: "pin", Record: "ActionEvent", Retention: p.Actions, Writers: from, Readers: []string{Objects}},
		{Name: Candidates, Key: "user", Record: "Offer", Retention: derivedRetention, Writers: offers, Readers: []string{Pools}},
	}
}

func derived() []Topic {
	list := []Topic{
		{Name: Publications, Key: "followee", Record: "Publication", Writers: []string{Objects}, Readers: []string{Fanout, Materialize}},
		{Name: PinCards, Key: "pin", Record: "Card", Writers: []string{Objects}, Readers: []string{Materialize, Features, Related, Interests}},
		{Name: PinAttributes, Key: "pin", Record: "PinAttributes", Writers: []string{Objects}, Readers: []string{Features}},
		{Name: ActionsJoined, Key: "actor", Record: "EnrichedAction", Writers: []string{Objects}, Readers: []string{Actors}},
		{Name: ItemFeatures, Key: "pin", Record: "ItemCounts", Writers: []string{Objects}, Readers: []string{Features}},
		{Name: HotPins, Key: "pin", Record: "HotPin", Compact: true, Whole: true, Writers: []string{Objects}},
		{Name: ActionsEnriched, Key: "actor", Record: "EnrichedAction", Writers: []string{Actors}, Readers: []string{Features, Insights}},
		{Name: PinActors, Key: "pin", Record: "PinActor", Writers: []string{Actors}, Readers: []string{Objects}},
		{Name: EdgeWeights, Key: "followee", Record: "EdgeWeight", Writers: []string{Actors}, Readers: []string{Fanout}},
		{Name: Affinities, Key: "user", Record: "Affinities", Writers: []string{Actors}, Readers: []string{Pools}},
		{Name: UsersDeleted, Key: "user", Record: "DeletedUser", Compact: true, Whole: true, Writers: []string{Actors}, Readers: []string{Materialize, Interests}},
		{Name: Erasures, Key: "user, followee or shard", Record: "Erasure", Writers: []string{Actors, Fanout, Pools}, Readers: []string{Fanout, Pools}},
		{Name: Edges, Key: "user", Record: "Edge", Writers: []string{Fanout}, Readers: []string{Pools, Materialize}},
		{Name: FanoutLoop, Key: "followee or shard", Record: "FanoutStep", Writers: []string{Fanout, Pools}, Readers: []string{Fanout}},
		{Name: BoardSaves, Key: "board", Record: "BoardSave", Writers: []string{Actors}, Readers: []string{Related}},
		{Name: RelatedRequests, Key: "pin", Record: "RelatedRequest", Writers: []string{Actors}, Readers: []string{Related, Interests}},
		{Name: RelatedPairs, Key: "none", Record: "RelatedPairs", Explicit: true, Writers: []string{Related}, Readers: []string{Related}},
		{Name: Deliveries, Key: "followee", Record: "Delivery", Explicit: true, Writers: []string{Fanout, Related}, Readers: []string{Pools}},
		{Name: EdgeModes, Key: "followee", Record: "EdgeMode", Writers: []string{Pools}, Readers: []string{Fanout}},
		{Name: RecentsPulled, Key: "followee and slot", Record: "PulledPin", Compact: true, Whole: true, Explicit: true, Writers: []string{Fanout}},
		{Name: Returns, Key: "user", Record: "Return", Writers: []string{Serving}, Readers: []string{Pools}},
		{Name: Rebuilds, Key: "user", Record: "Rebuild", Writers: []string{Operators, Pools}, Readers: []string{Pools}},
		{Name: Replays, Key: "pin", Record: "Replay", Writers: []string{Operators}, Readers: []string{Objects}},
		{Name: Served, Key: "user", Record: "Served", Writers: []string{Serving}, Readers: []string{Pools}},
		{Name: FeedEntries, Key: "user", Record: "FeedEntries", Writers: []string{Pools}, Readers: []string{Materialize}},
		{Name: Impressions, Key: "none", Record: "Impressions", Explicit: true, Writers: []string{Pools}, Readers: []string{Objects, Interests}},
		{Name: FeatureLog, Key: "entity", Record: "LoggedFeatures", Writers: []string{Serving}, Readers: []string{FeatureFiles}},
		{Name: Generations, Key: "group", Compact: true, Writers: []string{Operators}},
		{Name: DeadLetters, Key: "topic", Record: "DeadLetter", Writers: append(RowGroups(), Materialize, Features, FeatureFiles), Readers: []string{Retries}},
		{Name: InterestMarks, Key: "none", Record: "InterestMarks", Explicit: true, Writers: []string{Interests}, Readers: []string{Interests}},
		{Name: InterestDecisions, Key: "term", Record: "InterestDecision", Compact: true, Whole: true, Writers: []string{Serving}},
		{Name: RetryOrders, Key: "topic", Record: "RetryOrder", Writers: []string{Serving}, Readers: []string{Retries}},
	}
	for i := range list {
		if !list[i].Compact {
			list[i].Retention = derivedRetention
		}
	}
	return list
}

func groupTopics(group string) []Topic {
	self := []string{group}
	return []Topic{
		{Name: TableOf(group), Key: "owner and row", Compact: true, Writers: self},
		{Name: TicksOf(group), Key: "none", Explicit: true, Retention: tickRetention, Writers: self, Readers: self},
	}
}

// consumers returns who commits offsets on the topics of a catalogue, in the order in which records reach them.
func consumers(catalogue []Topic) []string {
	var names []string
	for _, t := range catalogue {
		for _, r := range t.Readers {
			if !slices.Contains(names, r) {
				names = append(names, r)
			}
		}
	}
	return names
}

// ReadBy returns the topics on which a consumer of the catalogue commits offsets, in the catalogue's order.
func ReadBy(group string) []string {
	var names []string
	for _, t := range Catalogue(Profile{}) {
		if slices.Contains(t.Readers, group) {
			names = append(names, t.Name)
		}
	}
	return names
}

// MaterializeGroup is the group that fills a feed store, each store having one of its own. The name of the first store is "",
// and its group Materialize.
func MaterializeGroup(store string) string {
	if store == "" {
		return Materialize
	}
	return Materialize + "-" + store
}
