package rows

import (
	"context"
	"sync/atomic"

	"github.com/lovoo/goka"

	"github.com/smartfeed/smartfeed/topics/generation"
)

// This file implements generations for rows; see package generation. A generation that is being built is silent: it applies
// every record, but drops the records that its callbacks emit. After a cut-over mark of an input, the new generation emits for
// the input, and the previous one is silent. Both store this in a row, in the transaction that applies the mark.

// emission is the set of inputs for which a partition emits.
type emission struct {
	emits  []bool      // by input; empty before recovery
	active atomic.Bool // whether the group's first input emits, and so do its timers
}

// isActive reports whether the records of an input emit. The ticks, which follow the last input, are like the first input.
func (e *emission) isActive(input int) bool { return len(e.emits) == 0 || e.emits[input%len(e.emits)] }

// set replaces the inputs that the partition emits for.
func (e *emission) set(emits []bool) {
	e.emits = emits
	e.active.Store(e.isActive(0))
}

// readEmission returns, by input, whether the partition emits for it. Before an input's first mark, only the first generation does.
func (p *partition) readEmission() ([]bool, error) {
	topo := p.run.r.topo
	emits := make([]bool, len(topo.inputs))
	for i, in := range topo.inputs {
		value, err := p.state.stored("", Name(emitsKind, in.topic))
		if err != nil {
			return nil, err
		}
		emits[i] = topo.generation == generation.First
		if value != nil {
			emits[i] = len(value) == 1 && value[0] != 0
		}
	}
	return emits, nil
}

// reasonCutOver counts marks that do not belong to the group's cut-over in progress.
const reasonCutOver = "cut_over_mark"

// applyMark applies a cut-over mark. It returns false for an ordinary record. A mark that does not belong to the group's cut-over in
// progress has no content: it is from another group, from an earlier cut-over, or forged. It is dropped and counted.
func (p *partition) applyMark(ctx goka.Context, input int, value []byte) (bool, error) {
	if ctx.Key() != "" || value != nil {
		return false, nil
	}
	mark, ok := generation.ParseMark(ctx.Headers()[generation.MarkHeader])
	if !ok || input == len(p.run.r.topo.inputs) {
		return false, nil
	}
	confirmed, err := p.run.confirms(p.ctx, mark)
	if err != nil {
		return false, err
	}
	if !confirmed {
		p.state.pending.counts = append(p.state.pending.counts, counted{name: reasonCutOver, n: 1, dropped: true})
		return true, nil
	}
	value = []byte{0}
	p.emission.emits[input] = mark.Number <= p.run.r.topo.generation
	if p.emission.emits[input] {
		value[0] = 1
	}
	p.emission.set(p.emission.emits)
	p.state.putReserved(Name(emitsKind, p.run.r.topo.inputs[input].topic), value, false)
	return true, nil
}

// confirms reports whether a mark belongs to the cut-over in progress of the group.
func (g *groupRun) confirms(ctx context.Context, mark generation.Mark) (bool, error) {
	if mark.Group != g.r.topo.base || mark.Number < g.r.topo.generation {
		return false, nil
	}
	ctx, cancel := context.WithTimeout(ctx, adminTimeout)
	defer cancel()
	return g.generations.Confirms(ctx, mark)
}

// emit adds an output record of the record being processed, and returns it. A silent generation drops it and returns nil. A nil
// value is a tombstone.
func (s *state) emit(topic uint16, partition int32, key string, value []byte, originTime int64) *emit {
	if s.silent {
		return nil
	}
	return s.pending.emit(topic, partition, key, value, originTime)
}

// Silent reports whether emitted records are dropped, because the group is a generation that is being built, or a previous one.
func (tx *Tx) Silent() bool { return tx.s.silent }

// Keep reports whether a new generation copies a changelog record of an owner; a nil value deletes a row.
type Keep func(owner, row, value []byte) bool

// Carries reports whether a new generation copies a changelog record: the rows that keep selects, the timers, and the applied offsets
// of the inputs, but not of the previous generation's ticks.
func Carries(key, value []byte, ticks string, keep Keep) bool {
	owner, row, found := ParseKey(key)
	switch {
	case !found:
		return false
	case len(owner) > 0:
		return keep(owner, row, value)
	}
	return row[0] == timerKind || row[0] == appliedKind && string(row[1:]) != ticks
}
