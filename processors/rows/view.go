package rows

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/cockroachdb/pebble/v2"

	"github.com/smartfeed/smartfeed/internal/stored"
	"github.com/smartfeed/smartfeed/schemas"
)

// View is a read-only window on the committed rows of the local, recovered partitions of a group. It never blocks
// writers.
type View struct{ r *Runner }

// View reads the rows of partitions that this process owns. It may be taken before Run, and used across its calls.
func (r *Runner) View() *View { return &View{r} }

// NotHereError says that an owner's partition is not one of this process at the moment.
type NotHereError struct {
	Group     string
	Owner     string
	Partition int32
}

// Error names the group, the partition and whose it is.
func (e *NotHereError) Error() string {
	return fmt.Sprintf("%s: partition %d of %q is not here", e.Group, e.Partition, e.Owner)
}

// Unwrap tells readers who know nothing of rows.
func (e *NotHereError) Unwrap() error { return schemas.ErrElsewhere }

// Snapshot is one owner's rows at one commit of its partition.
type Snapshot interface {
	// Get returns a copy of the value of a row, nil if there is none.
	Get(row []byte) ([]byte, error)
	// Scan visits rows in order until visit returns false; what it hands out must not be kept.
	Scan(s Scan, visit func(row, value []byte) bool) error
	// Applied returns the offset of the last record of an input topic whose effect the snapshot holds, -1 for none.
	Applied(topic string) int64
	// Session numbers the stretch of time for which this process has owned the partition without a break. It never
	// repeats within a process.
	Session() uint64
	// Since is from when on no other process can have had the partition: sessions that followed one another here count as
	// one where the group had no turn without this process in between.
	Since() time.Time
	// Partition is the owner's partition.
	Partition() int32
}

// slot is the place of a partition that may be here or not.
type slot struct {
	mu      sync.RWMutex // readers hold it while they read: the store stays open
	part    *part        // nil: not here, or not yet recovered
	store   *store       // open; nil: not here
	stage   Stage
	turn    int32     // of the group, the newest in which the partition was given to this process; 0: none
	since   time.Time // when the first of the turns without a break began
	waitMu  sync.Mutex
	waiting chan struct{} // closed at the next change; nil: nobody waits
}

// Read calls f with a consistent snapshot of the owner's rows. It fails with a *NotHereError, or with what f returns.
// The partition cannot be handed over before f returns: f is for reading, not for waiting.
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
	if at.part == nil {
		return &NotHereError{Group: v.r.topo.name, Owner: owner, Partition: partition}
	}
	s := &snapshot{rows: at.part.db.NewSnapshot(), part: at.part, owner: owner}
	err := f(s)
	if closed := s.close(); err == nil {
		err = closed
	}
	return err
}

// Changed returns a channel that is closed when the owner's partition next applies a commit, arrives or is lost. Take
// it before reading what is to change.
func (v *View) Changed(owner string) <-chan struct{} {
	at := &v.r.slots[v.r.partitionOf(owner)]
	at.waitMu.Lock()
	defer at.waitMu.Unlock()
	if at.waiting == nil {
		at.waiting = make(chan struct{})
	}
	return at.waiting
}

// given notes that a turn of the group gives a partition to this process, and returns since when none gave it to another.
func (r *Runner) given(partition, turn int32) time.Time {
	at := &r.slots[partition]
	at.mu.Lock()
	defer at.mu.Unlock()
	if at.turn == 0 || turn != at.turn+1 {
		at.since = time.Now()
	}
	at.turn = turn
	return at.since
}

// came notes that a partition's store is open.
func (r *Runner) came(partition int32, s *store, stage Stage) {
	at := &r.slots[partition]
	at.mu.Lock()
	defer at.mu.Unlock()
	at.store, at.stage = s, stage
}

// left notes that a store is closed.
func (r *Runner) left(s *store) {
	at := &r.slots[s.who.Partition]
	at.mu.Lock()
	defer at.mu.Unlock()
	if at.store == s {
		at.store = nil
	}
}

// show lets views read a partition.
func (r *Runner) show(p *part) {
	at := &r.slots[p.id]
	at.mu.Lock()
	at.part, at.stage = p, StageRunning
	at.mu.Unlock()
	r.meter.owned.Add(p.activity.setHere(true))
	r.changed(p.id)
}

// hide waits for readers of a partition, and lets in no more.
func (r *Runner) hide(p *part) {
	at := &r.slots[p.id]
	at.mu.Lock()
	was := at.part == p
	if was {
		at.part = nil
	}
	at.mu.Unlock()
	if was {
		r.meter.owned.Add(p.activity.setHere(false))
		r.changed(p.id)
	}
}

// changed wakes who waits for a partition.
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
	rows  *pebble.Snapshot
	part  *part
	owner string
	idle  *pebble.Iterator // of a scan that is over, for the next one: to make one costs as much as to visit fifty rows
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
		return nil, fmt.Errorf("read row of %q: %w", owner, s.part.check(err))
	}
	return value, nil
}

func (s *snapshot) Scan(sc Scan, visit func(row, value []byte) bool) error {
	c, err := newStoreCursor(s, s.owner, sc)
	if err == nil {
		err = errors.Join(c.walk(sc.Limit, visit), s.leave(c.it))
	}
	if err != nil {
		return fmt.Errorf("scan rows of %q: %w", s.owner, s.part.check(err))
	}
	return nil
}

// NewIter returns the iterator of the scan before, moved to other bounds, if it is free.
func (s *snapshot) NewIter(o *pebble.IterOptions) (*pebble.Iterator, error) {
	it := s.idle
	if it == nil {
		return s.rows.NewIter(o)
	}
	s.idle = nil
	it.SetBounds(o.LowerBound, o.UpperBound)
	return it, nil
}

// leave keeps an iterator for the next scan, if it is sound, and there is not one already: scans may be within scans.
func (s *snapshot) leave(it *pebble.Iterator) error {
	if err := it.Error(); err != nil || s.idle != nil {
		return errors.Join(err, it.Close())
	}
	s.idle = it
	return nil
}

func (s *snapshot) Applied(topic string) int64 {
	value, err := s.get("", appliedName(topic))
	if err != nil || value == nil {
		return -1
	}
	at, err := parsePosition(value)
	if err != nil {
		return -1
	}
	return at.offset
}

func (s *snapshot) Session() uint64  { return s.part.number }
func (s *snapshot) Since() time.Time { return s.part.alone }
func (s *snapshot) Partition() int32 { return s.part.id }
