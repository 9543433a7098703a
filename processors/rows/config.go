package rows

import (
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
	CommitInterval         time.Duration  `yaml:"commit_interval" default:"10ms" range:"0s..1s" help:"average time between the starts of two commits of a partition"`
	MaxCommitInterval      time.Duration  `yaml:"max_commit_interval" default:"50ms" range:"commit_interval..10s" help:"maximum such time, when the process commits more often than commit_rate"`
	DeferredCommitInterval time.Duration  `yaml:"deferred_commit_interval" default:"500ms" range:"0s..10s" help:"maximum time that effects without a latency target wait for a commit: counts of impressions, interests, insights, related pins, weights of edges"`
	CommitRate             int            `yaml:"commit_rate" default:"500" range:"1.." help:"commits per second of the process above which the commit interval grows"`
	MaxBatchBytes          settings.Bytes `yaml:"max_batch_bytes" default:"1MiB" range:"64KiB..8MiB" help:"size at which a batch accepts no more records; a single record may exceed it"`
	MaxBatchRecords        int            `yaml:"max_batch_records" default:"5000" range:"1..1000000" help:"number of input records at which a batch accepts no more"`

	// An input record that exceeds these limits is a bad record.
	MaxRecordWrites     int            `yaml:"max_record_writes" default:"100000" range:"1000..1048576" help:"maximum number of rows and records that one input record may write"`
	MaxRecordWriteBytes settings.Bytes `yaml:"max_record_write_bytes" default:"16MiB" range:"1MiB..64MiB" help:"maximum number of bytes that one input record may write"`
	// The topics accept at most 1 MiB, schemas.MaxRecordBytes.
	MaxValueBytes  settings.Bytes `yaml:"max_value_bytes" default:"1MiB" range:"512KiB..1MiB" help:"maximum size of a row, and of an emitted record"`
	MaxBatchTimers int            `yaml:"max_batch_timers" default:"256" range:"1..100000" help:"maximum number of timers that fire in one transaction"`

	BlockCacheBytes settings.Bytes `yaml:"block_cache_bytes" default:"128MiB" range:"8MiB..1TiB" help:"size of the block cache that all stores of the process share"`
	// Doubling MemTableBytes reduces the cost of compaction by a fifth or more.
	MemTableBytes    settings.Bytes `yaml:"memtable_bytes" default:"384MiB" range:"8MiB..1TiB" help:"size of the memtables of all stores of the process"`
	RowCacheBytes    settings.Bytes `yaml:"row_cache_bytes" default:"64MiB" range:"0..1TiB" help:"size of the cache of recently read rows of all stores of the process; 0: no cache"`
	RowFilterBytes   settings.Bytes `yaml:"row_filter_bytes" default:"128MiB" range:"0..1TiB" help:"maximum size of the filters by which all stores of the process recognize missing rows, at 10 to 20 bits per row; a store with more rows than its share has none; 0: no filters"`
	MinFreeDiskBytes settings.Bytes `yaml:"min_free_disk_bytes" default:"256MiB" range:"0..1TiB" help:"minimum free space in dir; with less, partitions stop instead of committing"`

	// A broker answers the requests of a connection in order, and sarama commits offsets on the connection it fetches from.
	// A commit of offsets and a handover therefore wait for an empty fetch.
	FetchMaxWait    time.Duration `yaml:"fetch_max_wait" default:"500ms" range:"1ms..1s" help:"maximum time that a broker waits for records before it answers a fetch; a short time costs CPU time when idle; for groups without a latency target, it collects 64 KiB of records meanwhile"`
	SessionTimeout  time.Duration `yaml:"session_timeout" default:"6s" range:"1s..5m" help:"time after which the partitions of a failed member are reassigned"`
	HandoverTimeout time.Duration `yaml:"handover_timeout" default:"3s" range:"100ms..30s" help:"timeout of the last commit of a partition before another process owns it"`
}

// DefaultConfig returns the defaults of the tags, for up to sixteen partitions of a few groups in one process.
func DefaultConfig() Config { return settings.Defaults[Config]() }

// maxNameBytes limits a row's name and its owner together. It is four times the longest id.
const maxNameBytes = 4 << 10

// Validate reports every field that is out of bounds.
func (c Config) Validate() error {
	p := settings.Problems{settings.Validate(c)}
	p.Want(c.Dir != "", "dir: is empty: a directory is needed")
	return p.Err()
}

// Env holds the dependencies of a group, which the groups of a process share.
type Env struct {
	Kafka   topics.Kafka // configuration of all Kafka clients
	Streams *topics.Streams
	Log     *slog.Logger          // nil: no logging
	Metrics prometheus.Registerer // nil: no metrics
	Shared  *Shared               // nil: the group has its own cache, memtable budget and commit rate
}
