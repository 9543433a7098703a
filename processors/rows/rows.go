package rows

import (
	"errors"
	"fmt"
	"time"

	"github.com/smartfeed/smartfeed/topics"
)

// Group is the topology of one group, one literal.
type Group struct {
	// Generation numbers the group among those that were built anew beside one another; 0 is the first. From the second
	// on its name is Name and the number, see topics.GenerationName, and it is silent until the cut-over.
	Generation int

	Name    string    // also the consumer group; its table is <name>-table
	Inputs  []Input   // Keyed, Batched, Loop
	Outputs []string  // every topic that callbacks emit to; an emit elsewhere is an error. Loop and dead letters go without saying
	Timer   TimerFunc // works off due timers; nil: the group sets none

	// Memory makes what Tx.Memory returns to the callbacks of a partition; nil: nothing. It is made anew whenever the
	// partition is taken over, also after an error: so it never knows of rows that were not committed after all. What a
	// callback changes in it stays changed when its record is undone.
	Memory func() any
}

// Input is one topic of a group with its callback; see Keyed and Batched.
type Input struct {
	topic   string
	batched bool
	loop    bool
	handle  func(tx *Tx, value []byte) error
}

// Keyed declares an input whose callback may touch rows of the record's key only, and the common ones. A value that cannot
// be decoded goes to the dead letters without the callback being called. A record that another client has put into the wrong
// partition is sent on to the right one.
func Keyed[T any](s topics.Stream[T], f func(tx *Tx, rec *T) error) Input {
	return Input{topic: s.Name, handle: decoded(s, f)}
}

// Batched declares an input that is produced to an explicit partition; its callback may touch rows of every owner of
// that partition. A record that names one of another partition is a bad one.
func Batched[T any](s topics.Stream[T], f func(tx *Tx, rec *T) error) Input {
	return Input{topic: s.Name, batched: true, handle: decoded(s, f)}
}

// Loop declares the group's own loop topic, keyed like an input. At most one a group. Callbacks emit to it without
// it being declared among the outputs.
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
// itself is gone when the callback's transaction commits. Like any callback's, a *schemas.BadRecordError sends it to
// the dead letters, with the owner as the key and the timer's name as the value.
type TimerFunc func(tx *Tx, owner Owner, name []byte, at time.Time) error

// topology is a checked Group with what follows from it.
type topology struct {
	name        string // of the generation
	base        string // of the group
	generation  int
	table       string
	ticks       string // "": no timers
	deadLetters string
	partitions  int32
	inputs      []Input
	timer       TimerFunc
	memory      func() any // nil: none
	outputs     map[string]uint16
	outputNames []string // by index in outputs
}

// newTopology reports every problem of the group at once.
func newTopology(g Group, partitions int32, deadLetters string) (*topology, error) {
	number := max(g.Generation, topics.FirstGeneration)
	name := topics.GenerationName(g.Name, number)
	t := &topology{
		name: name, base: g.Name, generation: number, table: topics.TableOf(name), deadLetters: deadLetters, partitions: partitions,
		inputs: g.Inputs, timer: g.Timer, memory: g.Memory, outputs: map[string]uint16{},
	}
	outputs := append([]string{deadLetters}, g.Outputs...)
	var errs []error
	seen := map[string]bool{t.table: true}
	if g.Name == "" {
		errs = append(errs, errors.New("group without a name"))
	}
	if len(g.Inputs) == 0 {
		errs = append(errs, errors.New("no input"))
	}
	loops := 0
	for _, in := range g.Inputs {
		if in.topic == "" || seen[in.topic] {
			errs = append(errs, fmt.Errorf("input %q: empty, declared twice, or the group's table", in.topic))
		}
		seen[in.topic] = true
		if in.loop {
			loops++
			outputs = append(outputs, in.topic)
			if in.topic != loopOf(name) {
				errs = append(errs, fmt.Errorf("loop %q: Goka names it %s", in.topic, loopOf(name)))
			}
		}
	}
	if loops > 1 {
		errs = append(errs, fmt.Errorf("%d loop topics: at most one", loops))
	}
	if g.Timer != nil {
		t.ticks = topics.TicksOf(name)
		outputs = append(outputs, t.ticks)
	}
	for _, topic := range outputs {
		if topic == "" || topic == t.table {
			errs = append(errs, fmt.Errorf("output %q: empty, or the group's table", topic))
		}
		if _, declared := t.outputs[topic]; declared {
			continue
		}
		t.outputs[topic] = uint16(len(t.outputNames))
		t.outputNames = append(t.outputNames, topic)
	}
	if err := errors.Join(errs...); err != nil {
		return nil, fmt.Errorf("group %q: %w", g.Name, err)
	}
	return t, nil
}

func loopOf(group string) string { return group + "-loop" }

// Reads returns the topics that the group reads, its ticks among them if it has a Timer.
func (g Group) Reads() []string {
	t := topology{inputs: g.Inputs}
	if g.Timer != nil {
		t.ticks = topics.TicksOf(topics.GenerationName(g.Name, g.Generation))
	}
	return t.reads()
}

// reads returns the topics that the group reads, ticks last.
func (t *topology) reads() []string {
	var names []string
	for _, in := range t.inputs {
		names = append(names, in.topic)
	}
	if t.ticks != "" {
		names = append(names, t.ticks)
	}
	return names
}
