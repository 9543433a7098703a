package topics

import (
	"cmp"
	"slices"
	"time"

	"github.com/smartfeed/smartfeed/internal/convert"
	"github.com/smartfeed/smartfeed/schemas"
)

// Names of the consumers: the groups that keep rows, and the sinks.
const (
	Objects      = "objects"
	Actors       = "actors"
	Fanout       = "fanout"
	Related      = "related" // related pins and interests
	Pools        = "pools"
	Retries      = "retries"     // retries dead letters
	Interests    = "interests"   // terms, and the interests of users and pins
	Insights     = "insights"    // growth, retention, funnels, experiments, popularity
	Materialize  = "materialize" // one group per feed store, see MaterializeGroup
	Features     = "features"
	FeatureFiles = "feature-files" // the training log
)

// Producers is the writer of the input topics: any Kafka client.
const Producers = "producers"

// Serving is the feed service as a writer of topics.
const Serving = "serving"

// Operators is the person or program that runs commands, as a writer of topics.
const Operators = "operators"

// Default numbers of partitions of co-partitioned topics.
const (
	EmbeddedPartitions = 4
	RealPartitions     = 8
)

// TableOf returns the changelog topic of a group's rows.
func TableOf(group string) string { return group + "-table" }

// TicksOf returns the topic that triggers a group's timers.
func TicksOf(group string) string { return group + "-ticks" }

// RowGroups returns the groups that keep rows.
func RowGroups() []string {
	return []string{Objects, Actors, Fanout, Related, Pools, Interests, Insights, Retries}
}

// instanceReaders returns the sinks that fill a store local to the process. Each process has its own consumer group, see
// InstanceGroup, and reads every partition. Retries and dead letters name the reader and apply to all of its processes.
func instanceReaders() []string { return []string{Features} }

// InstanceGroup returns the consumer group of one process of a reader. instance must be unique among the running processes.
func InstanceGroup(reader, instance string) string { return instancePrefix(reader) + instance }

func instancePrefix(reader string) string { return reader + "-" }

// Topic is the desired state of one topic.
type Topic struct {
	Name        string
	Key         string        // the meaning of the record key
	Record      string        // Go type of the value in package schemas; "" for bytes private to one group
	Input       bool          // clients may write it
	Partitions  int32         // the same for all topics of groups with rows
	Replicas    int16         // per partition
	InSync      int16         // replicas that must have a record before it is acknowledged
	Compact     bool          // keep only the newest record of each key; otherwise keep all records for Retention
	Retention   time.Duration // 0: unlimited
	AppendTime  bool          // records carry the broker's time instead of the producer's
	Personal    string        // personal data in its records; "": none
	Writers     []string
	Readers     []string // consumers that commit offsets
	Explicit    bool     // the writer chooses the partition; otherwise the key does
	GlobalTable bool     // global table: every process holds a full copy, under its own consumer group; it is compacted
	Embedded    bool     // on the embedded broker: no log cleaner, which is not safe there, and the producer's time
}

// Profile holds the values of the catalogue that depend on the installation.
type Profile struct {
	Partitions int32 // of co-partitioned topics; 0: 4 embedded, 8 otherwise
	Replicas   int16 // 0: 1 embedded, 3 otherwise
	Embedded   bool
	Actions    time.Duration // retention of the topic actions; 0: 7 days
	VisitLog   time.Duration // retention of the topic visit-log; 0: 30 days
}

// withDefaults returns p with its zero fields set to the defaults.
func (p Profile) withDefaults() Profile {
	partitions, replicas := int32(RealPartitions), int16(3)
	if p.Embedded {
		partitions, replicas = EmbeddedPartitions, 1
	}
	p.Partitions, p.Replicas = cmp.Or(p.Partitions, partitions), cmp.Or(p.Replicas, replicas)
	p.Actions, p.VisitLog = cmp.Or(p.Actions, derivedRetention), cmp.Or(p.VisitLog, visitLogRetention)
	return p
}

const (
	unlimited time.Duration = -1 // in a row: keep all records
	// derivedRetention applies to records that no reader needs after it has applied them. A group can be stopped for
	// this long without needing a rebuild.
	derivedRetention = 7 * 24 * time.Hour
	// DeletionsKept is the minimum time that a compacted topic keeps a tombstone. A reader that resumes after a longer
	// pause may miss deletions.
	DeletionsKept = derivedRetention
	// visitLogRetention covers the windows of the labels that training joins to a visit.
	visitLogRetention = 30 * 24 * time.Hour
	// tickRetention applies to ticks, which only trigger the timers of running groups.
	tickRetention = 24 * time.Hour
)

// Catalogue returns every topic and changelog, in the order in which records flow. Pins, follows and users are kept
// forever. Changelogs, global tables and the topic generations are compacted. Actions are kept for p.Actions,
// logged visits for p.VisitLog, ticks for 24 hours, and everything else for a week.
func Catalogue(p Profile) []Topic {
	p = p.withDefaults()
	all := convert.All(new(Streams).rows(p), row.complete)
	for _, group := range RowGroups() {
		all = append(all, groupTopics(group)...)
	}
	applyProfile(all, p)
	return all
}

// complete returns the topic of a row with the fields that follow from others.
func (r row) complete() Topic {
	t := r.Topic
	if r.stream != nil {
		t.Record = r.stream.record()
	}
	if t.Input = schemas.NewInput(t.Name) != nil; t.Input {
		t.Writers = append([]string{Producers}, t.Writers...)
	}
	if t.Personal = cmp.Or(t.Personal, derivedData); t.Personal == noData {
		t.Personal = ""
	}
	t.Compact = t.Compact || t.GlobalTable
	switch {
	case t.Compact || t.Retention == unlimited:
		t.Retention = 0
	case t.Retention == 0:
		t.Retention = derivedRetention
	}
	return t
}

// applyProfile sets the fields that depend on the profile.
func applyProfile(list []Topic, p Profile) {
	for i := range list {
		t := &list[i]
		t.Partitions, t.Replicas = p.Partitions, p.Replicas
		t.InSync = max(1, p.Replicas-1) // one broker may be unavailable
		t.AppendTime = !p.Embedded
		t.Embedded = p.Embedded
	}
}

func groupTopics(group string) []Topic {
	self := []string{group}
	return []Topic{
		{Name: TableOf(group), Key: "owner and row", Compact: true, Writers: self},
		{Name: TicksOf(group), Key: "none", Explicit: true, Retention: tickRetention, Writers: self, Readers: self},
	}
}

// Names returns the names of topics.
func Names(list []Topic) []string {
	return convert.All(list, func(t Topic) string { return t.Name })
}

// ReadBy returns the topics on which a consumer commits offsets, in the order of the catalogue.
func ReadBy(group string) []string {
	var names []string
	for _, t := range Catalogue(Profile{}) {
		if slices.Contains(t.Readers, group) {
			names = append(names, t.Name)
		}
	}
	return names
}

// MaterializeGroup returns the consumer group that fills a feed store. The name of the first store is "", and its group is
// Materialize; each further store has a separate group.
func MaterializeGroup(store string) string {
	if store == "" {
		return Materialize
	}
	return Materialize + "-" + store
}
