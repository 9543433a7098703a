package pinot

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/smartfeed/smartfeed/internal/testkit/expect"
	"github.com/smartfeed/smartfeed/internal/testkit/golden"
	"github.com/smartfeed/smartfeed/internal/testkit/must"
	"github.com/smartfeed/smartfeed/schemas"
	"github.com/smartfeed/smartfeed/serving/feature"
	"github.com/smartfeed/smartfeed/topics"
)

func define(t testing.TB, text string) []feature.Definition {
	t.Helper()
	return must.Get(feature.Parse("test", []byte("features:\n"+text)))(t)
}

func TestStatements(t *testing.T) {
	defs := define(t, `
- {name: by_interest, entity: user, verbs: [click, save], window: 24h, group_by: objectAttributes.interests, aggregate: count}
- {name: rate, entity: user, window: 1h, aggregate: rate}
- {name: on_home, entity: user, verbs: save, where: {verbAttributes.surface: [home, "o'clock"], objectAttributes.interests: interest:a}, aggregate: count}
- {name: decayed, entity: user, aggregate: count, half_life: 1h}
- {name: by_color, entity: user, group_by: objectAttributes.color, aggregate: count}
- {name: of_ios, entity: user, where: {verbAttributes.device: ios}, aggregate: count}
- {name: nothing, entity: user, where: {verb: ""}, aggregate: count}
- {name: last, entity: user, aggregate: last, verbs: [click]}
- {name: taste, entity: user, aggregate: mean_embedding, of: objectAttributes.embedding, verbs: [save]}
- {name: by_actor, entity: user, aggregate: count, group_by: actor}
- {name: by_verb_and_interest, entity: user, aggregate: count, group_by: [verb, objectAttributes.interests, actorAttributes.interests]}
- {name: by_verb_and_color, entity: user, aggregate: rate, group_by: [verb, objectAttributes.color]}
`)
	var b strings.Builder
	const user = schemas.UserID("user:o'neil")
	for _, d := range defs {
		fmt.Fprintf(&b, "-- %s\n", d.Name)
		fmt.Fprintf(&b, "rows: %s\n", ofUser(user, []feature.Definition{d}, 1000, 2000, 101).sql)
	}
	fmt.Fprintf(&b, "-- all\nrows: %s\n", ofUser(user, defs, 1000, 2000, 101).sql)
	fmt.Fprintf(&b, "-- last, taste\nrows: %s\n", ofUser(user, defs[7:9], 1000, 2000, 101).sql)
	const odd = schemas.UserID("user:''")
	fmt.Fprintf(&b, "-- two quotes in a row: both readings of the text\nrows: %s\n", ofUser(odd, defs[:1], 1000, 2000, 101).sql)
	pins := pinQuery{table: PinsTable, columns: named(pinColumns(), pinColumn, embeddingColumn), conditions: []string{"deleted = false"}, most: 2}
	fmt.Fprintf(&b, "-- pins\nrows: %s\n", pins.of([]schemas.PinID{"pin:1", "pin:o'neil", "pin:''"}).sql)
	sequences := define(t, "- {name: s, entity: user, aggregate: sequence, verbs: save, columns: [objectAttributes.color, objectAttributes.embedding]}\n")
	fmt.Fprintf(&b, "-- sequence\nrows: %s\n", ofSequences(user, sequences, 1000, 1025).sql)
	golden.Text(t, "testdata/statements.golden", b.String())
}

// pinotTable is the part of a table that must agree with the code and with the catalogue of topics.
type pinotTable struct {
	TableName      string
	SegmentsConfig struct{ Replication, RetentionTimeUnit, RetentionTimeValue string }
	Routing        struct {
		SegmentPrunerTypes   []string
		InstanceSelectorType string
	}
	TableIndexConfig struct {
		StreamConfigs          map[string]string
		SegmentPartitionConfig struct {
			ColumnPartitionMap map[string]struct {
				FunctionName  string
				NumPartitions int
			}
		}
	}
	IngestionConfig struct {
		StreamIngestionConfig struct{ StreamConfigMaps []map[string]string }
		TransformConfigs      []struct{ ColumnName, TransformFunction string }
		FilterConfig          struct{ FilterFunction string }
	}
}

// summary returns the settings that must agree, by name.
func (p pinotTable) summary(r Release) map[string]string {
	stream := p.TableIndexConfig.StreamConfigs
	if r == V1 {
		stream = p.IngestionConfig.StreamIngestionConfig.StreamConfigMaps[0]
	}
	all := map[string]string{
		"name": p.TableName, "replicas": p.SegmentsConfig.Replication, "hours": p.SegmentsConfig.RetentionTimeValue,
		"routing": fmt.Sprint(p.Routing), "skip": p.IngestionConfig.FilterConfig.FilterFunction,
		"topic": stream["stream.kafka.topic.name"], "brokers": stream["stream.kafka.broker.list"], "registry": stream["stream.kafka.decoder.prop.schema.registry.rest.url"],
		"isolation": stream["stream.kafka.isolation.level"], "flush": stream["realtime.segment.flush.threshold.time"],
	}
	for owner, of := range p.TableIndexConfig.SegmentPartitionConfig.ColumnPartitionMap {
		all["partitions by "+owner] = fmt.Sprint(of)
	}
	for _, t := range p.IngestionConfig.TransformConfigs {
		all["transform "+t.ColumnName] = t.TransformFunction
	}
	return all
}

func TestTables_AgreeWithTopics(t *testing.T) {
	setup := Setup{Config: DefaultConfig(), Kafka: []string{"kafka:9092", "kafka:9093"}, Registry: "http://registry:8080/apis/ccompat/v7", Partitions: 8, Sequences: 2160 * time.Hour}
	setup.Config.Replicas = 2
	topicOf := map[string]string{TableName: topics.ActionsEnriched, SequencesTable: topics.ActionsEnriched, PinsTable: topics.PinAttributes, CountsTable: topics.ItemFeatures, MeansTable: topics.ItemFeatures}
	hours := map[string]string{TableName: fmt.Sprint(feature.Kept.Hours()), CountsTable: fmt.Sprint(feature.Kept.Hours()), SequencesTable: "2160"}
	keys := topicKeys(t)
	for _, name := range Tables() {
		var both [2]map[string]string
		for i, r := range []Release{V0, V1} {
			applied := must.Get(setup.table(name, r))(t)
			var table pinotTable
			must.OK(t, json.Unmarshal(applied.config, &table))
			both[i] = table.summary(r)
		}
		expect.NoDiff(t, both[1], both[0], "%s (-%s +%s)", name, V0, V1)
		want := map[string]string{
			"name": name, "replicas": "2", "hours": hours[name], "routing": "{[partition] strictReplicaGroup}", "topic": topicOf[name],
			"brokers": "kafka:9092,kafka:9093", "registry": setup.Registry, "isolation": "read_committed", "flush": fmt.Sprintf("%.0fh", flushAfter.Hours()),
			"partitions by " + keys[topicOf[name]]: "{Murmur 8}",
		}
		for key, value := range both[0] {
			if key == "skip" || strings.HasPrefix(key, "transform ") {
				want[key] = value
			}
		}
		expect.NoDiff(t, both[0], want, "%s", name)
	}
	expect.Error(t, expect.ErrorOf(setup.table(TableName, "2")), "unknown table or release", "an unknown release")
	expect.Error(t, expect.ErrorOf(setup.table("boards", V0)), "unknown table or release", "an unknown table")
}

// topicKeys returns the name of the key of each topic in the catalogue.
func topicKeys(t *testing.T) map[string]string {
	t.Helper()
	keys := map[string]string{}
	for _, topic := range topics.Catalogue(topics.Profile{}) {
		keys[topic.Name] = topic.Key
	}
	return keys
}

// The queries select columns of the schemas.
func TestTables_HaveColumnsOfQueries(t *testing.T) {
	columns := map[string][]column{TableName: actionColumns()[:len(actionColumns())-1], PinsTable: pinColumns(), CountsTable: countColumns(), MeansTable: meanColumns(), SequencesTable: actionColumns()}
	for _, name := range Tables() {
		table := must.Get(Setup{}.table(name, V1))(t)
		for _, c := range columns[name] {
			expect.Contains(t, string(table.schema), `"name": "`+c.name+`"`, "columns of %s", name)
		}
	}
}

// FuzzQuote checks that a literal, parsed like SQL, ends at the right place and has the original text.
func FuzzQuote(f *testing.F) {
	for _, s := range []string{"", "'", "''", `\`, `\'`, "?", "--", "/*", ";SET x='y'", "OPTION(timeoutMs=1)", "‘’", "\x00", "a'b''c"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		got, rest, ok := unquote(quote(s) + " AND x = 'y'")
		expect.True(t, ok && got == s && rest == " AND x = 'y'", "%q is read as %q, then %q", s, got, rest)
	})
}

// unquote parses a literal as defined by the SQL standard.
func unquote(sql string) (text, rest string, ok bool) {
	if !strings.HasPrefix(sql, "'") {
		return "", "", false
	}
	var b strings.Builder
	for i := 1; i < len(sql); i++ {
		switch {
		case sql[i] != '\'':
			b.WriteByte(sql[i])
		case i+1 < len(sql) && sql[i+1] == '\'':
			b.WriteByte('\'')
			i++
		default:
			return b.String(), sql[i+1:], true
		}
	}
	return "", "", false
}

func TestConfig_ReportsEveryProblem(t *testing.T) {
	must.OK(t, DefaultConfig().Validate())
	bad := Config{Brokers: []string{"http://b/path", "x:1"}, Controller: ""}
	err := bad.Validate()
	for _, want := range []string{"max_response_bytes: 0", "max_connections: 0", "replicas: 0", `brokers: "http://b/path"`, `controller: ""`} {
		expect.Error(t, err, want, "error")
	}
}

var now = schemas.MicrosOf(time.Date(2026, 11, 20, 10, 0, 0, 0, time.UTC))
