// Package retries tries again what could not be worked off: dead letters, after a while, a number of times, at a rate
// that an operator can turn to zero.
//
//	owner   topic that the letters came from
//	in      dead-letters, retry-orders (key topic)
//	rows    a letter with its state, its bytes while it waits, the queue of each kind by due time, what has ended by
//	        time; of a kind its counts and pace; limits that were set; of the topic its pace
//	out     every topic of the catalogue that has records of package schemas, with the header of topics.Retry
//	timers  the next letter that is due and may go; a look at what may not; a letter that has not come back
//
// A letter is known by the record that failed first (topic, partition, offset) and the group that could not work it off.
// When it is due, its bytes go to its topic again, marked as the retry they are: the other groups that read the topic
// pass them over, and if the group fails once more, its letter says which record it is and how often it was tried. So a
// record that can never be worked off makes Config.Attempts more letters, and rests.
//
//	waiting   until it is due and its turn comes             → sent, when its bytes go out
//	sent      for Config.Settle                              → done, or waiting or parked when it comes back
//	done      the newest Config.KeepDone of a topic          → forgotten; a letter that comes back later is one again
//	parked    the newest Config.KeepParked of a topic        → forgotten; it still lies in dead-letters. An order retries it
//
// The n-th failure waits n·FirstDelay, up to n = Linear, and from then on each waits twice as long as the one before, up
// to MaxDelay. Late is no harm: order is by event time, and what an event may not do any more it does not.
//
// A kind is a topic, a group and the words of a reason (topics.KindOf). Each kind goes at its rate, at once after a rest
// for up to a second's worth; all of a topic together go at TopicRate. Where more is due than may go, kinds of greater
// priority go first, and in a kind what was due first. An order sets rate and priority of a kind, of a topic/group or of
// a topic, the newest by its time; 0 stops a kind, whose letters wait. What waits at a rate of 0 is looked at again after
// FirstDelay, within 1s-1m: with another rate in the configuration it goes on, without any record. An order can also have
// letters retried at once; these keep to the rates, too. At most maxKinds kinds of a topic are told apart; the others are
// one a group.
//
// Not retried by itself is what can only be retried by hand, or not at all: key and value over topics.MaxRetriedBytes,
// neither of them, what finds no room (KeepWaiting, KeepBytes), records of topics that are no longer there (also when they go while the
// letter waits), ticks of timers, and letters about letters.
//
// External calls are retried where they are made: those of the generator to sources and models are asked while a visit
// waits, left out when they fail, and asked again by the next visit; Cassandra and the feature stores are written by sinks,
// which go on only when the write has succeeded; key sets are read again (package auth), and what collects traces gets what it
// did not take for a while (package otlp).
//
// Deletion. What deletes each kind of rows, by the first byte of their names:
//
//	'l'  letters           cap: KeepWaiting, KeepDone and KeepParked of a topic
//	'b'  bytes             event: the letter does not wait any more; cap: KeepBytes
//	'q'  queue of a kind   event: the letter does not wait any more
//	'e'  what has ended    cap: with the letter, KeepDone and KeepParked
//	'k'  kinds             cap: maxKinds of a topic, and one for each group
//	'c'  limits            never: an operator's decision holds until the next one for the same scope
//	't'  the topic         never: one row for each topic
//
// Effects counted: retried, returned, done, parked, ordered, needless (an order for what is done or on its way), stale
// (a letter that was there already).
package retries

import (
	"fmt"
	"time"

	"github.com/smartfeed/smartfeed/processors/rows"
	"github.com/smartfeed/smartfeed/schemas"
	"github.com/smartfeed/smartfeed/topics"
)

// Group returns the topology. cfg must be valid; catalogue is that of the brokers.
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
			rows.Keyed(s.DeadLetters, g.letter),
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

// letter takes in what could not be worked off, for the first time or again.
func (g *group) letter(tx *rows.Tx, l *schemas.DeadLetter) error {
	if tx.Key() != l.Topic {
		return schemas.Bad(fmt.Sprintf("dead letter: key %.64q: want the topic %.64q", tx.Key(), l.Topic))
	}
	t := g.table(tx, tx.Own())
	known, err := t.find(idOf(l))
	if err == nil && known != nil && l.Attempts > 0 && !repeats(known, l) {
		l.Attempts = 0 // it is another record, whatever its header said: a letter of its own
		known, err = t.find(idOf(l))
	}
	if err != nil {
		return err
	}
	if !isNews(known, l) {
		tx.Effect("stale", 1)
		return nil
	}
	if known != nil {
		tx.Effect("returned", 1)
	}
	due := t.now() + micros(g.cfg.delay(l.Attempts+1))
	if err := t.admit(known, l, due, false); err != nil {
		return err
	}
	return t.arm()
}

// order works off what somebody decided.
func (g *group) order(tx *rows.Tx, o *schemas.RetryOrder) error {
	if err := o.Validate(tx.Key()); err != nil {
		return err
	}
	t := g.table(tx, tx.Own())
	for _, limit := range o.Limits {
		if err := t.setLimit(limit, o); err != nil {
			return err
		}
	}
	for i := range o.Letters {
		if err := t.hurry(&o.Letters[i]); err != nil {
			return err
		}
	}
	return t.arm()
}

// hurry makes a letter due at once, whatever was tried before.
func (t table) hurry(l *schemas.DeadLetter) error {
	known, err := t.find(idOf(l))
	if err != nil {
		return err
	}
	if known != nil && (known.State == schemas.RetrySent || known.State == schemas.RetryDone) {
		t.tx.Effect("needless", 1)
		return nil
	}
	t.tx.Effect("ordered", 1)
	return t.admit(known, l, t.now(), true)
}

// timer retries what is due, or takes a letter that has not come back for done.
func (g *group) timer(tx *rows.Tx, owner rows.Owner, name []byte, at time.Time) error {
	t := g.table(tx, owner)
	if name[0] == rowLetter {
		return t.settle(name, schemas.MicrosOf(at))
	}
	if err := t.woken(); err != nil {
		return err
	}
	if err := t.work(); err != nil {
		return err
	}
	return t.arm()
}

// settle takes a letter for done that was sent for long enough.
func (t table) settle(name []byte, at schemas.Micros) error {
	l, err := t.read(name)
	if err != nil || l == nil || l.State != schemas.RetrySent || l.Due > at {
		return err // nil: forgotten meanwhile; later: it came back, and was sent again
	}
	t.tx.Effect("done", 1)
	return t.move(l, schemas.RetryDone)
}
