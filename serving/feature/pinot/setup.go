package pinot

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Setup is the part of the program's configuration that the commands need. It says how Pinot's servers reach the topics.
type Setup struct {
	Config     Config
	Kafka      []string // brokers, if Config names none
	Registry   string   // URL of the Confluent-compatible API, if Config has none
	Partitions int32
	Sequences  time.Duration // retention of SequencesTable
}

// table is the schema and the configuration of a table as Apply sends them.
type table struct {
	name           string
	schema, config []byte
}

// tables returns the tables for the release of the controller.
func (s Setup) tables(ctx context.Context) (a *Admin, all []table, err error) {
	if a, err = NewAdmin(s.Config); err != nil {
		return nil, nil, err
	}
	release, err := a.Release(ctx)
	if err != nil {
		return nil, nil, err
	}
	for _, name := range Tables() {
		t, err := s.table(name, release)
		if err != nil {
			return nil, nil, err
		}
		all = append(all, t)
	}
	return a, all, nil
}

// Apply creates or updates the tables and their schemas.
func (s Setup) Apply(ctx context.Context) error {
	a, all, err := s.tables(ctx)
	for _, t := range all {
		if err := a.put(ctx, "/schemas", "/schemas/"+t.name, t.schema); err != nil {
			return fmt.Errorf("apply schema %s: %w", t.name, err)
		}
		if err := a.put(ctx, "/tables", "/tables/"+t.name, t.config); err != nil {
			return fmt.Errorf("apply table %s: %w", t.name, err)
		}
	}
	return err
}

// Verify returns the differences between the tables that Apply would create and those on the controller, path by path. It
// returns none if they agree. Additional settings, such as defaults, are not differences.
func (s Setup) Verify(ctx context.Context) (differ []string, err error) {
	a, all, err := s.tables(ctx)
	for _, t := range all {
		schema, errSchema := a.compare(ctx, "schema "+t.name, "/schemas/"+t.name, t.schema, nil, func(v any) any { return v })
		table, errTable := a.compare(ctx, "table "+t.name, "/tables/"+t.name, t.config, s.Config.StreamConfig, realtime)
		if err := errors.Join(errSchema, errTable); err != nil {
			return nil, err
		}
		differ = slices.Concat(differ, schema, table)
	}
	return differ, err
}

// table returns a table for a release as indented JSON. It returns an error for a table that is not in Tables, and for a release
// other than V0 and V1.
func (s Setup) table(name string, r Release) (table, error) {
	text, err := files.ReadFile("tables/" + string(r) + "/" + name + ".json")
	if err != nil {
		return table{}, fmt.Errorf("table %q for pinot %q: unknown table or release", name, r)
	}
	var config object
	if err := json.Unmarshal(text, &config); err != nil {
		return table{}, fmt.Errorf("read table %s: %w", name, err)
	}
	schema, errSchema := files.ReadFile("tables/" + name + ".schema.json")
	text, err = indented(s.fill(config))
	return table{name, schema, text}, errors.Join(err, errSchema)
}

// fill replaces the names in braces, and adds Config.StreamConfig to stream configurations.
func (s Setup) fill(v any) any {
	switch v := v.(type) {
	case object:
		for k, inside := range v {
			v[k] = s.fill(inside)
		}
		if _, isStream := v["streamType"]; isStream {
			for k, secret := range s.Config.StreamConfig {
				v[k] = secret.Reveal()
			}
		}
	case []any:
		for i := range v {
			v[i] = s.fill(v[i])
		}
	case string:
		return s.value(v)
	}
	return v
}

func (s Setup) value(text string) any {
	switch text {
	case "{brokers}":
		return cmp.Or(strings.Join(s.Config.KafkaBrokers, ","), strings.Join(s.Kafka, ","))
	case "{registry}":
		return cmp.Or(s.Config.RegistryURL, s.Registry)
	case "{partitions}":
		return s.Partitions
	case "{replicas}":
		return fmt.Sprint(s.Config.Replicas)
	case "{sequence_hours}":
		return fmt.Sprint(int(s.Sequences.Hours()))
	}
	return text
}
