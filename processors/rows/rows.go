package rows

import (
	"fmt"
	"slices"
	"time"

	"github.com/smartfeed/smartfeed/internal/convert"
	"github.com/smartfeed/smartfeed/internal/settings"
	"github.com/smartfeed/smartfeed/schemas"
	"github.com/smartfeed/smartfeed/topics"
	"github.com/smartfeed/smartfeed/topics/generation"
)

// Group is the topology of one group. Write it as one literal.
type Group struct {
	// Generation is the number of the group's generation, see generation.Name. 0 stands for the first. From the second
	// on, the group's name is Name and the number, and the group emits nothing until the cut-over.
	Generation int

	Name    string    // also the consumer group; the table is <name>-table
	Inputs  []Input   // Keyed, Owned, Batched, Loop
	Outputs []string  // every topic that callbacks emit to, except the loop and dead letters; an emit to another topic is an error
	Timer   TimerFunc // handles due timers; nil: the group sets none

	// Memory creates the value that Tx.Memory returns to the callbacks of a partition. nil: none. It is called when a callback first
	// requests the value, after the process has acquired the partition or has undone a callback that had requested it. Therefore the
	// value never reflects rows that were not committed.
	Memory func() any
}

// Input is an input topic of a group with its callback. See Keyed, Owned, Batched and Loop.
type Input struct {
	topic   string
	batched bool
	loop    bool
	defers  bool // see Deferred
	handle  func(tx *Tx, value []byte) error
}

// Keyed declares an input whose callback has access to the rows of the record's key and the common rows, and no others. If a value
// cannot be decoded, the record goes to the dead-letter topic, and the callback is not called. A record that a producer wrote
// to the wrong partition is forwarded to the right one.
func Keyed[T any](s topics.Stream[T], f func(tx *Tx, rec *T) error) Input {
	return Input{topic: s.Name, handle: decoded(s, f)}
}

// Owned is Keyed for records that name the owner of their rows: a record with another key is a bad record. what names the record in
// the reason, and kind names the owner.
func Owned[T any, ID ~string](s topics.Stream[T], what, kind string, owner func(*T) ID, f func(tx *Tx, rec *T) error) Input {
	return Keyed(s, func(tx *Tx, rec *T) error {
		if id := string(owner(rec)); id != tx.Key() {
			return schemas.Bad(fmt.Sprintf("%s: key %.64q: want the %s %.64q", what, tx.Key(), kind, id))
		}
		return f(tx, rec)
	})
}

// Batched declares an input that is produced to an explicit partition. Its callback may access rows of every owner in that
// partition. A record that names an owner in another partition is a bad record.
func Batched[T any](s topics.Stream[T], f func(tx *Tx, rec *T) error) Input {
	return Input{topic: s.Name, batched: true, handle: decoded(s, f)}
}

// Loop declares the group's own loop topic. Its callback has the same access as that of Keyed. A group has at most one loop.
// Callbacks emit to it although it is not in Outputs.
func Loop[T any](s topics.Stream[T], f func(tx *Tx, rec *T) error) Input {
	return Input{topic: s.Name, loop: true, handle: decoded(s, f)}
}

// Deferred returns the input with the property that the effects of its records may wait Config.DeferredCommitInterval for a commit.
// If records of other inputs arrive in the meantime, all are committed together. If all inputs of a group are deferred, so are its
// ticks, and brokers collect its records for at most Config.FetchMaxWait.
func (in Input) Deferred() Input {
	in.defers = true
	return in
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

// TimerFunc handles a due timer of an owner. name and at are those passed to SetTimer. The timer is removed in the
// callback's transaction. If TimerFunc returns a *schemas.BadRecordError, the timer goes to the dead-letter topic, with the
// owner as key and the timer's name as value.
type TimerFunc func(tx *Tx, owner Owner, name []byte, at time.Time) error

// topology is a validated Group with derived values.
type topology struct {
	name        string // of the generation
	base        string // of the group
	generation  int
	table       string
	ticks       string // "": the group has no timers
	deadLetters string
	partitions  int32
	inputs      []Input
	timer       TimerFunc
	memory      func() any // nil: none
	outputs     map[string]uint16
	outputNames []string // by the index in outputs
}

// newTopology validates a group. It reports all problems.
func newTopology(g Group, partitions int32, deadLetters string) (*topology, error) {
	number := max(g.Generation, generation.First)
	name := generation.Name(g.Name, number)
	t := &topology{
		name: name, base: g.Name, generation: number, table: topics.TableOf(name), deadLetters: deadLetters, partitions: partitions,
		inputs: g.Inputs, timer: g.Timer, memory: g.Memory, outputs: map[string]uint16{},
	}
	outputs := append([]string{deadLetters}, g.Outputs...)
	var p settings.Problems
	seen := map[string]bool{t.table: true}
	p.Want(g.Name != "", "name: empty")
	p.Want(len(g.Inputs) > 0, "inputs: none, want at least one")
	loops := 0
	for _, in := range g.Inputs {
		p.Want(in.topic != "" && !seen[in.topic], "input %q: empty, declared twice, or the group's table", in.topic)
		seen[in.topic] = true
		if in.loop {
			loops++
			outputs = append(outputs, in.topic)
			p.Want(in.topic == loopOf(name), "loop %q: want %s, the name that Goka requires", in.topic, loopOf(name))
		}
	}
	p.Want(loops <= 1, "%d loop topics, want at most one", loops)
	if g.Timer != nil {
		t.ticks = topics.TicksOf(name)
		outputs = append(outputs, t.ticks)
	}
	for _, topic := range outputs {
		p.Want(topic != "" && topic != t.table, "output %q: empty, or the group's table", topic)
		if _, declared := t.outputs[topic]; !declared {
			t.outputs[topic] = uint16(len(t.outputNames))
			t.outputNames = append(t.outputNames, topic)
		}
	}
	if err := p.Err(); err != nil {
		return nil, fmt.Errorf("group %q: %w", g.Name, err)
	}
	return t, nil
}

func loopOf(group string) string { return group + "-loop" }

// Reads returns the topics that the group reads, including its ticks if it has a Timer.
func (g Group) Reads() []string {
	t := topology{inputs: g.Inputs}
	if g.Timer != nil {
		t.ticks = topics.TicksOf(generation.Name(g.Name, g.Generation))
	}
	return t.reads()
}

// defers reports whether the effects of an input's records may wait. The input after the last one is that of the ticks.
func (t *topology) defers(input int) bool {
	if input < len(t.inputs) {
		return t.inputs[input].defers
	}
	return t.defersAll()
}

// defersAll reports whether the effects of all inputs may wait.
func (t *topology) defersAll() bool {
	return !slices.ContainsFunc(t.inputs, func(in Input) bool { return !in.defers })
}

// reads returns the topics that the group reads, with the ticks last.
func (t *topology) reads() []string {
	names := convert.All(t.inputs, func(in Input) string { return in.topic })
	if t.ticks != "" {
		names = append(names, t.ticks)
	}
	return names
}
