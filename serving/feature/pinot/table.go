package pinot

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/smartfeed/smartfeed/internal/secure"
	"github.com/smartfeed/smartfeed/schemas"
	"github.com/smartfeed/smartfeed/serving/feature"
	"github.com/smartfeed/smartfeed/topics"
)

// Release is a line of Pinot releases that want one form of table.
type Release string

// The releases that the table is made for. Newer ones than V1 take its form, until one does not.
const (
	V0 Release = "0.11" // 0.11 and later releases before 1.0
	V1 Release = "1.5"  // 1.0 and later
)

// releaseOf returns the release of a version as a controller tells it, "0.11.0-…".
func releaseOf(version string) Release {
	if strings.HasPrefix(version, "0.") {
		return V0
	}
	return V1
}

// Stream is where Pinot's servers find the topic.
type Stream struct {
	Brokers    []string // of Kafka
	Registry   string   // URL of the Confluent-compatible API
	Partitions int32
	Replicas   int // of each segment
	// More is added to the stream configuration, see Config.Stream.
	More map[string]secure.Secret
}

// flushAfter is when a segment that takes rows is closed at the latest. Only closed ones are deleted, each as a whole.
const flushAfter = 2 * time.Hour

// What Pinot's controller does if its configuration says nothing else.
const (
	RetentionEvery = 6 * time.Hour      // controller.retention.frequencyPeriod: how often it looks for what has expired
	DeletedKept    = 7 * 24 * time.Hour // controller.deleted.segments.retentionInDays: a deleted segment's file stays for it
)

// KeptUntil returns when the last file with an action that has arrived by a moment is deleted at the latest, by a controller
// with these defaults. A segment is deleted when the newest of its actions has expired, which may have come when it was closed;
// its file stays a while longer.
func KeptUntil(arrived time.Time) time.Time {
	expired := arrived.Add(flushAfter + schemas.MaxAhead + feature.Kept)
	return expired.Add(RetentionEvery + DeletedKept + RetentionEvery)
}

// object is a JSON object; encoding writes its keys in order, so that the same table is always the same bytes.
type object = map[string]any

// Schema returns the schema, indented.
func Schema() ([]byte, error) {
	var dimensions []object
	for _, c := range columns() {
		if c.name == timeColumn {
			continue
		}
		d := object{"name": c.name, "dataType": c.kind}
		switch {
		case c.list:
			d["singleValueField"] = false
			if c.kind == "STRING" {
				d["defaultNullValue"] = "" // an empty list; no interest is named so
			}
		default:
			d["defaultNullValue"] = ""
		}
		if c.kind == "JSON" {
			d["defaultNullValue"] = "{}"
		}
		if c.kind != "FLOAT" {
			d["maxLength"] = maxTextBytes
		}
		dimensions = append(dimensions, d)
	}
	return indented(object{
		"schemaName":          TableName,
		"primaryKeyColumns":   []string{idColumn}, // what is taken once
		"dimensionFieldSpecs": dimensions,
		"dateTimeFieldSpecs": []object{{
			"name": timeColumn, "dataType": "LONG", "format": "1:MILLISECONDS:EPOCH", "granularity": "1:MILLISECONDS",
		}},
	})
}

// maxTextBytes is above what a record can hold: longer texts would be cut in silence, and a cut JSON object is none.
const maxTextBytes = 1 << 20

// Table returns the configuration of the table for a release, indented. Each index has a reason:
//
//	sorted, partitioned by actor   a query is of one actor: one partition's segments, in them one run of rows
//	inverted verb                  most features are of a few verbs
//	range ts                       windows
//	no dictionary id, maps         nothing repeats in them
func Table(r Release, s Stream) ([]byte, error) {
	transforms := []object{}
	for _, c := range columns() {
		if c.from != "" {
			transforms = append(transforms, object{"columnName": c.name, "transformFunction": c.from})
		}
	}
	segments := object{
		"timeColumnName":     timeColumn,
		"retentionTimeUnit":  "HOURS",
		"retentionTimeValue": fmt.Sprint(int(feature.Kept.Hours())),
		"replication":        fmt.Sprint(s.Replicas),
	}
	index := object{
		"loadMode":             "MMAP",
		"sortedColumn":         []string{actorColumn},
		"invertedIndexColumns": []string{"verb"},
		"rangeIndexColumns":    []string{timeColumn},
		"noDictionaryColumns":  []string{idColumn, "objectAttributesMap", "actorAttributesMap", "verbAttributesMap"},
		"segmentPartitionConfig": object{"columnPartitionMap": object{
			actorColumn: object{"functionName": "Murmur", "numPartitions": s.Partitions}, // as topics.Partition
		}},
	}
	ingestion := object{"transformConfigs": transforms}
	dedup := object{"dedupEnabled": true, "hashFunction": "MURMUR3"}
	switch r {
	case V0:
		segments["schemaName"], segments["replicasPerPartition"] = TableName, fmt.Sprint(s.Replicas)
		index["streamConfigs"] = streamOf(s, "kafka20", object{"stream.kafka.consumer.type": "lowlevel"})
	case V1:
		ingestion["continueOnError"] = true // a record that cannot be read is skipped, as V0 does, and not tried for ever
		ingestion["streamIngestionConfig"] = object{"streamConfigMaps": []object{streamOf(s, "kafka30", rawTimes())}}
		dedup["metadataTTL"], dedup["dedupTimeColumn"] = feature.Kept.Milliseconds(), timeColumn // else every id is held for ever
	default:
		return nil, fmt.Errorf("table for pinot %s: not known", r)
	}
	return indented(object{
		"tableName": TableName, "tableType": "REALTIME", "tenants": object{}, "metadata": object{},
		"segmentsConfig": segments, "tableIndexConfig": index, "ingestionConfig": ingestion, "dedupConfig": dedup,
		"routing": object{
			"segmentPrunerTypes":   []string{"partition"},
			"instanceSelectorType": "strictReplicaGroup", // one server has a whole partition: dedup needs it
		},
	})
}

// rawTimes has the decoder leave times as the numbers that they are in the record: the transform of ts divides microseconds.
// Releases after 1.5 make a java.sql.Timestamp of each unless the first says otherwise (apache/pinot 18400), 1.x before them
// where the second asks for it; a decoder passes by the one that it does not know.
func rawTimes() object {
	const prop = "stream.kafka.decoder.prop."
	return object{prop + "extractRawTimeValues": "true", prop + "enableLogicalTypes": "false"}
}

// streamOf says how the topic is consumed.
func streamOf(s Stream, plugin string, more object) object {
	const kafka, flush = "stream.kafka.", "realtime.segment.flush.threshold."
	m := object{
		"streamType":                                    "kafka",
		kafka + "topic.name":                            topics.ActionsEnriched,
		kafka + "broker.list":                           strings.Join(s.Brokers, ","),
		kafka + "consumer.factory.class.name":           "org.apache.pinot.plugin.stream." + plugin + ".KafkaConsumerFactory",
		kafka + "consumer.prop.auto.offset.reset":       "smallest",       // else a new table begins at the end
		kafka + "isolation.level":                       "read_committed", // what was aborted never happened
		kafka + "decoder.class.name":                    "org.apache.pinot.plugin.inputformat.avro.confluent.KafkaConfluentSchemaRegistryAvroMessageDecoder",
		kafka + "decoder.prop.schema.registry.rest.url": s.Registry,
		flush + "rows":                                  "0", // by size and time
		flush + "time":                                  fmt.Sprintf("%.0fh", flushAfter.Hours()),
		flush + "segment.size":                          "150M",
	}
	for k, v := range more {
		m[k] = v
	}
	for k, v := range s.More {
		m[k] = v.Reveal()
	}
	return m
}

func indented(o object) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(o); err != nil {
		return nil, fmt.Errorf("write table: %w", err)
	}
	return b.Bytes(), nil
}
