package rows

import (
	"errors"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/smartfeed/smartfeed/internal/settings"
	"github.com/smartfeed/smartfeed/topics"
)

// Config is the configuration of a process, used by each of its groups. See DefaultConfig for the defaults.
type Config struct {
	// Dir may be deleted while the process is stopped. Stores are in Dir/<group>-table/<partition>.
	Dir     string `yaml:"dir" default:"rows" help:"directory of the local stores, relative to the state directory unless absolute"`
	Standby bool   `yaml:"standby" help:"keep hot copies of partitions that other processes own"`

	// After an idle period, the first two commits start immediately.
	Gap              time.Duration `yaml:"gap" default:"10ms" range:"0s..1s" help:"average time between the starts of two commits of a partition"`
	MaxGap           time.Duration `yaml:"max_gap" default:"50ms" range:"gap..10s" help:"longest such time, used when the process commits more than commits_per_second"`
	CommitsPerSecond int           `yaml:"commits_per_second" default:"500" range:"1.." help:"commit rate of the process above which the time between commits grows"`
	MaxBatchBytes    int           `yaml:"max_batch_bytes" default:"1MiB" range:"64KiB..8MiB" help:"size at which a batch accepts no more records; a single record may exceed it"`
	MaxBatchMessages int           `yaml:"max_batch_messages" default:"5000" range:"1..1000000" help:"input records at which a batch accepts no more"`

	// An input record that exceeds these limits is a bad record.
	MaxRecordRows  int `yaml:"max_record_rows" default:"100000" range:"1000..1048576" help:"rows and records that one input record may write"`
	MaxRecordBytes int `yaml:"max_record_bytes" default:"16MiB" range:"1MiB..64MiB" help:"bytes that one input record may write"`
	// The topics accept at most 1 MiB, schemas.MaxRecordBytes.
	MaxValueBytes int `yaml:"max_value_bytes" default:"1MiB" range:"512KiB..1MiB" help:"size of a row, and of an emitted record"`
	TimersPerTick int `yaml:"timers_per_tick" default:"256" range:"1..100000" help:"timers that fire in one transaction"`

	CacheBytes int64 `yaml:"cache_bytes" default:"128MiB" range:"8MiB..1TiB" help:"size of the block cache that all stores of the process share"`
	// Doubling MemTableBytes reduces the cost of compaction by a fifth or more.
	MemTableBytes int64 `yaml:"memtable_bytes" default:"384MiB" range:"8MiB..1TiB" help:"memory for the memtables of all stores of the process, split almost evenly"`
	RecentBytes   int64 `yaml:"recent_bytes" default:"64MiB" range:"0..1TiB" help:"memory for recently read rows, split evenly among the stores of the process; 0: none"`
	MinDiskBytes  int64 `yaml:"min_disk_bytes" default:"256MiB" range:"0..1TiB" help:"space that must be free in dir; with less, partitions stop instead of committing"`

	SessionTimeout time.Duration `yaml:"session_timeout" default:"6s" range:"1s..5m" help:"how long a dead member keeps its partitions"`
	Grace          time.Duration `yaml:"grace" default:"3s" range:"100ms..30s" help:"time limit of the last commit when a partition is handed over"`
}

// DefaultConfig returns the defaults of the tags, for up to sixteen partitions of a few groups in one process.
func DefaultConfig() Config { return settings.Defaults[Config]() }

// maxNameBytes limits a row's name and its owner together. It is four times the longest id.
const maxNameBytes = 4 << 10

// Validate reports every field that is out of bounds.
func (c Config) Validate() error {
	errs := []error{settings.Validate(c)}
	if c.Dir == "" {
		errs = append(errs, errors.New("dir: is empty: a directory is needed"))
	}
	return errors.Join(errs...)
}

// Env holds the dependencies of a group, which the groups of a process share.
type Env struct {
	Kafka   topics.Kafka // configuration of all Kafka clients
	Streams *topics.Streams
	Log     *slog.Logger          // nil: no logging
	Metrics prometheus.Registerer // nil: no metrics
	Shared  *Shared               // nil: the group has its own cache, memtable budget and commit rate
}
