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
	Dir     string `yaml:"dir"`     // local stores live in Dir/<group>-table/<partition>; they can be deleted at any time the process is down
	Standby bool   `yaml:"standby"` // keep hot copies of partitions owned by others

	Gap              time.Duration `yaml:"gap"`                // between the starts of two commits of a partition, on average, 0-1s; the first two after a rest start at once
	MaxGap           time.Duration `yaml:"max_gap"`            // to which Gap grows when the process commits more than CommitsPerSecond
	CommitsPerSecond int           `yaml:"commits_per_second"` // of the whole process, from which on gaps grow; at least 1
	MaxBatchBytes    int           `yaml:"max_batch_bytes"`    // a transaction takes no further record once it holds so much, 64 KiB-8 MiB; one record may exceed it
	MaxBatchMessages int           `yaml:"max_batch_messages"` // … or so many records, at least 1

	MaxRecordRows  int `yaml:"max_record_rows"`  // rows and records that one input record may write; above, it is a bad one. At least 1000
	MaxRecordBytes int `yaml:"max_record_bytes"` // the same in bytes, 1 MiB-64 MiB
	MaxValueBytes  int `yaml:"max_value_bytes"`  // of a row or an emitted record, 512 KiB-1 MiB, which is what the topics take
	TimersPerTick  int `yaml:"timers_per_tick"`  // timers worked off in one transaction, at least 1

	CacheBytes    int64 `yaml:"cache_bytes"`    // block cache of all stores of the process, memtables included, at least 8 MiB
	MemTableBytes int64 `yaml:"memtable_bytes"` // of all stores of the process, split nearly evenly, at least 8 MiB; twice as much takes a fifth off the cost of compaction and more
	RecentBytes   int64 `yaml:"recent_bytes"`   // of rows read lately, beside all stores of the process, split evenly, from 0: none are kept
	MinDiskBytes  int64 `yaml:"min_disk_bytes"` // with less free below Dir, partitions stop instead of committing

	SessionTimeout time.Duration `yaml:"session_timeout"` // after which a dead member's partitions are given to others, 1s-5m
	Grace          time.Duration `yaml:"grace"`           // for the last commit when a partition is handed over, 100ms-30s
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
