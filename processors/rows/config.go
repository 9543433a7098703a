package rows

import (
	"errors"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/smartfeed/smartfeed/internal/bounds"
	"github.com/smartfeed/smartfeed/schemas"
	"github.com/smartfeed/smartfeed/topics"
)

// Config is what a process gives to each of its groups. See DefaultConfig for the defaults.
type Config struct {
	// Dir holds the local stores, in Dir/<group>-table/<partition>. They may be deleted whenever the process is down.
	Dir string `yaml:"dir"`
	// Standby has the process keep hot copies of partitions that others own.
	Standby bool `yaml:"standby"`

	// Gap is the time between the starts of two commits of a partition, on average, 0 to 1 s. The first two after a rest start at
	// once.
	Gap time.Duration `yaml:"gap"`
	// MaxGap is what Gap grows to when the process commits more than CommitsPerSecond; Gap to 10 s.
	MaxGap time.Duration `yaml:"max_gap"`
	// CommitsPerSecond is how many commits of the whole process there may be before gaps grow, at least 1.
	CommitsPerSecond int `yaml:"commits_per_second"`
	// MaxBatchBytes is how much a transaction may hold to take a further record, 64 KiB to 8 MiB. One record may exceed it.
	MaxBatchBytes int `yaml:"max_batch_bytes"`
	// MaxBatchMessages is how many records a transaction may hold to take a further one, 1 to 1,000,000.
	MaxBatchMessages int `yaml:"max_batch_messages"`

	// MaxRecordRows is how many rows and records one input record may write, 1000 to 1,048,576; above, it is a bad one.
	MaxRecordRows int `yaml:"max_record_rows"`
	// MaxRecordBytes is the same in bytes, 1 MiB to 64 MiB.
	MaxRecordBytes int `yaml:"max_record_bytes"`
	// MaxValueBytes bounds a row and an emitted record, 512 KiB to 1 MiB, which is what the topics take.
	MaxValueBytes int `yaml:"max_value_bytes"`
	// TimersPerTick is how many timers are worked off in one transaction, 1 to 100,000.
	TimersPerTick int `yaml:"timers_per_tick"`

	// CacheBytes is the block cache of all stores of the process, at least 8 MiB.
	CacheBytes int64 `yaml:"cache_bytes"`
	// MemTableBytes is the memtables of all stores of the process together, split nearly evenly, at least 8 MiB. Twice as much
	// takes a fifth off the cost of compaction and more.
	MemTableBytes int64 `yaml:"memtable_bytes"`
	// RecentBytes is for rows that were read lately, beside all stores of the process, split evenly; 0: none are kept.
	RecentBytes int64 `yaml:"recent_bytes"`
	// MinDiskBytes is how much must be free below Dir: with less, partitions stop instead of committing.
	MinDiskBytes int64 `yaml:"min_disk_bytes"`

	// SessionTimeout is how long a dead member keeps its partitions, 1 s to 5 m.
	SessionTimeout time.Duration `yaml:"session_timeout"`
	// Grace is for the last commit when a partition is handed over, 100 ms to 30 s.
	Grace time.Duration `yaml:"grace"`
}

// DefaultConfig is for up to sixteen partitions of a few groups in one process.
func DefaultConfig() Config {
	return Config{
		Dir:              "rows",
		Gap:              10 * time.Millisecond,
		MaxGap:           50 * time.Millisecond,
		CommitsPerSecond: 500,
		MaxBatchBytes:    1 << 20,
		MaxBatchMessages: 5000,
		MaxRecordRows:    100_000,
		MaxRecordBytes:   16 << 20,
		MaxValueBytes:    1 << 20,
		TimersPerTick:    256,
		CacheBytes:       128 << 20,
		MemTableBytes:    384 << 20,
		RecentBytes:      64 << 20,
		MinDiskBytes:     256 << 20,
		SessionTimeout:   6 * time.Second,
		Grace:            3 * time.Second,
	}
}

// maxNameBytes bounds a row's name with its owner: four times the longest id.
const maxNameBytes = 4 << 10

// Validate reports every field that is out of its bounds.
func (c Config) Validate() error {
	const many = 1 << 40
	errs := []error{
		bounds.Within("gap", c.Gap, 0, time.Second),
		bounds.Within("max_gap", c.MaxGap, c.Gap, 10*time.Second),
		bounds.Within("commits_per_second", int64(c.CommitsPerSecond), 1, many),
		bounds.Within("max_batch_bytes", c.MaxBatchBytes, 64<<10, 8<<20),
		bounds.Within("max_batch_messages", c.MaxBatchMessages, 1, 1_000_000),
		bounds.Within("max_record_rows", c.MaxRecordRows, 1000, 1<<20),
		bounds.Within("max_record_bytes", c.MaxRecordBytes, 1<<20, 64<<20),
		bounds.Within("max_value_bytes", c.MaxValueBytes, 512<<10, schemas.MaxRecordBytes),
		bounds.Within("timers_per_tick", c.TimersPerTick, 1, 100_000),
		bounds.Within("cache_bytes", c.CacheBytes, 8<<20, many),
		bounds.Within("memtable_bytes", c.MemTableBytes, 8<<20, many),
		bounds.Within("recent_bytes", c.RecentBytes, 0, many),
		bounds.Within("min_disk_bytes", c.MinDiskBytes, 0, many),
		bounds.Within("session_timeout", c.SessionTimeout, time.Second, 5*time.Minute),
		bounds.Within("grace", c.Grace, 100*time.Millisecond, 30*time.Second),
	}
	if c.Dir == "" {
		errs = append(errs, errors.New("dir: is empty: a directory is needed"))
	}
	return errors.Join(errs...)
}

func (c Config) limits() limits {
	return limits{rows: c.MaxRecordRows, bytes: c.MaxRecordBytes, nameBytes: maxNameBytes, valueBytes: c.MaxValueBytes}
}

// Env are the collaborators of a group, shared by the groups of a process.
type Env struct {
	Kafka   topics.Kafka // how to reach the brokers; makes every client
	Streams *topics.Streams
	Log     *slog.Logger          // nil: none
	Metrics prometheus.Registerer // nil: none
	Shared  *Shared               // nil: the group has cache, memtable budget and pace of its own
}
