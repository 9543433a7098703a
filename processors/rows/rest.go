package rows

import (
	"fmt"
	"time"
)

// A log that begins after the last record applied has lost records, or markers only: those of the transactions that
// brought the last ones. The consumer does not show them, and once retention has taken them nobody can tell. So each
// partition looks at what stands behind its applied records when no more come, and counts as applied what is none.
// Between the last record and this look, and then away for longer than retention: that stops the group, as a loss would.

const (
	restEvery  = 10 * time.Second // an input at which nothing came for so long is looked at
	restsAgain = 60               // … and again after so many rests: aborted records may have come
)

// rest looks until the partition is closed.
func (p *part) rest() {
	ticker := time.NewTicker(p.w.r.resting)
	defer ticker.Stop()
	rests := make([]resting, len(p.w.r.topo.reads()))
	for {
		select {
		case <-ticker.C:
		case <-p.ctx.Done():
			return
		}
		p.look(rests)
	}
}

// look looks at the inputs that rest.
func (p *part) look(rests []resting) {
	left := time.Time{}
	for i, topic := range p.w.r.topo.reads() {
		p.restOf(i, topic, &rests[i])
		if at := rests[i].left; left.IsZero() || !at.IsZero() && at.Before(left) {
			left = at
		}
	}
	p.hand.leaves(left)
}

// restOf looks at one input, if it rests and it is time to.
func (p *part) restOf(input int, topic string, r *resting) {
	if !r.due(p.appliedOf(input)) {
		return
	}
	left, err := p.passMarkers(input, topic)
	if err != nil && p.ctx.Err() == nil {
		p.w.r.log.Debug("what is behind the applied records is not known, it is asked for again", "error", err)
	}
	if left {
		r.left = time.Now()
	}
}

// resting is what is known of the rests of one input.
type resting struct {
	applied int64     // at the last rest
	rests   int       // since it changed
	left    time.Time // when records were seen behind it, which are still to come; zero: none were
}

// due tells at a rest whether to look.
func (r *resting) due(applied int64) bool {
	if applied != r.applied {
		*r = resting{applied: applied}
		return false
	}
	r.rests++
	return r.rests%restsAgain == 1
}

// passMarkers moves the applied offset of an input over markers and aborted records, up to the next that is to be
// applied. It says whether there is one.
func (p *part) passMarkers(input int, topic string) (left bool, err error) {
	applied := p.appliedOf(input)
	if applied < 0 {
		return false, nil // it begins at the start of the log in any case
	}
	next := applied + 1
	for {
		records, to, err := p.w.log.Read(p.ctx, topic, p.id, next)
		if err != nil {
			return false, fmt.Errorf("look behind applied records: %w", err)
		}
		if len(records) > 0 { // which come to handle; the markers before them with them
			return true, nil
		}
		if to == next {
			break
		}
		next = to
	}
	starts, err := p.w.log.Starts(p.ctx, topic)
	if err != nil {
		return false, fmt.Errorf("look behind applied records: %w", err)
	}
	if starts[topic][p.id] <= applied+1 { // else the log was read from its start, and what was before it is lost
		p.passed(input, applied, next-1)
	}
	return false, nil
}

func (p *part) appliedOf(input int) int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.applied[input]
}

// passed counts everything up to an offset as applied, if the last record applied is still the same.
func (p *part) passed(input int, from, to int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if to <= from || p.applied[input] != from || p.last() {
		return
	}
	p.applied[input], p.state.pending.applied[input] = to, to
	p.state.pending.passed = true
	p.wake()
}
