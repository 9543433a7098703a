package rows

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/smartfeed/smartfeed/topics"
)

// Runner runs a Group in this process.
type Runner struct {
	cfg        Config
	env        Env
	topo       *topology
	log        *slog.Logger
	shared     *Shared
	meter      *meter
	recordPool sync.Pool // of *flight
	slots      []slot    // by partition
	owned      atomic.Uint64
	running    atomic.Bool
	joined     atomic.Bool
	runs       atomic.Int64
	crash      func(point) // for tests; nil: none
	freeBytes  func(dir string) (int64, error)
	fs         vfs.FS
	idleAfter  time.Duration // a test sets less than the constant
	maxOffline time.Duration // how long a local store may be offline; 0: any time
}

// point is a place where tests can kill a process.
type point string

const (
	beforeEnd point = "before the end of the transaction"
	afterEnd  point = "after the end of the transaction"
)

// FatalError is an error that calling Run again does not fix. Its message says what an operator must do first.
type FatalError struct{ Err error }

// Error returns the message of the cause, which says what to do.
func (e *FatalError) Error() string { return e.Err.Error() }

// Unwrap returns the cause.
func (e *FatalError) Unwrap() error { return e.Err }

// Fatal returns true. The supervisor does not restart the group after such an error.
func (e *FatalError) Fatal() bool { return true }

// ErrAbandoned, as the cause of the context's cancellation, makes Run stop like a crash. Pending batches are dropped, and the
// local stores lose all rows that are not on disk. It is for tests.
var ErrAbandoned = errors.New("abandoned")

var errRunning = errors.New("the group is already running")

// New validates the topology and the configuration and returns a runner. It reports all problems.
func New(cfg Config, env Env, g Group) (*Runner, error) {
	if env.Streams == nil {
		return nil, errors.New("rows: no streams")
	}
	topo, err := newTopology(g, env.Kafka.Partitions, env.Streams.DeadLetters.Name)
	if env.Kafka.Partitions < 1 {
		err = errors.Join(err, fmt.Errorf("group %q: %d partitions", g.Name, env.Kafka.Partitions))
	}
	if err := errors.Join(cfg.Validate(), err); err != nil {
		return nil, fmt.Errorf("rows: %w", err)
	}
	r := &Runner{
		cfg: cfg, env: env, topo: topo, shared: env.Shared, freeBytes: freeBytes, fs: vfs.Default, idleAfter: idleAfter,
		recordPool: sync.Pool{New: func() any { return new(transactionRecords) }},
		slots:      make([]slot, env.Kafka.Partitions),
	}
	if !env.Kafka.Embedded { // the embedded broker keeps tombstones
		r.maxOffline = maxStoreOffline
	}
	r.log = cmp.Or(env.Log, slog.New(slog.DiscardHandler)).With("group", g.Name)
	if r.shared == nil {
		if r.shared, err = NewShared(cfg); err != nil {
			return nil, err
		}
	}
	if r.meter, err = newMeter(env.Metrics, g.Name); err != nil {
		return nil, err
	}
	r.shared.stores.Add(int64(env.Kafka.Partitions))
	return r, nil
}

// Run joins the group and processes records until ctx ends, when it returns nil, or until an error. The supervisor calls it
// again after an error, unless that is a *FatalError, which requires an action first.
func (r *Runner) Run(ctx context.Context) error {
	if !r.running.CompareAndSwap(false, true) {
		return fmt.Errorf("run %s: %w", r.topo.name, errRunning)
	}
	defer r.running.Store(false)
	defer r.joined.Store(false)
	r.runs.Add(1)
	if err := r.checkDisk(); err != nil {
		return fmt.Errorf("run %s: %w", r.topo.name, err)
	}
	g, err := newGroupRun(ctx, r)
	if err != nil {
		return fmt.Errorf("run %s: %w", r.topo.name, err)
	}
	defer g.close()
	if err := g.run(); err != nil {
		return fmt.Errorf("run %s: %w", r.topo.name, err)
	}
	return nil
}

// at is called where tests can kill the process.
func (r *Runner) at(where point) {
	if r.crash != nil {
		r.crash(where)
	}
}

// partitionOf returns the partition of an owner.
func (r *Runner) partitionOf(owner string) int32 { return topics.Partition(owner, r.topo.partitions) }
