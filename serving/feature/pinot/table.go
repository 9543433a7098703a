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

// Release is a line of Pinot releases with the same form of table.
type Release string

// The releases that the table supports. Releases after V1 use the form of V1.
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

// Stream says how Pinot's servers reach the topic.
type Stream struct {
	Brokers    []string // of Kafka
	Registry   string   // URL of the Confluent-compatible API
	Partitions int32
	Replicas   int // of each segment
	// More is added to the stream configuration; see Config.StreamConfig.
	More map[string]secure.Secret
}

// flushAfter is the maximum age at which a consuming segment is closed. Only closed segments are
// deleted.
const flushAfter = 2 * time.Hour

// Defaults of Pinot's controller.
const (
	RetentionEvery = 6 * time.Hour      // controller.retention.frequencyPeriod: interval between checks for expired segments
	DeletedKept    = 7 * 24 * time.Hour // controller.deleted.segments.retentionInDays: how long the file of a deleted segment remains
)

// KeptUntil returns the latest time at which the last file with an action that arrived at the given time is deleted, by
// a controller with these defaults. A segment is deleted when its newest action has expired, which may have arrived
// when the segment was closed. Its file remains for DeletedKept.
func KeptUntil(arrived time.Time) time.Time {
	expired := arrived.Add(flushAfter + schemas.MaxAhead + feature.Kept)
	return expired.Add(RetentionEvery + DeletedKept + RetentionEvery)
}

// object is a JSON object. It is encoded with sorted keys, so the same table always has the same bytes.
type object = map[string]any

// Schema returns the schema as indented JSON.
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
				d["defaultNullValue"] = "" // an empty list; no interest has this name
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
		"primaryKeyColumns":   []string{idColumn}, // the key of the deduplication
		"dimensionFieldSpecs": dimensions,
		"dateTimeFieldSpecs": []object{{
			"name": timeColumn, "dataType": "LONG", "format": "1:MILLISECONDS:EPOCH", "granularity": "1:MILLISECONDS",
		}},
	})
}

// maxTextBytes is more than a record can hold. Pinot silently truncates longer texts, and a truncated JSON object is
// invalid.
const maxTextBytes = 1 << 20

// Table returns the configuration of the table for a release as indented JSON. Each index has a reason:
//
//	sorted, partitioned by actor   a query reads one actor: segments of one partition, and one run of rows in each
//	inverted verb                  most features read a few verbs
//	range ts                       windows
//	no dictionary id, maps         their values do not repeat
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
			actorColumn: object{"functionName": "Murmur", "numPartitions": s.Partitions}, // the same as topics.Partition
		}},
	}
	ingestion := object{"transformConfigs": transforms}
	dedup := object{"dedupEnabled": true, "hashFunction": "MURMUR3"}
	switch r {
	case V0:
		segments["schemaName"], segments["replicasPerPartition"] = TableName, fmt.Sprint(s.Replicas)
		index["streamConfigs"] = streamOf(s, "kafka20", object{"stream.kafka.consumer.type": "lowlevel"})
	case V1:
		ingestion["continueOnError"] = true // skip a record that cannot be read, as V0 does, instead of retrying it forever
		ingestion["streamIngestionConfig"] = object{"streamConfigMaps": []object{streamOf(s, "kafka30", rawTimes())}}
		dedup["metadataTTL"], dedup["dedupTimeColumn"] = feature.Kept.Milliseconds(), timeColumn // otherwise ids are kept forever
	default:
		return nil, fmt.Errorf("table for pinot %s: unknown release", r)
	}
	return indented(object{
		"tableName": TableName, "tableType": "REALTIME", "tenants": object{}, "metadata": object{},
		"segmentsConfig": segments, "tableIndexConfig": index, "ingestionConfig": ingestion, "dedupConfig": dedup,
		"routing": object{
			"segmentPrunerTypes":   []string{"partition"},
			"instanceSelectorType": "strictReplicaGroup", // deduplication needs all rows of a partition on one server
		},
	})
}

// rawTimes makes the decoder return times as the numbers in the record, because the transform of ts divides
// microseconds. Releases after 1.5 convert them to java.sql.Timestamp unless the first property is set (apache/pinot
// 18400), and earlier 1.x releases if the second one is true. A decoder ignores the property that it does not know.
func rawTimes() object {
	const prop = "stream.kafka.decoder.prop."
	return object{prop + "extractRawTimeValues": "true", prop + "enableLogicalTypes": "false"}
}

// streamOf returns the stream configuration.
func streamOf(s Stream, plugin string, more object) object {
	const kafka, flush = "stream.kafka.", "realtime.segment.flush.threshold."
	m := object{
		"streamType":                                    "kafka",
		kafka + "topic.name":                            topics.ActionsEnriched,
		kafka + "broker.list":                           strings.Join(s.Brokers, ","),
		kafka + "consumer.factory.class.name":           "org.apache.pinot.plugin.stream." + plugin + ".KafkaConsumerFactory",
		kafka + "consumer.prop.auto.offset.reset":       "smallest",       // otherwise a new table starts at the end of the topic
		kafka + "isolation.level":                       "read_committed", // ignore aborted records
		kafka + "decoder.class.name":                    "org.apache.pinot.plugin.inputformat.avro.confluent.KafkaConfluentSchemaRegistryAvroMessageDecoder",
		kafka + "decoder.prop.schema.registry.rest.url": s.Registry,
		flush + "rows":                                  "0", // limit by size and time
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
