package pinot

import (
	"context"
	"encoding/json"
	"time"
)

// Setup is the part of the program's configuration that the commands need.
type Setup struct {
	Config     Config
	Kafka      []string // brokers, if Config names none
	Registry   string   // if Config names none
	Partitions int32
	Sequences  time.Duration // see Stream
}

// Apply creates or updates the tables; see Admin.Apply.
func (s Setup) Apply(ctx context.Context) error {
	a, err := NewAdmin(s.Config)
	if err != nil {
		return err
	}
	return a.Apply(ctx, s.stream())
}

// Verify compares the tables on the controller with what apply would create; see Admin.Verify.
func (s Setup) Verify(ctx context.Context) ([]string, error) {
	a, err := NewAdmin(s.Config)
	if err != nil {
		return nil, err
	}
	return a.Verify(ctx, s.stream())
}

// stream returns how Pinot's servers reach the topics.
func (s Setup) stream() Stream {
	out := Stream{Brokers: s.Config.KafkaBrokers, Registry: s.Config.RegistryURL, Partitions: s.Partitions, Replicas: s.Config.Replicas, Sequences: s.Sequences, More: s.Config.StreamConfig}
	if len(out.Brokers) == 0 {
		out.Brokers = s.Kafka
	}
	if out.Registry == "" {
		out.Registry = s.Registry
	}
	return out
}

// Definitions are schema and configuration of a table as Apply sends them, without secrets.
type Definitions struct {
	Schema json.RawMessage `json:"schema"`
	Table  json.RawMessage `json:"table"`
}

// Definitions returns a table for a release of Pinot. It returns an error for a table that is not in Tables, and for a
// release other than V0 and V1.
func (s Setup) Definitions(table string, release Release) (d Definitions, err error) {
	config, err := configOf(table, release, s.stream())
	if err != nil {
		return d, err
	}
	if d.Schema, err = schemaOf(table); err == nil {
		d.Table, err = masked(config, s.Config.StreamConfig)
	}
	return d, err
}
