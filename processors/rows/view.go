package rows

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/cockroachdb/pebble/v2"

	"github.com/smartfeed/smartfeed/internal/stored"
	"github.com/smartfeed/smartfeed/schemas"
)

// View reads the committed rows of the partitions that this process owns and has recovered. It never blocks writers.
type View struct{ r *Runner }

// View returns a view of the group. It can be created before Run, and used across several calls of Run.
func (r *Runner) View() *View { return &View{r} }

// NotOwnerError is returned when this process does not own an owner's partition.
type NotOwnerError struct {
	Group     string
	Owner     string
	Partition int32
}

// Error returns a message with the group, the partition and the owner.
func (e *NotOwnerError) Error() string {
	return fmt.Sprintf("%s: this process does not own partition %d of %q", e.Group, e.Partition, e.Owner)
}

// Unwrap returns schemas.ErrNotOwner, which callers can check without importing this package.
func (e *NotOwnerError) Unwrap() error { return schemas.ErrNotOwner }

// Snapshot holds one owner's rows as of one commit of its partition.
type Snapshot interface {
	// Get returns a copy of the value of a row, or nil if there is none.
	Get(row []byte) ([]byte, error)
	// Scan visits rows in order until visit returns false. visit must not keep its arguments.
	Scan(s Scan, visit func(row, value []byte) bool) error
	// Applied returns the offset of the last record of an input topic that the snapshot reflects, or -1 for none.
	Applied(topic string) int64
	// Session returns a number for the period in which this process has owned the partition without interruption. It never
	// repeats within a process.
	Session() uint64
	// Since returns the time since when no other process can have owned the partition. Consecutive sessions of this process
	// count as one if each consumer-group generation in between assigned the partition to it.
	Since() time.Time
	// Partition returns the owner's partition.
	Partition() int32
}

// slot holds the state of a partition that this process may own.
type slot struct {
	mu         sync.RWMutex // readers hold it, which keeps the store open
	partition  *partition   // nil: not owned, or not yet recovered
	store      *store       // open; nil: none
	stage      Stage
	generation int32     // last consumer-group generation that assigned the partition to this process; 0: none
	ownerSince time.Time // when the first of these generations without a gap started
	waitMu     sync.Mutex
	waiting    chan struct{} // closed at the next change; nil: there are no waiters
}

// Read calls f with a consistent snapshot of the owner's rows. It returns a *NotOwnerError, or the error of f. The partition
// cannot be handed over before f returns, so f must not block.
func (v *View) Read(ctx context.Context, owner string, f func(Snapshot) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := checkOwner(owner); err != nil {
		return err
	}
	partition := v.r.partitionOf(owner)
	at := &v.r.slots[partition]
	at.mu.RLock()
	defer at.mu.RUnlock()
	if at.partition == nil {
		return &NotOwnerError{Group: v.r.topo.name, Owner: owner, Partition: partition}
	}
	s := &snapshot{rows: at.partition.db.NewSnapshot(), partition: at.partition, owner: owner}
	err := f(s)
	if closed := s.close(); err == nil {
		err = closed
	}
	return err
}

// Reader reads the committed rows of the partitions that this process owns. *View implements it.
type Reader interface {
	Read(ctx context.Context, owner string, f func(Snapshot) error) error
}

// HasRows reports whether an owner has any row. It returns a *NotOwnerError if this process does not own the owner's partition.
func HasRows(ctx context.Context, r Reader, owner string) (found bool, err error) {
	err = r.Read(ctx, owner, func(s Snapshot) error {
		return s.Scan(Scan{Limit: 1}, func(_, _ []byte) bool {
			found = true
			return false
		})
	})
	return found, err
}

// Owners visits the owners in a partition whose names start with prefix, in order, until visit returns false. prefix must not
// be empty. It returns a *NotOwnerError if this process does not own the partition.
func (v *View) Owners(ctx context.Context, partition int32, prefix string, visit func(owner string) bool) error {
	partitions := int32(len(v.r.slots))
	if partition < 0 || partition >= partitions {
		return &NotOwnerError{Group: v.r.topo.name, Owner: prefix, Partition: partition}
	}
	return v.Read(ctx, CommonOwner(partition, partitions), func(s Snapshot) error {
		it, err := s.(*snapshot).rows.NewIter(&pebble.IterOptions{LowerBound: []byte(prefix), UpperBound: prefixEnd([]byte(prefix))})
		if err != nil {
			return fmt.Errorf("list owners: %w", err)
		}
		for ok := it.First(); ok; {
			owner, _, _ := ParseKey(it.Key())
			if !visit(string(owner)) {
				break
			}
			ok = it.SeekGE(append(slices.Clone(owner), separator+1)) // after the owner's rows
		}
		return errors.Join(it.Error(), it.Close())
	})
}

// Changed returns a channel that is closed when the owner's partition next applies a commit, is acquired or is lost. Call it
// before reading the rows whose change you wait for.
func (v *View) Changed(owner string) <-chan struct{} {
	at := &v.r.slots[v.r.partitionOf(owner)]
	at.waitMu.Lock()
	defer at.waitMu.Unlock()
	if at.waiting == nil {
		at.waiting = make(chan struct{})
	}
	return at.waiting
}

// assigned records that a consumer-group generation assigns a partition to this process. It returns the time for
// Snapshot.Since.
func (r *Runner) assigned(partition, turn int32) time.Time {
	at := &r.slots[partition]
	at.mu.Lock()
	defer at.mu.Unlock()
	if at.generation == 0 || turn != at.generation+1 {
		at.ownerSince = time.Now()
	}
	at.generation = turn
	return at.ownerSince
}

// storeOpened records that a partition's store is open.
func (r *Runner) storeOpened(partition int32, s *store, stage Stage) {
	at := &r.slots[partition]
	at.mu.Lock()
	defer at.mu.Unlock()
	at.store, at.stage = s, stage
}

// storeClosed records that a store is closed.
func (r *Runner) storeClosed(s *store) {
	at := &r.slots[s.identity.Partition]
	at.mu.Lock()
	defer at.mu.Unlock()
	if at.store == s {
		at.store = nil
	}
}

// show makes a partition readable for views.
func (r *Runner) show(p *partition) {
	at := &r.slots[p.id]
	at.mu.Lock()
	at.partition, at.stage = p, StageRunning
	at.mu.Unlock()
	r.changed(p.id)
}

// hide waits for readers of a partition and makes it unreadable.
func (r *Runner) hide(p *partition) {
	at := &r.slots[p.id]
	at.mu.Lock()
	was := at.partition == p
	if was {
		at.partition = nil
	}
	at.mu.Unlock()
	if was {
		r.changed(p.id)
	}
}

// changed wakes the waiters of a partition.
func (r *Runner) changed(partition int32) {
	at := &r.slots[partition]
	at.waitMu.Lock()
	defer at.waitMu.Unlock()
	if at.waiting != nil {
		close(at.waiting)
		at.waiting = nil
	}
}

type snapshot struct {
	rows      *pebble.Snapshot
	partition *partition
	owner     string
	idle      *pebble.Iterator // of a completed scan, for reuse: creating one costs as much as visiting fifty rows
}

func (s *snapshot) close() error {
	if s.idle == nil {
		return s.rows.Close()
	}
	return errors.Join(s.idle.Close(), s.rows.Close())
}

func (s *snapshot) Get(row []byte) ([]byte, error) { return s.get(s.owner, row) }

func (s *snapshot) get(owner string, row []byte) ([]byte, error) {
	key := append(append(append(make([]byte, 0, len(owner)+1+len(row)), owner...), separator), row...)
	value, err := stored.Row(s.rows, key)
	if err != nil {
		return nil, fmt.Errorf("read row of %q: %w", owner, s.partition.check(err))
	}
	return value, nil
}

func (s *snapshot) Scan(sc Scan, visit func(row, value []byte) bool) error {
	c, err := newStoreCursor(s, s.owner, sc)
	if err == nil {
		err = errors.Join(c.walk(sc.Limit, visit), s.keepIterator(c.it))
	}
	if err != nil {
		return fmt.Errorf("scan rows of %q: %w", s.owner, s.partition.check(err))
	}
	return nil
}

// NewIter returns the idle iterator with new bounds, or a new iterator if none is idle.
func (s *snapshot) NewIter(o *pebble.IterOptions) (*pebble.Iterator, error) {
	it := s.idle
	if it == nil {
		return s.rows.NewIter(o)
	}
	s.idle = nil
	it.SetBounds(o.LowerBound, o.UpperBound)
	return it, nil
}

// keepIterator keeps an iterator for the next scan, unless it has failed or one is already kept: scans can be nested.
func (s *snapshot) keepIterator(it *pebble.Iterator) error {
	if err := it.Error(); err != nil || s.idle != nil {
		return errors.Join(err, it.Close())
	}
	s.idle = it
	return nil
}

func (s *snapshot) Applied(topic string) int64 {
	value, err := s.get("", Name(appliedKind, topic))
	if err != nil || value == nil {
		return -1
	}
	at, err := parsePosition(value)
	if err != nil {
		return -1
	}
	return at.offset
}

func (s *snapshot) Session() uint64  { return s.partition.sessionNumber }
func (s *snapshot) Since() time.Time { return s.partition.ownerSince }
func (s *snapshot) Partition() int32 { return s.partition.id }
