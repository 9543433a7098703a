package rows

import (
	"cmp"
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

// partition is a partition that this process owns, from its recovery to its handover. Goka calls handle for one record
// at a time, which changes only memory. A committer writes the pending batch in one transaction.
type partition struct {
	*store        // implements Goka's storage
	run           *groupRun
	session       *session
	id            int32
	sessionNumber uint64              // see Snapshot.Session
	ownerSince    time.Time           // see Snapshot.Since
	client        *kgo.Client         // transactional
	knownTopics   map[string]struct{} // topics of its earlier transactions
	ctx           context.Context
	cancel        context.CancelFunc // stops waiting for brokers
	wakeup        chan struct{}      // signals the committer
	timers        *scheduler         // nil: the group has no timers
	wg            sync.WaitGroup     // committer, check of idle inputs, and timers
	committerDone chan struct{}      // closed when the committer has stopped
	inFlight      inFlight           // ages of the records in flight

	// Applied positions by input, as recovery found them. Inputs without an entry were never applied.
	recovered  map[int]position
	recoveryMu sync.Mutex // held while they are read: Goka does not wait for this read when it hands the partition over

	mu       sync.Mutex // held while a callback runs
	capacity *sync.Cond // signals that the pending batch accepts records again, or never will
	state    state
	tx       Tx
	record   goka.Context // being processed
	spare    *batch
	applied  []int64 // by input, including pending records
	err      error   // why no more records are accepted; the pending batch is still committed …
	discard  bool    // … unless this is set: the batch may hold half of a record's writes
	started  bool
	closing  bool

	emission emission
}

var errPanicked = errors.New("a callback panicked")

func (p *partition) newBatch() *batch { return newBatch(len(p.applied)) }

// handle processes one record of an input. It changes only memory: the committer later writes the record's rows,
// outputs and applied offset in one transaction. A crash before that commit leaves no trace of the record, and it is
// read again.
func (p *partition) handle(ctx goka.Context, input int, value []byte) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.waitForCapacity() {
		return // not applied: the next owner of the partition reads the record again
	}
	if ctx.Offset() <= p.applied[input] {
		p.run.r.meter.skipped.count(1)
		return
	}
	p.inFlight.accept(time.Now)
	returned := false
	defer func() {
		if !returned { // a panic, which Goka recovers: the batch must not be committed
			p.err, p.discard = errPanicked, true
			wake(p.wakeup)
		}
	}()
	before := p.state.pending.mark()
	p.record = ctx
	err := p.process(ctx, input, value)
	returned = true
	p.endTrace(err, before.deadLetters)
	if err != nil {
		p.state.pending.undo(before)
		p.fail(fmt.Errorf("process %s/%d at offset %d: %w", ctx.Topic(), p.id, ctx.Offset(), err))
		return
	}
	p.applied[input], p.state.pending.applied[input] = ctx.Offset(), ctx.Offset()
	if p.state.pending.firstArrival == (arrival{}) {
		p.state.pending.firstArrival = arrival{arrived: ctx.Timestamp().UnixMicro(), origin: p.originTime()}
	}
	if p.state.pending.add(p.run.r.topo.defers(input), time.Now) || p.isFull() {
		wake(p.wakeup)
	}
}

// waitForCapacity blocks while the pending batch is full. It reports whether the partition still accepts records.
func (p *partition) waitForCapacity() bool {
	for p.err == nil && !p.closing && p.isFull() {
		p.capacity.Wait()
	}
	return p.err == nil && !p.closing
}

func (p *partition) isFull() bool {
	b, cfg := p.state.pending, &p.run.r.cfg
	return b.bytes() >= int(cfg.MaxBatchBytes) || b.messages >= cfg.MaxBatchRecords
}

// fail stops the partition: it accepts no more records, commits the pending batch, and makes Run return err. If the
// consumer-group session has already ended, err is a consequence of that and is only logged. mu is held.
func (p *partition) fail(err error) {
	p.err = cmp.Or(p.err, err)
	_ = p.store.check(err) // if a file is damaged, Close deletes the store
	p.capacity.Broadcast()
	wake(p.wakeup)
	if p.closing || p.ctx.Err() != nil {
		p.run.r.log.Warn("last batch not committed, the next owner processes its records again", "partition", p.id, "error", err)
		return
	}
	p.run.stop(err)
}

// process runs the callback of a record. It returns an error if the partition must stop. A bad record is not an error.
func (p *partition) process(ctx goka.Context, input int, value []byte) error {
	p.state.silent = !p.emission.isActive(input)
	if ctx.Key() == "" && value == nil {
		if why, ok := topics.Unread(ctx.Headers()); ok {
			p.run.r.log.Error("unreadable batch sent to the dead-letter topic", "topic", ctx.Topic(), "partition", p.id, "reason", why)
			return p.sendToDeadLetters(schemas.Bad(why), nil, nil)
		}
	}
	if isMark, err := p.applyMark(ctx, input, value); isMark || err != nil {
		return err
	}
	if input == len(p.run.r.topo.inputs) {
		return p.tick(ctx.Timestamp())
	}
	if retry, ok := topics.ParseRetry(ctx.Headers()[topics.RetryHeader]); ok && retry.IsForAnother(string(ctx.Topic()), p.run.r.topo.base) {
		return nil
	}
	p.startTrace(ctx)
	in, key, owner := &p.run.r.topo.inputs[input], ctx.Key(), ""
	if !in.batched {
		if err := checkOwner(key); err != nil {
			return p.sendToDeadLetters(err, []byte(key), value)
		}
		if right := topics.Partition(key, p.run.r.topo.partitions); right != p.id {
			if len(value) > schemas.MaxRecordBytes || len(key) > maxNameBytes { // no topic accepts it
				bad := schemas.Bad(fmt.Sprintf("record of %d bytes in the wrong partition is too large to forward to partition %d", len(key)+len(value), right))
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

// originTime returns the origin time from the record's header. A record without the header is an external event, whose own
// arrival counts.
func (p *partition) originTime() int64 {
	if since, ok := topics.ParseOrigin(p.record.Headers()[topics.OriginHeader]); ok {
		return int64(since)
	}
	return p.record.Timestamp().UnixMicro()
}

// sendToDeadLetters sends the record being processed to the dead-letter topic if err is a *schemas.BadRecordError. It
// returns any other error.
func (p *partition) sendToDeadLetters(err error, key, value []byte) error {
	bad, ok := errors.AsType[*schemas.BadRecordError](err)
	if !ok {
		return err
	}
	deadLetter := topics.NewDeadLetter(p.run.r.topo.base, &kgo.Record{
		Topic: string(p.record.Topic()), Partition: p.id, Offset: p.record.Offset(), Timestamp: p.record.Timestamp(), Key: key, Value: value,
		Headers: []kgo.RecordHeader{{Key: topics.RetryHeader, Value: p.record.Headers()[topics.RetryHeader]}},
	}, bad.Reason)
	framed, err := p.run.r.env.Streams.DeadLetters.Encode(deadLetter)
	if err != nil {
		return fmt.Errorf("encode dead letter: %w", err)
	}
	b, topo := p.state.pending, p.run.r.topo
	if p.state.emit(topo.outputs[topo.deadLetters], topics.Partition(deadLetter.Topic, topo.partitions), deadLetter.Topic, framed, p.originTime()) != nil {
		b.deadLetters = append(b.deadLetters, bad.Reason)
	}
	return nil
}

// forward sends a record that is in the wrong partition to the right partition of its topic.
func (p *partition) forward(ctx goka.Context, partition int32, value []byte) {
	b := p.state.pending
	as := envelope{topic: string(ctx.Topic()), headers: forwardedHeaders(ctx.Headers()), micros: ctx.Timestamp().UnixMicro()}
	if e := p.state.emit(0, partition, ctx.Key(), value, p.originTime()); e != nil {
		b.wrap(e, as)
		b.misplaced++
	}
}

// forwardedHeaders returns the headers that are forwarded with a record, besides OriginHeader, which every emit has.
// Headers of an external producer can be of any size and number. A copy of all of them may exceed the limit of the
// topic, and then no transaction commits. The known headers are short.
func forwardedHeaders(all goka.Headers) map[string][]byte {
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

// MarkRecovered implements Goka's storage. Goka calls it when all rows are recovered. It reads the applied offset of each
// input.
func (p *partition) MarkRecovered() error {
	p.recoveryMu.Lock()
	defer p.recoveryMu.Unlock()
	if err := p.store.MarkRecovered(); err != nil {
		return err
	}
	emits, err := p.readEmission()
	if err != nil {
		return err
	}
	found := map[int]position{}
	for i, topic := range p.run.r.topo.reads() {
		value, err := p.state.stored("", Name(appliedKind, topic))
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
func (p *partition) start() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closing || p.started {
		return false
	}
	p.started = true
	p.run.r.meter.owned.add(p)
	p.wg.Go(p.runCommitter)
	p.wg.Go(p.watchIdleInputs)
	p.wg.Go(p.watchExisting)
	if p.timers != nil {
		p.wg.Go(p.timers.run)
	}
	return true
}

// Close is called by Goka after the last callback, when the partition is handed over or the group stops. It commits the
// pending batch within the grace time.
func (p *partition) Close() error {
	p.run.r.hide(p)
	defer p.run.r.storeClosed(p.store)
	defer p.run.r.meter.owned.remove(p)
	p.mu.Lock()
	p.closing = true
	started := p.started
	p.capacity.Broadcast()
	p.mu.Unlock()
	wake(p.wakeup)
	if p.run.abandoned() {
		p.cancel()
		p.store.discardUnflushed()
	}
	if started {
		grace := time.AfterFunc(p.run.r.cfg.HandoverTimeout, p.cancel)
		<-p.committerDone
		grace.Stop()
	}
	p.cancel()
	p.wg.Wait()
	p.failTraces()
	p.client.Close()
	p.recoveryMu.Lock() // from now on, MarkRecovered finds the store closed
	defer p.recoveryMu.Unlock()
	return p.store.Close()
}
