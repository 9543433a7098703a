package rows

import (
	"fmt"
	"time"
)

// If a log starts after the last applied offset, retention has deleted records, or only transaction markers and aborted
// records. The consumer delivers neither, so after their deletion the two cases look the same. Therefore each partition
// checks its idle inputs: it reads the log after the last applied record, and counts markers and aborted records as applied.
//
// One case remains: the process stops between the last record and this check, and stays down for longer than the retention.
// Then the group fails to start as if records were lost.

const (
	idleAfter    = 10 * time.Second // an input without new records for this long is checked
	recheckAfter = 60               // … and again after this many intervals, because aborted records may have been added
)

// watchIdleInputs checks idle inputs until the partition is closed.
func (p *part) watchIdleInputs() {
	ticker := time.NewTicker(p.w.r.idleAfter)
	defer ticker.Stop()
	inputs := make([]idleInput, len(p.w.r.topo.reads()))
	for {
		select {
		case <-ticker.C:
		case <-p.ctx.Done():
			return
		}
		p.checkIdleInputs(inputs)
	}
}

// checkIdleInputs checks the idle inputs.
func (p *part) checkIdleInputs(inputs []idleInput) {
	left := time.Time{}
	for i, topic := range p.w.r.topo.reads() {
		p.checkIdleInput(i, topic, &inputs[i])
		if at := inputs[i].undelivered; left.IsZero() || !at.IsZero() && at.Before(left) {
			left = at
		}
	}
	p.inFlight.setUndelivered(left)
}

// checkIdleInput checks an input, if it is idle and the check is due.
func (p *part) checkIdleInput(input int, topic string, r *idleInput) {
	if !r.due(p.appliedOf(input)) {
		return
	}
	left, err := p.passMarkers(input, topic)
	if err != nil && p.ctx.Err() == nil {
		p.w.r.log.Debug("check of an idle input failed, it is repeated", "topic", topic, "partition", p.id, "error", err)
	}
	if left {
		r.undelivered = time.Now()
	}
}

// idleInput is the state of the checks of one input.
type idleInput struct {
	applied     int64     // at the last interval
	intervals   int       // intervals since it changed
	undelivered time.Time // when a check last found unprocessed records; zero: none did
}

// due is called once per interval. It reports whether to check the input now.
func (r *idleInput) due(applied int64) bool {
	if applied != r.applied {
		*r = idleInput{applied: applied}
		return false
	}
	r.intervals++
	return r.intervals%recheckAfter == 1
}

// passMarkers advances the applied offset of an input over markers and aborted records, up to the next record to be applied.
// It reports whether there is such a record.
func (p *part) passMarkers(input int, topic string) (left bool, err error) {
	applied := p.appliedOf(input)
	if applied < 0 {
		return false, nil // the group reads it from the start of the log anyway
	}
	next := applied + 1
	for {
		records, to, err := p.w.log.Read(p.ctx, topic, p.id, next)
		if err != nil {
			return false, fmt.Errorf("read after the applied records: %w", err)
		}
		if len(records) > 0 { // handle will process them, and thereby pass the markers before them
			return true, nil
		}
		if to == next {
			break
		}
		next = to
	}
	starts, err := p.w.log.Starts(p.ctx, topic)
	if err != nil {
		return false, fmt.Errorf("read after the applied records: %w", err)
	}
	if starts[topic][p.id] <= applied+1 { // otherwise the read started at the log's start, and earlier records are lost
		p.passed(input, applied, next-1)
	}
	return false, nil
}

func (p *part) appliedOf(input int) int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.applied[input]
}

// passed marks everything up to an offset as applied, if the last applied offset has not changed.
func (p *part) passed(input int, from, to int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if to <= from || p.applied[input] != from || p.last() {
		return
	}
	p.applied[input], p.state.pending.applied[input] = to, to
	p.state.pending.passed = true
	wake(p.kick)
}
