package pinot

import (
	"bytes"
	"embed"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/smartfeed/smartfeed/schemas"
	"github.com/smartfeed/smartfeed/serving/feature"
)

// Release is a line of Pinot releases with the same form of table.
type Release string

// The releases that the tables support. Releases after V1 use the form of V1.
const (
	V0 Release = "0.11" // 0.11 and later releases before 1.0
	V1 Release = "1.5"  // 1.0 and later
)

// releaseOf returns the release for a version as reported by a controller, "0.11.0-…".
func releaseOf(version string) Release {
	if strings.HasPrefix(version, "0.") {
		return V0
	}
	return V1
}

// The tables. The folder tables has the schema of each, and the configuration for each release. In the configuration,
// "{brokers}", "{registry}", "{partitions}", "{replicas}" and "{sequence_hours}" stand for the values of a Setup.
//
// All tables are partitioned by the key of their topic, and queries name keys, so they read the segments of these partitions.
// Each index has a reason:
//
//	actions_enriched   sorted actor: one run of rows in each segment; inverted verb: most features read a few verbs; range
//	                   ts: windows; no dictionary id, maps: their values do not repeat
//	sequences          sorted actor, range ts: as above. It has no primary key, because each action has a number: a primary key
//	                   per action would stay in the heap for months
//	others             inverted pin: a query reads some hundred pins. They are not sorted by pin, because the order of the
//	                   rows in a segment decides between equal comparison values.
//
// A primary key needs all rows of a partition on one server: strictReplicaGroup. The first action with an id remains. Of the
// versions of a pin, the highest remains. Of the counts of a step, and of the means of a pin's actors, the later record
// remains: their comparison column is a part of the key, and so always equal.
//
// On 1.x, metadataTTL limits the ids of actions in the heap: two hours longer than the windows, because it counts from the newest
// action, which can be ahead of the clock.
//
// On 1.x, stream properties make the decoder return times as the numbers in the record, because the transform of ts divides
// microseconds. Releases after 1.5 convert them to java.sql.Timestamp unless extractRawTimeValues is set (apache/pinot 18400),
// and earlier ones if enableLogicalTypes is true. A decoder ignores the property that it does not know. continueOnError
// skips a record that cannot be read, as 0.11 does, instead of retrying it forever.
const (
	TableName   = "actions_enriched" // the actions of the last 96 hours
	PinsTable   = "pins"             // the newest version of each pin
	CountsTable = "pin_counts"       // the counts of each pin and step
	MeansTable  = "pin_actors"       // the mean of the recent actors of each pin
	// SequencesTable has the actions of feature.Config.SequenceRetention. Sequences read the last ones of a user.
	SequencesTable = "sequences"
)

// Tables returns the names of the tables.
func Tables() []string {
	return []string{TableName, PinsTable, CountsTable, MeansTable, SequencesTable}
}

//go:embed tables
var files embed.FS

// flushAfter is the maximum age at which a consuming segment is closed, as in the tables. Only closed segments are deleted.
const flushAfter = 2 * time.Hour

// Defaults of Pinot's controller.
const (
	RetentionEvery = 6 * time.Hour      // controller.retention.frequencyPeriod: interval between checks for expired segments
	DeletedKept    = 7 * 24 * time.Hour // controller.deleted.segments.retentionInDays: how long the file of a deleted segment remains
)

// KeptUntil returns the latest time at which the last file with an action that arrived at the given time is deleted, by
// a controller with these defaults. sequences is the retention of SequencesTable. A segment is deleted when its newest action has expired, which may have arrived
// when the segment was closed. Its file remains for DeletedKept.
func KeptUntil(arrived time.Time, sequences time.Duration) time.Time {
	expired := arrived.Add(flushAfter + schemas.MaxAhead + max(feature.Kept, sequences))
	return expired.Add(RetentionEvery + DeletedKept + RetentionEvery)
}

// object is a JSON object. It is encoded with sorted keys, so the same table always has the same bytes.
type object = map[string]any

func indented(o any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(o); err != nil {
		return nil, fmt.Errorf("write table: %w", err)
	}
	return b.Bytes(), nil
}
