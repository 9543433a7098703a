package reference

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/smartfeed/smartfeed/internal/convert"
	"github.com/smartfeed/smartfeed/internal/settings"
	"github.com/smartfeed/smartfeed/internal/testkit/expect"
	"github.com/smartfeed/smartfeed/internal/testkit/must"
	"github.com/smartfeed/smartfeed/schemas"
	"github.com/smartfeed/smartfeed/topics"
)

// object is a JSON object.
type object = map[string]any

// eventsAndTopics has a section for each topic, and one for each record that is a part of others.
func eventsAndTopics(t *testing.T, p *page) {
	p.text("Values are Avro records in the Confluent wire format, with the subject `TOPIC-value` in the schema registry. Times are microseconds since 1970. " +
		"Records are partitioned by key with the hash of Kafka's Java client, unless the page says that the writer chooses the partition. " +
		"[Produce and consume events](../how-to/produce-events.md) explains how.")
	p.text("All topics have the same number of partitions: `partitions`, by default %d on the embedded broker. They have 3 replicas, or fewer with fewer brokers, "+
		"and one replica less must have a record before it is acknowledged. `smartfeed topics plan` prints the settings.", topics.EmbeddedPartitions)
	p.text("A compacted topic keeps the newest record of each key, and a deletion for at least %s. Any other topic keeps its records for its retention.", settings.Short(topics.DeletionsKept))
	records, bounds := recordsOf(t), boundsOfEvents(t)
	all := topics.Catalogue(topics.Profile{})
	p.text("## Input topics\n\nAny client may write these topics. `POST /v1/events` accepts the same records as JSON lines, with the additional key `stream`: the name of the topic. " +
		"A field without a default is required. An action without an actor is accepted, dropped and counted.")
	parts := map[string]bool{}
	for _, topic := range all {
		if topic.Input {
			topicSection(t, p, topic, records, bounds, parts)
		}
	}
	p.text("## Internal topics\n\nOnly smartfeed writes these topics. Their schemas may change with a version; see [Consume derived topics](../how-to/produce-events.md#consume-derived-topics).")
	groups := topics.RowGroups()
	for _, topic := range all {
		group, kind, _ := strings.Cut(topic.Name, "-")
		if ofGroup := slices.Contains(groups, group) && (kind == "table" || kind == "ticks"); !topic.Input && (!ofGroup || group == groups[0]) {
			topicSection(t, p, topic, records, bounds, parts)
		}
		if topic.Name == topics.TableOf(groups[0]) || topic.Name == topics.TicksOf(groups[0]) {
			p.text("Each of the groups %s has such a topic.", codes(groups))
		}
	}
	p.text("## Records in other records")
	for shown := map[string]bool{}; len(shown) < len(parts); { // a record may have others
		for _, name := range slices.Sorted(maps.Keys(parts)) {
			if !shown[name] {
				shown[name] = true
				p.text("### %s", name)
				record(t, p, records[name], bounds[name], parts)
			}
		}
	}
}

func topicSection(t *testing.T, p *page, topic topics.Topic, records map[string]object, bounds map[string]object, parts map[string]bool) {
	t.Helper()
	p.text("### %s", topic.Name)
	policy := "delete, retention " + settings.Short(topic.Retention)
	switch {
	case topic.Compact:
		policy = "compact"
	case topic.Retention == 0:
		policy = "delete, unlimited retention"
	case topic.Name == topics.Actions:
		policy += " by default (`actions.retention`)"
	case topic.Name == topics.VisitLog:
		policy += " by default (`visit_log.retention`)"
	}
	facts := [][]string{{"Key", topic.Key}, {"Cleanup", policy}, {"Written by", codes(topic.Writers)}, {"Read by", codes(topic.Readers)}, {"Personal data", topic.Personal}}
	if topic.Record == "" {
		facts = slices.Insert(facts, 1, []string{"Value", "private to the group"})
	} else {
		facts = slices.Insert(facts, 1, []string{"Value", code("smartfeed." + topic.Record)})
	}
	if topic.Explicit {
		facts = append(facts, []string{"Partition", "chosen by the writer"})
	}
	if topic.GlobalTable {
		facts = append(facts, []string{"Global table", "every process has a copy in memory"})
	}
	facts = slices.DeleteFunc(facts, func(f []string) bool { return f[1] == "" })
	p.table([]string{"Property", "Value"}, facts)
	if topic.Record != "" {
		if records[topic.Record] == nil {
			t.Fatalf("topic %s: no schema of %s", topic.Name, topic.Record)
		}
		record(t, p, records[topic.Record], bounds[topic.Record], parts)
	}
}

// record describes a record and its fields.
func record(t *testing.T, p *page, r, bounds object, parts map[string]bool) {
	t.Helper()
	p.text("%s", sentence(fmt.Sprint(r["doc"])))
	var rows [][]string
	for _, f := range r["fields"].([]any) {
		field := f.(object)
		name := field["name"].(string)
		doc, _ := field["doc"].(string)
		expect.True(t, doc != "", "%s.%s has a doc", r["name"], name)
		text, _ := json.Marshal(field["default"])
		if _, optional := field["default"]; !optional {
			text = nil
		}
		bound, _ := bounds[name].(object)
		rows = append(rows, []string{code(name), sentence(doc), avroType(field["type"], parts), code(string(text)), boundOf(bound)})
	}
	p.table([]string{"Field", "Description", "Avro type", "Default", "Bounds"}, rows)
}

// avroType describes a type, and adds the named records in it to parts.
func avroType(of any, parts map[string]bool) string {
	switch of := of.(type) {
	case string:
		if strings.ToLower(of) == of {
			return of
		}
		parts[of] = true
		return fmt.Sprintf("[%s](#%s)", of, strings.ToLower(of))
	case []any:
		return strings.Join(convert.All(of, func(one any) string { return avroType(one, parts) }), " or ")
	case object:
		switch kind := of["type"].(string); {
		case kind == "record":
			return avroType(of["name"], parts)
		case kind == "array":
			return "array of " + avroType(of["items"], parts)
		case kind == "map":
			return "map of " + avroType(of["values"], parts)
		case of["logicalType"] != nil:
			return kind + ", " + of["logicalType"].(string)
		default:
			return kind
		}
	}
	return ""
}

// recordsOf returns every record of the schemas by its name.
func recordsOf(t *testing.T) map[string]object {
	t.Helper()
	files := must.Get(filepath.Glob(root + "schemas/avsc/*.avsc"))(t)
	all := map[string]object{}
	var walk func(v any)
	walk = func(v any) {
		switch v := v.(type) {
		case []any:
			for _, one := range v {
				walk(one)
			}
		case object:
			if v["type"] == "record" {
				all[v["name"].(string)] = v
			}
			for _, one := range v {
				walk(one)
			}
		}
	}
	for _, file := range files {
		var v any
		text := must.Get(os.ReadFile(file))(t)
		must.OK(t, json.Unmarshal(text, &v))
		walk(v)
	}
	return all
}

// boundsOfEvents returns the JSON Schemas of the fields of each input record.
func boundsOfEvents(t *testing.T) map[string]object {
	t.Helper()
	var doc api
	parse(t, "serving/api/openapi.json", &doc)
	bounds := map[string]object{}
	for _, event := range doc.Components["schemas"]["Event"]["oneOf"].([]any) {
		name := filepath.Base(event.(object)["$ref"].(string))
		bounds[name] = doc.Components["schemas"][name]["properties"].(object)
	}
	candidates := bounds["Offer"]["candidates"].(object)
	bounds["Candidate"] = candidates["items"].(object)["properties"].(object)
	return bounds
}

// boundOf describes the bounds of a JSON Schema.
func boundOf(s object) string {
	var out []string
	between := func(low, high, unit string) {
		switch {
		case s[low] != nil && s[high] != nil:
			out = append(out, number(s[low])+" to "+number(s[high])+unit)
		case s[low] != nil:
			out = append(out, "at least "+number(s[low])+unit)
		case s[high] != nil:
			out = append(out, "at most "+number(s[high])+unit)
		}
	}
	if choices, _ := s["oneOf"].([]any); len(choices) > 0 {
		return boundOf(choices[0].(object))
	}
	if ref, _ := s["$ref"].(string); strings.HasSuffix(ref, "ID") {
		kind := strings.ToLower(strings.TrimSuffix(filepath.Base(ref), "ID"))
		out = append(out, fmt.Sprintf("`%s:…`, at most %d bytes", kind, schemas.MaxIDBytes))
	} else if strings.HasSuffix(ref, "/EventTime") {
		out = append(out, "at most "+settings.Short(schemas.MaxAhead)+" after its arrival")
	}
	if values, _ := s["enum"].([]any); len(values) > 0 {
		out = append(out, strings.Trim(strings.ReplaceAll(fmt.Sprint(values), " ", ", "), "[]"))
	}
	if pattern, _ := s["pattern"].(string); pattern != "" {
		if kinds := regexp.MustCompile(`^\^\((.*)\):\.$`).FindStringSubmatch(pattern); kinds != nil {
			pattern = strings.ReplaceAll(kinds[1], "|", ":…`, `") + ":…" // ids of several kinds
			out = append(out, "one of "+code(pattern))
		} else {
			out = append(out, "matches "+code(pattern))
		}
	}
	between("minimum", "maximum", "")
	between("minLength", "maxLength", " bytes")
	between("minItems", "maxItems", " items")
	between("minProperties", "maxProperties", " keys")
	if names, _ := s["propertyNames"].(object); names != nil {
		out = append(out, "keys: "+boundOf(names))
	}
	if values, _ := s["additionalProperties"].(object); values["maxLength"] != nil {
		out = append(out, "values: "+boundOf(values))
	}
	if s["default"] != nil {
		out = append(out, "default "+number(s["default"]))
	}
	return strings.Join(out, "; ")
}

// number formats a number without an exponent, and any other value as fmt does.
func number(v any) string {
	if n, ok := v.(float64); ok {
		return strconv.FormatFloat(n, 'f', -1, 64)
	}
	return fmt.Sprint(v)
}

// The console draws the writers and readers of topics as boxes, and the topics between them as lines. Concepts explains them.
func TestConcepts_ExplainsPipelinePicture(t *testing.T) {
	page := must.Get(os.ReadFile("../../docs/concepts.md"))(t)
	_, section, _ := strings.Cut(string(page), "## The pipeline picture of the console\n")
	section, _, _ = strings.Cut(section, "\n## ")
	for _, topic := range topics.Catalogue(topics.Profile{}) {
		if len(topic.Readers) == 0 || topic.Record == "" || topic.Input {
			continue
		}
		for _, name := range slices.Concat([]string{topic.Name, topics.Producers}, topic.Writers, topic.Readers) {
			expect.Contains(t, section, code(name), "the section about the pipeline picture")
		}
	}
}
