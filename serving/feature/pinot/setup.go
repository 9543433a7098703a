package pinot

import (
	"context"
	"encoding/json"
	"fmt"
)

// Setup is the part of the program's configuration that the commands need.
type Setup struct {
	Config     Config
	Kafka      []string // brokers, if Config names none
	Registry   string   // if Config names none
	Partitions int32
}

// Apply creates or updates schema and table; see Admin.Apply.
func (s Setup) Apply(ctx context.Context) error {
	a, err := NewAdmin(s.Config)
	if err != nil {
		return err
	}
	return a.Apply(ctx, s.stream())
}

// Verify compares schema and table on the controller with what apply would create; see Admin.Verify.
func (s Setup) Verify(ctx context.Context) ([]string, error) {
	a, err := NewAdmin(s.Config)
	if err != nil {
		return nil, err
	}
	return a.Verify(ctx, s.stream())
}

// stream returns how Pinot's servers reach the topic.
func (s Setup) stream() Stream {
	out := Stream{Brokers: s.Config.KafkaBrokers, Registry: s.Config.RegistryURL, Partitions: s.Partitions, Replicas: s.Config.Replicas, More: s.Config.StreamConfig}
	if len(out.Brokers) == 0 {
		out.Brokers = s.Kafka
	}
	if out.Registry == "" {
		out.Registry = s.Registry
	}
	return out
}

// Definitions are schema and table as Apply sends them, without secrets.
type Definitions struct {
	Schema json.RawMessage `json:"schema"`
	Table  json.RawMessage `json:"table"`
}

// Definitions returns schema and table for a release of Pinot. It returns an error for a release other than V0 and V1.
func (s Setup) Definitions(release Release) (d Definitions, err error) {
	if release != V0 && release != V1 {
		return d, fmt.Errorf("release %q: want %s or %s", release, V0, V1)
	}
	if d.Schema, err = Schema(); err != nil {
		return d, err
	}
	table, err := Table(release, s.stream())
	if err != nil {
		return d, err
	}
	d.Table, err = masked(table, s.Config.StreamConfig)
	return d, err
}
