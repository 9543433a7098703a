// Package rows makes a Goka group exactly once, on many small ordered rows per owner.
//
// (The contract of the package goes here: see the package's own documentation when it is complete.)
package rows

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/smartfeed/smartfeed/schemas"
	"github.com/smartfeed/smartfeed/topics"
)

// Group is the topology of one group, one literal.
type Group struct {
	Name    string    // also the consumer group; its table is <name>-table
	Inputs  []Input   // Keyed, Batched, Loop
	Outputs []string  // every topic that callbacks emit to; an emit elsewhere is an error
	Timer   TimerFunc // works off due timers; nil: the group sets none
}

// Input is one topic of a group with its callback; see Keyed and Batched.
type Input struct {
	topic   string
	batched bool
	loop    bool
	handle  func(tx *Tx, value []byte) error
}

// Keyed declares an input whose callback may touch rows of the record's key only. A value that cannot be decoded goes
// to the dead letters without the callback being called.
func Keyed[T any](s topics.Stream[T], f func(tx *Tx, rec *T) error) Input {
	return Input{topic: s.Name, handle: decoded(s, f)}
}

// Batched declares an input that is produced to an explicit partition; its callback may touch rows of every owner of
// that partition.
func Batched[T any](s topics.Stream[T], f func(tx *Tx, rec *T) error) Input {
	return Input{topic: s.Name, batched: true, handle: decoded(s, f)}
}

// Loop declares the group's own loop topic, keyed like an input. At most one a group.
func Loop[T any](s topics.Stream[T], f func(tx *Tx, rec *T) error) Input {
	return Input{topic: s.Name, loop: true, handle: decoded(s, f)}
}

func decoded[T any](s topics.Stream[T], f func(tx *Tx, rec *T) error) func(*Tx, []byte) error {
	return func(tx *Tx, value []byte) error {
		rec, err := s.Decode(value)
		if err != nil {
			return err
		}
		return f(tx, rec)
	}
}

// TimerFunc works off one due timer of an owner: the row name it was set under, and the time it was set for. The timer
// itself is gone when the callback's transaction commits.
type TimerFunc func(tx *Tx, owner Owner, name []byte, at time.Time) error

// Tx is what a callback sees: the rows it may touch, the topics it may emit to, and the record's own time. It is valid
// until the callback returns. What a callback wrote counts only if it returns nil; a *schemas.BadRecordError sends the
// record to the dead letters and undoes the callback's writes; any other error stops the partition, and the supervisor
// starts it again from the same record.
type Tx struct{}

// Own returns the rows of the record's key. Of a batched input it is an error to use them.
func (tx *Tx) Own() Owner { return Owner{} }

// Of returns the rows of an owner: of a keyed input only the record's key, of a batched one any owner of the partition;
// using the rows of another is an error.
func (tx *Tx) Of(owner string) Owner { return Owner{} }

// Key returns the record's key.
func (tx *Tx) Key() string { return "" }

// Partition returns the partition that the record is in.
func (tx *Tx) Partition() int32 { return 0 }

// Time returns the record's timestamp: the only now there is in a callback.
func (tx *Tx) Time() time.Time { return time.Time{} }

// Emit sends value to a declared topic under key, to the partition of key. Its errors (undeclared topic, bounds) also
// fail the callback if they are ignored.
func (tx *Tx) Emit(topic, key string, value []byte) error { return errors.ErrUnsupported }

// EmitTo sends value to one partition of a declared topic.
func (tx *Tx) EmitTo(topic string, partition int32, key string, value []byte) error {
	return errors.ErrUnsupported
}

// Count adds one to the group's counter of records dropped on purpose, by reason: a fixed, short set of words.
func (tx *Tx) Count(reason string) {}

// Send encodes rec and emits it to the stream's topic under key.
func Send[T any](tx *Tx, s topics.Stream[T], key string, rec *T) error {
	value, err := s.Encode(rec)
	if err != nil {
		return fmt.Errorf("encode %s: %w", s.Name, err)
	}
	return tx.Emit(s.Name, key, value)
}

// Owner is the rows of one owner, ordered by row name. Rows and values are copied when put; what Get and Scan hand out
// must not be kept or changed after the callback (Get) or the visit (Scan).
type Owner struct{}

// Get returns the value of a row, nil if there is none. (An empty value is not nil.)
func (o Owner) Get(row []byte) ([]byte, error) { return nil, errors.ErrUnsupported }

// Put writes a row. A row outside what the input allows, or over the bounds, fails the callback even if the error is
// ignored.
func (o Owner) Put(row, value []byte) error { return errors.ErrUnsupported }

// Delete removes a row; to remove what is not there is no error.
func (o Owner) Delete(row []byte) error { return errors.ErrUnsupported }

// Scan visits rows in order, its own callback's writes included, until visit returns false.
func (o Owner) Scan(s Scan, visit func(row, value []byte) bool) error { return errors.ErrUnsupported }

// SetTimer has the group's TimerFunc called with name once at has passed on the broker's clock. A second timer of the
// same owner, name and time is the same timer.
func (o Owner) SetTimer(at time.Time, name []byte) error { return errors.ErrUnsupported }

// DropTimer takes a timer back.
func (o Owner) DropTimer(at time.Time, name []byte) error { return errors.ErrUnsupported }

// Scan says which rows of an owner to visit.
type Scan struct {
	Prefix  []byte // only rows that start with it; nil: all
	From    []byte // forward: rows >= From; reverse: rows <= From; nil: from the end
	Reverse bool
	Limit   int // 0: no limit
}

// Config is what a process gives to each of its groups. See DefaultConfig.
type Config struct {
	Dir     string        // local stores live in Dir/<group>-table/<partition>
	Standby bool          // keep hot copies of partitions owned by others
	Gap     time.Duration // least time between the starts of two commits of a partition, default 10 ms
}

// Env are the collaborators of a group, shared by the groups of a process.
type Env struct {
	Kafka   topics.Kafka // how to reach the brokers; makes every client
	Streams *topics.Streams
	Log     *slog.Logger
	Metrics prometheus.Registerer
}

// Runner runs a Group in this process.
type Runner struct{}

// New checks the topology and the configuration and prepares a runner. All problems are reported at once.
func New(cfg Config, env Env, g Group) (*Runner, error) { return nil, errors.ErrUnsupported }

// Run joins the group and works until ctx ends (nil) or something breaks (the error). It can be called again after it
// returned: the supervisor does.
func (r *Runner) Run(ctx context.Context) error { return errors.ErrUnsupported }

// View reads the rows of partitions that this process owns.
func (r *Runner) View() *View { return nil }

// View is a read-only window on the committed rows of the local, recovered partitions of a group. It never blocks
// writers.
type View struct{}

// NotHereError says that an owner's partition is not one of this process at the moment.
type NotHereError struct {
	Group     string
	Owner     string
	Partition int32
}

func (e *NotHereError) Error() string {
	return fmt.Sprintf("%s: partition %d of %q is not here", e.Group, e.Partition, e.Owner)
}

// Read calls f with a consistent snapshot of the owner's rows. It fails with a *NotHereError, or with what f returns.
func (v *View) Read(ctx context.Context, owner string, f func(Snapshot) error) error {
	return errors.ErrUnsupported
}

// Changed returns a channel that is closed when the owner's partition next applies a commit, or is lost.
func (v *View) Changed(owner string) <-chan struct{} { return nil }

// Snapshot is one owner's rows at one commit of its partition.
type Snapshot interface {
	Get(row []byte) ([]byte, error)
	Scan(s Scan, visit func(row, value []byte) bool) error
	// Applied returns the offset of the last record of an input topic whose effect the snapshot holds, -1 for none.
	Applied(topic string) int64
	// Session numbers the stretch of time for which this process has owned the partition without a break. It never
	// repeats within a process.
	Session() uint64
	// Partition is the owner's partition.
	Partition() int32
}

var _ = schemas.Bad
