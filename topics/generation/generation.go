// Package generation is the state machine of a group's generations.
//
// A group can be rebuilt while it runs: another generation processes the same inputs under another name (Name), with separate
// rows, ticks and transactional ids, and emits nothing. The cut-over writes a Mark to each partition of each input. From the mark
// on, the new generation emits and the previous one does not, so exactly one of them emits for each input record.
//
// The Record of a group, on the compacted topic generations, is the whole state. Any process can therefore resume a build.
//
//	               Start                  CutOver
//	┌────────┐ ────────────▶ ┌──────────┐ ────────▶ ┌─────────────┐ ──┐ CutOver: a resumed
//	│ Stable │               │ Building │           │ CuttingOver │   │ run repeats the marks
//	└────────┘ ◀──────────── └──────────┘           └─────────────┘ ◀─┘
//	     ▲         Abort                                   │
//	     └─────────────────────────────────────────────────┘
//	                            Finish
//
//	Stable       Active serves reads and emits; there is no other generation
//	Building     Active serves reads and emits; Building processes the inputs and emits nothing
//	CuttingOver  marks may be in the inputs; in each partition of each input, Building emits from the mark on
//
// These packages use it:
//
//	topics                    reads and writes the record, and writes the marks
//	processors/rows           runs one generation, and applies the marks
//	app                       runs the generations of the record in each process, and reads the rows of the active one
//	internal/ops/generations  takes the steps: it copies rows before Start, and has the pools filled before CutOver
package generation

import (
	"crypto/rand"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// First is the number of the generation of a group that was never rebuilt.
const First = 1

// Record is the state of a group. It is published under the key Group, as JSON.
type Record struct {
	Group       string `json:"group"`
	Active      int    `json:"active"`                 // the generation that serves reads and emits
	Building    int    `json:"building,omitempty"`     // 0: none
	Command     string `json:"command,omitempty"`      // the command that started the build, and resumes it
	CuttingOver bool   `json:"cutting_over,omitempty"` // marks may have been written
	// Token is part of every mark of the cut-over to Building. Producers cannot read it before the first mark is written.
	Token string `json:"token,omitempty"`
}

// State is the state of a group's generations; see the package comment.
type State string

// The states of a group.
const (
	Stable      State = "stable"
	Building    State = "building"
	CuttingOver State = "cutting over"
)

// State returns the state.
func (r Record) State() State {
	switch {
	case r.Building == 0:
		return Stable
	case r.CuttingOver:
		return CuttingOver
	}
	return Building
}

// Step is a change of the state.
type Step string

// The steps.
const (
	Start   Step = "start"
	Abort   Step = "abort"
	CutOver Step = "cut over"
	Finish  Step = "finish"
)

// transitions are the steps that each state allows, with the next state.
var transitions = map[State]map[Step]State{
	Stable:      {Start: Building},
	Building:    {Abort: Stable, CutOver: CuttingOver},
	CuttingOver: {CutOver: CuttingOver, Finish: Stable},
}

// Start returns the record in which a generation is being built. number is above Active, and its topics exist. command is
// that of Record.
func (r Record) Start(number int, command string) (Record, error) {
	return r.transition(Start, Record{Group: r.Group, Active: r.Active, Building: number, Command: command, Token: rand.Text()})
}

// Abort returns the record without the generation that is being built.
func (r Record) Abort() (Record, error) {
	return r.transition(Abort, Record{Group: r.Group, Active: r.Active})
}

// CutOver returns the record that must be published before the first mark is written. It also allows another run to write the
// marks again, which changes nothing.
func (r Record) CutOver() (Record, error) {
	next := r
	next.CuttingOver = true
	return r.transition(CutOver, next)
}

// Finish returns the record in which the generation that was being built is active. Every mark must have been applied.
func (r Record) Finish() (Record, error) {
	return r.transition(Finish, Record{Group: r.Group, Active: r.Building})
}

// transition returns next if the state of r allows the step and next has the state that follows.
func (r Record) transition(step Step, next Record) (Record, error) {
	if to, allowed := transitions[r.State()][step]; !allowed || next.State() != to {
		return r, fmt.Errorf("generations of %s: %s is not possible while the state is %s", r.Group, step, r.State())
	}
	return next, nil
}

// Numbers returns the numbers of the generations that process the inputs, the active one first.
func (r Record) Numbers() []int {
	if r.Building == 0 {
		return []int{r.Active}
	}
	return []int{r.Active, r.Building}
}

// Retired returns the number of the group's generation with this name if it is neither active nor being built, and otherwise 0.
func (r Record) Retired(name string) int {
	number := Number(r.Group, name)
	if slices.Contains(r.Numbers(), number) {
		return 0
	}
	return number
}

// Confirms reports whether a mark belongs to the cut-over in progress. All readers must decide the same about a mark, regardless of
// when they read it. A producer does not know the token before the first mark is written. A copied mark changes nothing, because
// from then on the active generation may change at any record.
func (r Record) Confirms(m Mark) bool {
	return r.CuttingOver && m == Mark{Group: r.Group, Number: r.Building, Token: r.Token}
}

// Name returns the name of a generation, which is its consumer group and part of the names of its topics: "pools" for the first
// one of pools, and "pools.2" for the second.
func Name(group string, number int) string {
	if number <= First {
		return group
	}
	return Prefix(group) + strconv.Itoa(number)
}

// Prefix returns the prefix of the names of a group's later generations and of their topics.
func Prefix(group string) string { return group + "." }

// GroupOf returns the group of a name; see Name.
func GroupOf(name string) string {
	group, _, _ := strings.Cut(name, ".")
	return group
}

// Number returns the number of the group's generation with this name, or 0 if no generation has it.
func Number(group, name string) int {
	if name == group {
		return First
	}
	number, err := strconv.Atoi(strings.TrimPrefix(name, Prefix(group)))
	if err != nil || number <= First || Name(group, number) != name {
		return 0
	}
	return number
}
