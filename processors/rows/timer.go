package rows

import (
	"encoding/binary"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/smartfeed/smartfeed/topics"
)

// Timers are reserved rows, ordered by time. No clock fires a timer directly. When the first timer of a partition is due,
// its scheduler sends a tick, a record on <group>-ticks, to the same partition. The tick is an input like any other. Its
// timestamp decides which timers are due.

// minTickGap is the minimum time between two ticks of a scheduler. If the broker's clock is behind the scheduler's, a
// tick may find no due timers, and the scheduler sends another one.
const minTickGap = 100 * time.Millisecond

// tickTimeout is the time after which an expected tick counts as lost.
const tickTimeout = 5 * time.Second

// scheduler sends the ticks of one partition.
type scheduler struct {
	p            *partition
	wakeup       chan struct{}
	nextTickSent atomic.Bool // a transaction has sent the next tick
}

func newScheduler(p *partition) *scheduler { return &scheduler{p: p, wakeup: make(chan struct{}, 1)} }

// committed is called after a transaction that changed timers.
func (s *scheduler) committed(ticked, chained bool) {
	if ticked {
		s.nextTickSent.Store(chained)
	}
	wake(s.wakeup)
}

// run sends ticks until the partition is closed.
func (s *scheduler) run() {
	sent := time.Time{}
	for {
		wait, err := s.wait(sent)
		if err == nil && wait <= 0 {
			sent, err = time.Now(), s.send()
			wait = minTickGap
		}
		if err != nil {
			s.fail(err)
			return
		}
		if !sleep(s.p.ctx, wait, s.wakeup) {
			return
		}
	}
}

func (s *scheduler) fail(err error) {
	if s.p.ctx.Err() != nil {
		return
	}
	s.p.mu.Lock()
	defer s.p.mu.Unlock()
	s.p.fail(fmt.Errorf("timers of partition %d: %w", s.p.id, err))
}

// wait returns how long to wait before the next tick is sent, if nothing changes.
func (s *scheduler) wait(sent time.Time) (time.Duration, error) {
	first, found, err := s.first()
	switch {
	case err != nil:
		return 0, err
	case !found:
		return time.Hour, nil
	}
	due := time.Until(first.time())
	pause := minTickGap
	if s.nextTickSent.Load() {
		pause = tickTimeout
	}
	return max(due, time.Until(sent.Add(pause))), nil
}

// first returns the partition's earliest timer.
func (s *scheduler) first() (first timer, found bool, err error) {
	c, err := newStoreCursor(s.p.db, "", Scan{Prefix: []byte{timerKind}})
	if err != nil {
		return timer{}, false, err
	}
	if row := c.row(); row != nil {
		found = true
		first, err = parseTimer(row)
	}
	return first, found, errors.Join(err, c.close())
}

func (s *scheduler) send() error {
	r := kgo.Record{Topic: s.p.run.r.topo.ticks, Partition: s.p.id, Value: tickValue(time.Now())}
	if err := topics.Produce(s.p.ctx, s.p.run.plain, &r); err != nil {
		return fmt.Errorf("send tick: %w", err)
	}
	return nil
}

// tickValue returns the sender's time. It is only for people who inspect ticks: the record's timestamp decides which timers
// are due.
func tickValue(now time.Time) []byte {
	return binary.BigEndian.AppendUint64(nil, uint64(now.UnixMicro()))
}

// tick fires a limited number of timers that are due at now. If more are due, it emits the next tick.
func (p *partition) tick(now time.Time) error {
	b := p.state.pending
	b.timers, b.ticked, b.nextTickSent = true, true, false
	due, more, err := p.dueTimers(now)
	if err != nil {
		return err
	}
	for i, t := range due {
		if i > 0 && b.bytes() >= int(p.run.r.cfg.MaxBatchBytes) {
			more = true
			break
		}
		if err := p.fire(t, now); err != nil {
			return err
		}
	}
	if more {
		b.nextTickSent = true
		b.emit(p.run.r.topo.outputs[p.run.r.topo.ticks], p.id, "", tickValue(now), p.originTime())
	}
	return nil
}

// dueTimers returns the first timers that are due at now, and whether more are due than MaxBatchTimers.
func (p *partition) dueTimers(now time.Time) (list []timer, more bool, err error) {
	limit := p.run.r.cfg.MaxBatchTimers
	scanErr := p.state.scan("", Scan{Prefix: []byte{timerKind}, Limit: limit + 1}, func(row, _ []byte) bool {
		var t timer
		if t, err = parseTimer(row); err != nil || t.micros > now.UnixMicro() {
			return false
		}
		list = append(list, t)
		return true
	})
	if len(list) > limit {
		list, more = list[:limit], true
	}
	return list, more, errors.Join(err, scanErr)
}

// fire removes a timer and calls the group's TimerFunc. It does nothing if an earlier timer of the tick has dropped this
// one.
func (p *partition) fire(t timer, now time.Time) error {
	row := timerName(t.micros, t.owner, t.name)
	set, err := p.state.get("", row)
	if err != nil || set == nil {
		return err
	}
	p.state.putReserved(row, nil, true)
	p.state.begin(&p.tx, t.owner, t.owner, now, p)
	err = p.state.end(&p.tx, p.run.r.topo.timer(&p.tx, p.tx.Own(), t.name, t.time()))
	if err != nil {
		return p.sendToDeadLetters(fmt.Errorf("timer of %q: %w", t.owner, err), []byte(t.owner), t.name)
	}
	return nil
}
