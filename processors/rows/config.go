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

// Config is the configuration of a process, used by each of its groups. See DefaultConfig for the defaults.
type Config struct {
	// Dir is the directory of the local stores, Dir/<group>-table/<partition>. It may be deleted while the process is
	// stopped.
	Dir string `yaml:"dir"`
	// Standby keeps hot copies of partitions that other processes own.
	Standby bool `yaml:"standby"`

	// Gap is the average time between the starts of two commits of a partition, 0 to 1 s. After an idle period, the first
	// two commits start immediately.
	Gap time.Duration `yaml:"gap"`
	// MaxGap is the longest gap, used when the process commits more than CommitsPerSecond; Gap to 10 s.
	MaxGap time.Duration `yaml:"max_gap"`
	// CommitsPerSecond is the commit rate of the process above which the gap grows, at least 1.
	CommitsPerSecond int `yaml:"commits_per_second"`
	// MaxBatchBytes is the size at which a batch accepts no more records, 64 KiB to 8 MiB. A single record may exceed it.
	MaxBatchBytes int `yaml:"max_batch_bytes"`
	// MaxBatchMessages is the number of input records at which a batch accepts no more, 1 to 1,000,000.
	MaxBatchMessages int `yaml:"max_batch_messages"`

	// MaxRecordRows limits the rows and records that one input record may write, 1000 to 1,048,576. An input record that
	// exceeds it is a bad record.
	MaxRecordRows int `yaml:"max_record_rows"`
	// MaxRecordBytes limits their bytes, 1 MiB to 64 MiB.
	MaxRecordBytes int `yaml:"max_record_bytes"`
	// MaxValueBytes limits a row and an emitted record, 512 KiB to 1 MiB. The topics accept at most 1 MiB.
	MaxValueBytes int `yaml:"max_value_bytes"`
	// TimersPerTick is how many timers fire in one transaction, 1 to 100,000.
	TimersPerTick int `yaml:"timers_per_tick"`

	// CacheBytes is the size of the block cache that all stores of the process share, at least 8 MiB.
	CacheBytes int64 `yaml:"cache_bytes"`
	// MemTableBytes is the memory for the memtables of all stores of the process, split almost evenly, at least 8 MiB.
	// Doubling it reduces the cost of compaction by a fifth or more.
	MemTableBytes int64 `yaml:"memtable_bytes"`
	// RecentBytes is the memory for recently read rows, split evenly among the stores of the process. 0 disables it.
	RecentBytes int64 `yaml:"recent_bytes"`
	// MinDiskBytes is the space that must be free in Dir. With less, partitions stop instead of committing.
	MinDiskBytes int64 `yaml:"min_disk_bytes"`

	// SessionTimeout is how long a dead member keeps its partitions, 1 s to 5 m.
	SessionTimeout time.Duration `yaml:"session_timeout"`
	// Grace is the time limit of the last commit when a partition is handed over, 100 ms to 30 s.
	Grace time.Duration `yaml:"grace"`
}

// DefaultConfig returns a configuration for up to sixteen partitions of a few groups in one process.
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

// maxNameBytes limits a row's name and its owner together. It is four times the longest id.
const maxNameBytes = 4 << 10

// Validate reports every field that is out of bounds.
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

// Env holds the dependencies of a group, which the groups of a process share.
type Env struct {
	Kafka   topics.Kafka // configuration of all Kafka clients
	Streams *topics.Streams
	Log     *slog.Logger          // nil: no logging
	Metrics prometheus.Registerer // nil: no metrics
	Shared  *Shared               // nil: the group has its own cache, memtable budget and commit rate
}
