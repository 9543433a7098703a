// Package retries retries dead letters: after a delay, a limited number of times, and at a rate that an operator can change
// or set to zero.
//
//	owner   topic of the dead letter's record
//	in      dead-letters, retry-orders (key topic)
//	rows    each dead letter with its state, and its bytes while it waits; per kind, a queue by due time, counts and the
//	        rate limiter; an index of done and parked dead letters by time; limits set by operators; the topic's rate limiter
//	out     every topic of the catalogue that has records of package schemas, with the header of topics.Retry
//	timers  the next due dead letter that its rate allows; a check of stopped kinds; the end of Config.DoneAfter of a sent dead letter
//
// A dead letter is identified by the record that failed first (topic, partition, offset) and the group that failed to
// process it. When it is due, its bytes are published to its topic again. A header marks the record as a retry for this
// group, and other groups that read the topic skip it. If the group fails again, the new dead letter names the same first
// record and the number of attempts. Therefore a record that can never be processed causes Config.MaxAttempts further dead
// letters and is then parked.
//
// # States
//
//	waiting   until it is due and its rate allows it         → sent, when its bytes are published
//	sent      for Config.DoneAfter                              → done, or waiting or parked if it fails again
//	done      the newest Config.MaxDone of a topic          → removed; one that fails later starts over
//	parked    the newest Config.MaxParked of a topic        → removed; it is still in dead-letters. An order retries it
//
// The delay after the n-th failure is n·InitialDelay, up to n = LinearAttempts. Each further failure doubles it, up to
// MaxDelay. A late retry does no harm: event time decides, so an outdated event has no effect.
//
// # Rates and orders
//
// A kind is a topic, a group and the first words of a reason (topics.KindOf). Retries of a kind are limited to its
// rate, with a burst of one second's worth. All retries of a topic together are limited to TopicRate. If more dead
// letters are due than the rates allow, kinds with a higher priority go first. Within a kind, the dead letter that was
// due first goes first. At most maxKinds kinds of a topic are distinguished; the dead letters of further kinds share
// one kind per group.
//
// An order (topic retry-orders) does one of the following:
//
//   - It sets rate and priority of a kind, a topic/group or a topic. The order with the newest time wins. A rate of 0 stops
//     the kinds in its scope: their dead letters wait.
//   - It makes dead letters due now, even parked ones. The rates still apply.
//
// Stopped kinds are checked every InitialDelay, with a minimum of 1s and a maximum of 1m. Therefore they resume when the
// configured rate changes, without a record.
//
// # Dead letters that are not retried
//
// The following dead letters are parked. An order can retry some of them:
//
//   - key and value together exceed topics.MaxRetriedBytes
//   - key and value are both empty
//   - MaxWaiting or MaxWaitingBytes is exceeded
//   - the topic is no longer in the catalogue, even if it was when the dead letter arrived
//   - the record is a timer tick, a dead letter or a retry order
//
// This package does not retry external calls; their callers do. The generator omits a source or model that fails, and calls
// it again on the next visit. Sinks for Cassandra and the feature stores continue only after a successful write. Package
// auth reads key sets again. Package otlp resends rejected traces to their collector for a while.
//
// # Row lifetime
//
// Deletion. What deletes each kind of rows, by the first byte of their names:
//
//	'l'  dead letters      cap: MaxWaiting, MaxDone and MaxParked of a topic
//	'b'  bytes             event: the dead letter is sent or parked; cap: MaxWaitingBytes
//	'q'  queue of a kind   event: the dead letter is sent or parked
//	'e'  done and parked   cap: with the dead letter, MaxDone and MaxParked
//	'k'  kinds             cap: maxKinds of a topic, and one for each group
//	'c'  limits            never: an operator's decision holds until the next one for the same scope
//	't'  the topic         never: one row for each topic
//
// # Effects
//
// The group counts these effects: retried, failed_again, done, parked, requested (by an operator). It also counts
// already_retried (a requested dead letter that is sent or done) and stale (a dead letter that is already known).
package retries

import (
	"time"

	"github.com/smartfeed/smartfeed/processors/rows"
	"github.com/smartfeed/smartfeed/schemas"
	"github.com/smartfeed/smartfeed/topics"
)

// Group returns the topology of the group. cfg must be valid. catalogue is the catalogue of the brokers.
func Group(cfg Config, catalogue []topics.Topic, s *topics.Streams) rows.Group {
	g := &group{cfg: cfg, topics: map[string]topics.Topic{}}
	var outputs []string
	for _, t := range catalogue {
		if t.CanRetry() {
			g.topics[t.Name] = t
			outputs = append(outputs, t.Name)
		}
	}
	return rows.Group{
		Name: topics.Retries,
		Inputs: []rows.Input{
			rows.Owned(s.DeadLetters, "dead letter", "topic", func(l *schemas.DeadLetter) string { return l.Topic }, g.deadLetter),
			rows.Keyed(s.RetryOrders, g.order),
		},
		Outputs: outputs,
		Timer:   g.timer,
	}
}

type group struct {
	cfg    Config
	topics map[string]topics.Topic // that can be retried
}

// deadLetter handles a dead letter: the first one of a record, or that of a failed retry.
func (g *group) deadLetter(tx *rows.Tx, l *schemas.DeadLetter) error {
	t := g.table(tx, tx.Own())
	known := t.find(idOf(l))
	if known != nil && l.Attempts > 0 && !isSameRecord(known, l) {
		l.Attempts = 0 // the header named another record: handle this one as a separate dead letter
		known = t.find(idOf(l))
	}
	if !isNew(known, l) {
		tx.Effect("stale", 1)
		return nil
	}
	if known != nil {
		tx.Effect("failed_again", 1)
	}
	due := t.now() + schemas.MicrosIn(g.cfg.delay(l.Attempts+1))
	t.enqueue(known, l, due, false)
	t.arm()
	return nil
}

// order applies an operator's order: limits, and dead letters to retry now.
func (g *group) order(tx *rows.Tx, o *schemas.RetryOrder) error {
	if err := o.Validate(tx.Key()); err != nil {
		return err
	}
	t := g.table(tx, tx.Own())
	for _, limit := range o.Limits {
		t.setLimit(limit, o)
	}
	for i := range o.DeadLetters {
		t.retryNow(&o.DeadLetters[i])
	}
	t.arm()
	return nil
}

// retryNow makes a dead letter due now, regardless of its number of attempts.
func (t table) retryNow(l *schemas.DeadLetter) {
	known := t.find(idOf(l))
	if known != nil && (known.State == schemas.RetrySent || known.State == schemas.RetryDone) {
		t.tx.Effect("already_retried", 1)
		return
	}
	t.tx.Effect("requested", 1)
	t.enqueue(known, l, t.now(), true)
}

// timer retries due dead letters, or marks a sent dead letter as done.
func (g *group) timer(tx *rows.Tx, owner rows.Owner, name []byte, at time.Time) error {
	t := g.table(tx, owner)
	if name[0] == rowDeadLetter {
		t.settle(name, schemas.MicrosOf(at))
		return nil
	}
	state := t.topic()
	state.timerAt = 0 // the timer has just fired
	t.rearm(t.retryDue(state))
	return nil
}

// settle marks a dead letter as done if it was sent long enough ago.
func (t table) settle(name []byte, at schemas.Micros) {
	l := t.read(name)
	if l == nil || l.State != schemas.RetrySent || l.Due > at {
		return // nil: deleted in the meantime; later Due: it failed and was sent again
	}
	t.tx.Effect("done", 1)
	t.move(l, schemas.RetryDone)
}
