package rows

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/lovoo/goka"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/smartfeed/smartfeed/internal/tracing"
	"github.com/smartfeed/smartfeed/schemas"
	"github.com/smartfeed/smartfeed/topics"
)

// part is a partition that this process owns, from its recovery to its handover. Goka calls handle for one record at a time,
// which changes only memory. A committer writes the pending batch in one transaction.
type part struct {
	*store   // implements Goka's storage
	w        *work
	session  *session
	id       int32
	number   uint64              // of the session, see Snapshot.Session
	alone    time.Time           // time since when no other process has owned it
	client   *kgo.Client         // transactional
	known    map[string]struct{} // topics of its earlier transactions
	ctx      context.Context
	cancel   context.CancelFunc // stops waiting for brokers
	kick     chan struct{}      // signals the committer
	timers   *scheduler         // nil: the group has no timers
	wg       sync.WaitGroup     // committer, rest and timers
	ended    chan struct{}      // closed when the committer has stopped
	inFlight inFlight           // ages of the records in flight

	// Applied positions by input, as recovery found them. Inputs without an entry were never applied.
	recovered map[int]position
	reading   sync.Mutex // held while they are read: Goka does not wait for this read when it hands the partition over

	mu      sync.Mutex // held while a callback runs
	room    *sync.Cond // signals that the pending batch accepts records again, or never will
	state   state
	tx      Tx
	record  goka.Context // being processed
	spare   *batch
	applied []int64 // by input, including pending records
	err     error   // why no more records are accepted; the pending batch is still committed …
	discard bool    // … unless this is set: the batch may hold half of a record's writes
	started bool
	closing bool

	emission emission
}

var errPanicked = errors.New("a callback panicked")

func (p *part) newBatch() *batch { return newBatch(len(p.applied)) }

// handle processes one record of an input. It changes only memory: the committer later writes the record's rows, outputs and
// applied offset in one transaction. A crash before that commit leaves no trace of the record, and it is read again.
func (p *part) handle(ctx goka.Context, input int, value []byte) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.awaitRoom() {
		return // not applied: the next owner of the partition reads the record again
	}
	if ctx.Offset() <= p.applied[input] {
		p.w.r.meter.skipped.count(1)
		return
	}
	p.inFlight.accept(time.Now)
	returned := false
	defer func() {
		if !returned { // a panic, which Goka recovers: the batch must not be committed
			p.err, p.discard = errPanicked, true
			wake(p.kick)
		}
	}()
	before := p.state.pending.mark()
	p.record = ctx
	err := p.process(ctx, input, value)
	returned = true
	p.traced(err, before.deadLetters)
	if err != nil {
		p.state.pending.undo(before)
		p.fail(fmt.Errorf("work off %s/%d at %d: %w", ctx.Topic(), p.id, ctx.Offset(), err))
		return
	}
	p.applied[input], p.state.pending.applied[input] = ctx.Offset(), ctx.Offset()
	if p.state.pending.first == (begun{}) {
		p.state.pending.first = begun{arrived: ctx.Timestamp().UnixMicro(), since: p.since()}
	}
	p.state.pending.messages++
	wake(p.kick)
}

// awaitRoom blocks while the pending batch is full. It reports whether the partition still accepts records.
func (p *part) awaitRoom() bool {
	for p.err == nil && !p.closing && p.full() {
		p.room.Wait()
	}
	return p.err == nil && !p.closing
}

func (p *part) full() bool {
	b, cfg := p.state.pending, &p.w.r.cfg
	return b.bytes() >= cfg.MaxBatchBytes || b.messages >= cfg.MaxBatchMessages
}

// fail stops the partition: it accepts no more records, commits the pending batch, and makes Run return err. If the
// consumer-group session has already ended, err is a consequence of that and is only logged. mu is held.
func (p *part) fail(err error) {
	if p.err == nil {
		p.err = err
	}
	_ = p.store.check(err) // if a file is damaged, Close deletes the store
	p.room.Broadcast()
	wake(p.kick)
	if p.closing || p.ctx.Err() != nil {
		p.w.r.log.Warn("last records of a partition not committed, its next owner works them off", "partition", p.id, "error", err)
		return
	}
	p.w.stop(err)
}

// process runs the callback of a record. It returns an error if the partition must stop. A bad record is not an error.
func (p *part) process(ctx goka.Context, input int, value []byte) error {
	p.beginEmission(input)
	if ctx.Key() == "" && value == nil {
		if why, ok := topics.Unread(ctx.Headers()); ok {
			p.w.r.log.Error("a batch of an input cannot be read: it becomes a dead letter, and none of its records is processed",
				"topic", ctx.Topic(), "partition", p.id, "reason", why)
			return p.sendToDeadLetters(schemas.Bad(why), nil, nil)
		}
	}
	if isMark, err := p.applyMark(ctx, input, value); isMark || err != nil {
		return err
	}
	if input == len(p.w.r.topo.inputs) {
		return p.tick(ctx.Timestamp())
	}
	if retry, ok := p.retry(); ok && retry.IsForAnother(string(ctx.Topic()), p.w.r.topo.base) {
		return nil
	}
	p.trace(ctx)
	in, key, owner := &p.w.r.topo.inputs[input], ctx.Key(), ""
	if !in.batched {
		if err := checkOwner(key); err != nil {
			return p.sendToDeadLetters(err, []byte(key), value)
		}
		if right := topics.Partition(key, p.w.r.topo.partitions); right != p.id {
			if len(value) > schemas.MaxRecordBytes || len(key) > maxNameBytes { // no topic accepts it
				bad := schemas.Bad(fmt.Sprintf("%d bytes in another partition than its own, %d", len(key)+len(value), right))
				return p.sendToDeadLetters(bad, []byte(key), value)
			}
			p.forward(ctx, right, value)
			return nil
		}
		owner = key
	}
	p.state.begin(&p.tx, key, owner, ctx.Timestamp(), p)
	err := p.state.end(&p.tx, in.handle(&p.tx, value))
	if err != nil {
		return p.sendToDeadLetters(err, []byte(key), value)
	}
	return nil
}

// since returns the origin time from the record's header. A record without the header is an external event, whose own
// arrival counts.
func (p *part) since() int64 {
	if since, ok := topics.ParseSince(p.record.Headers()[topics.SinceHeader]); ok {
		return int64(since)
	}
	return p.record.Timestamp().UnixMicro()
}

// retry parses the header of a record that was published again for a group that failed to process it.
func (p *part) retry() (topics.Retry, bool) {
	return topics.ParseRetry(p.record.Headers()[topics.RetryHeader])
}

// sendToDeadLetters sends the record being processed to the dead-letter topic if err is a *schemas.BadRecordError. It returns any other
// error.
func (p *part) sendToDeadLetters(err error, key, value []byte) error {
	var bad *schemas.BadRecordError
	if !errors.As(err, &bad) {
		return err
	}
	letter := schemas.DeadLetter{
		Topic: string(p.record.Topic()), Partition: p.id, Offset: p.record.Offset(), Group: p.w.r.topo.base,
		Reason: bad.Reason, Time: schemas.MicrosOf(p.record.Timestamp()), Key: key, Value: value,
	}
	if retry, ok := p.retry(); ok {
		letter.Attempts, letter.FirstPartition, letter.FirstOffset = retry.Attempt, retry.Partition, retry.Offset
	}
	letter.Cut()
	framed, err := p.w.r.env.Streams.DeadLetters.Encode(&letter)
	if err != nil {
		return fmt.Errorf("encode dead letter: %w", err)
	}
	b, topo := p.state.pending, p.w.r.topo
	if p.state.emit(topo.outputs[topo.deadLetters], topics.Partition(letter.Topic, topo.partitions), letter.Topic, framed, p.since()) != nil {
		b.deadLetters = append(b.deadLetters, bad.Reason)
	}
	return nil
}

// forward sends a record that is in the wrong partition to the right partition of its topic.
func (p *part) forward(ctx goka.Context, partition int32, value []byte) {
	b := p.state.pending
	as := envelope{topic: string(ctx.Topic()), headers: knownHeaders(ctx.Headers()), micros: ctx.Timestamp().UnixMicro()}
	if e := p.state.emit(0, partition, ctx.Key(), value, p.since()); e != nil {
		b.wrap(e, as)
		b.misplaced++
	}
}

// knownHeaders returns the headers of a record that are forwarded with it, besides SinceHeader, which every emit has.
// Headers of an external producer can be of any size and number. A copy of all of them may exceed the limit of the topic,
// and then no transaction commits. The known headers are short.
func knownHeaders(all goka.Headers) map[string][]byte {
	known := map[string][]byte{}
	if retry, ok := topics.ParseRetry(all[topics.RetryHeader]); ok {
		known[topics.RetryHeader] = retry.Value()
	}
	if sender := tracing.Value(tracing.Parse(all[tracing.Header])); sender != nil {
		known[tracing.Header] = sender
	}
	if operator := all[topics.OperatorHeader]; operator != nil && len(operator) <= maxNameBytes {
		known[topics.OperatorHeader] = operator
	}
	return known
}

// MarkRecovered implements Goka's storage. Goka calls it when all rows are recovered. It reads how far each input is
// applied.
func (p *part) MarkRecovered() error {
	p.reading.Lock()
	defer p.reading.Unlock()
	if err := p.store.MarkRecovered(); err != nil {
		return err
	}
	emits, err := p.readEmission()
	if err != nil {
		return err
	}
	found := map[int]position{}
	for i, topic := range p.w.r.topo.reads() {
		value, err := p.state.stored("", appliedName(topic))
		if err != nil {
			return err
		}
		if value == nil {
			continue
		}
		if found[i], err = parsePosition(value); err != nil {
			return fmt.Errorf("%s: %w", topic, err)
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.recovered = found
	p.emission.set(emits)
	for i, at := range found {
		p.applied[i] = at.offset
	}
	return nil
}

// start makes the partition accept records. It returns false if the partition was handed over in the meantime.
func (p *part) start() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closing || p.started {
		return false
	}
	p.started = true
	p.w.r.meter.parts.enter(p)
	p.wg.Go(p.run)
	p.wg.Go(p.watchIdleInputs)
	if p.timers != nil {
		p.wg.Go(p.timers.run)
	}
	return true
}

// Close is called by Goka after the last callback, when the partition is handed over or the group stops. It commits the
// pending batch within the grace time.
func (p *part) Close() error {
	p.w.r.hide(p)
	defer p.w.r.storeClosed(p.store)
	defer p.w.r.meter.parts.leave(p)
	p.mu.Lock()
	p.closing = true
	started := p.started
	p.room.Broadcast()
	p.mu.Unlock()
	wake(p.kick)
	if p.w.abandoned() {
		p.cancel()
		p.store.unflushed()
	}
	if started {
		grace := time.AfterFunc(p.w.r.cfg.Grace, p.cancel)
		<-p.ended
		grace.Stop()
	}
	p.cancel()
	p.wg.Wait()
	p.giveUpTraces()
	p.client.Close()
	p.reading.Lock() // from now on, MarkRecovered finds the store closed
	defer p.reading.Unlock()
	return p.store.Close()
}
