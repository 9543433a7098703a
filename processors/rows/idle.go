package rows

import (
	"fmt"
	"time"
)

// If a log starts after the last applied offset, retention has deleted records, or only transaction markers and aborted
// records. The consumer delivers no markers or aborted records, so it cannot distinguish the two cases after the deletion.
// Therefore each partition checks its idle inputs: it reads the log after the last applied record, and counts markers and
// aborted records as applied.
//
// One case remains: the process stops between the last record and this check, and stays down for longer than the retention.
// The group then fails to start, as it does after a loss of records.

const (
	idleAfter    = 10 * time.Second // an input without new records for this long is checked
	recheckAfter = 60               // … and again after this many intervals, because aborted records may have been added
)

// watchIdleInputs checks idle inputs until the partition is closed.
func (p *partition) watchIdleInputs() {
	ticker := time.NewTicker(p.run.r.idleAfter)
	defer ticker.Stop()
	inputs := make([]idleInput, len(p.run.r.topo.reads()))
	for {
		select {
		case <-ticker.C:
		case <-p.ctx.Done():
			return
		}
		p.checkIdleInputs(inputs)
	}
}

func (p *partition) checkIdleInputs(inputs []idleInput) {
	oldest := time.Time{}
	for i, topic := range p.run.r.topo.reads() {
		p.checkIdleInput(i, topic, &inputs[i])
		if at := inputs[i].undelivered; oldest.IsZero() || !at.IsZero() && at.Before(oldest) {
			oldest = at
		}
	}
	p.inFlight.setUndelivered(oldest)
}

// checkIdleInput checks an input, if it is idle and the check is due.
func (p *partition) checkIdleInput(input int, topic string, r *idleInput) {
	if !r.due(p.appliedOf(input)) {
		return
	}
	unread, err := p.skipMarkers(input, topic)
	if err != nil && p.ctx.Err() == nil {
		p.run.r.log.Debug("check of an idle input failed, to be repeated", "topic", topic, "partition", p.id, "error", err)
	}
	if unread {
		r.undelivered = time.Now()
	}
}

// idleInput is the state of the checks of one input.
type idleInput struct {
	applied     int64     // at the last interval
	intervals   int       // intervals since it changed
	undelivered time.Time // when a check last found unprocessed records; zero: never
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

// skipMarkers advances the applied offset of an input over markers and aborted records, up to the next record to be applied.
// It reports whether there is such a record.
func (p *partition) skipMarkers(input int, topic string) (unread bool, err error) {
	applied := p.appliedOf(input)
	if applied < 0 {
		return false, nil // the group reads it from the start of the log
	}
	next := applied + 1
	for {
		records, to, err := p.run.log.Read(p.ctx, topic, p.id, next)
		if err != nil {
			return false, fmt.Errorf("read after the applied records: %w", err)
		}
		if len(records) > 0 { // handle will process them and advance beyond the markers before them
			return true, nil
		}
		if to == next {
			break
		}
		next = to
	}
	starts, err := p.run.log.Starts(p.ctx, topic)
	if err != nil {
		return false, fmt.Errorf("read after the applied records: %w", err)
	}
	if starts[topic][p.id] <= applied+1 { // otherwise the read started at the log's start, and earlier records are lost
		p.advance(input, applied, next-1)
	}
	return false, nil
}

func (p *partition) appliedOf(input int) int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.applied[input]
}

// advance marks everything up to an offset as applied, if the last applied offset has not changed.
func (p *partition) advance(input int, from, to int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if to <= from || p.applied[input] != from || p.isStopping() {
		return
	}
	p.applied[input], p.state.pending.applied[input] = to, to
	p.state.pending.advanced = true
	wake(p.wakeup)
}
