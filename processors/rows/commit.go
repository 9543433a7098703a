package rows

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/smartfeed/smartfeed/internal/tracing"
	"github.com/smartfeed/smartfeed/topics"
)

// runCommitter writes pending batches, one transaction at a time, until the partition is closed or has failed.
func (p *partition) runCommitter() {
	defer close(p.committerDone)
	var r commitLimiter
	for p.waitForCommit(&r) {
		began := time.Now()
		b := p.seal()
		if b == nil {
			continue
		}
		r.commit(began, p.run.r.shared.commitGap.gap())
		p.run.r.shared.commitGap.commit(began)
		if err := p.commit(b); err != nil {
			p.mu.Lock()
			p.fail(fmt.Errorf("commit %s/%d: %w", p.run.r.topo.table, p.id, err))
			p.mu.Unlock()
			return
		}
		p.finishCommit(b, time.Since(began))
	}
}

// waitForCommit blocks until there is something to commit and either the gap has passed or the batch is full. It
// reports whether the partition has anything left to commit.
func (p *partition) waitForCommit(r *commitLimiter) bool {
	for !p.needsCommit() {
		select {
		case <-p.wakeup:
		case <-p.ctx.Done():
			return false
		}
	}
	for !p.isUrgent() {
		now := time.Now()
		wait := max(r.wait(now, p.run.r.shared.commitGap.gap()), p.deferredFor(now))
		if wait <= 0 {
			break
		}
		if !sleep(p.ctx, wait, p.wakeup) {
			return false
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return !p.discard && (p.state.pending.needsCommit() || !p.isStopping())
}

// sleep waits for d or until kick receives a signal. It returns false if ctx is canceled.
func sleep(ctx context.Context, d time.Duration, kick <-chan struct{}) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-kick:
	case <-ctx.Done():
	}
	return ctx.Err() == nil
}

// wake wakes the receiver of kick, a channel with a buffer of one.
func wake(kick chan<- struct{}) {
	select {
	case kick <- struct{}{}:
	default:
	}
}

// isStopping reports whether no more records will be added. mu is held.
func (p *partition) isStopping() bool { return p.err != nil || p.closing }

// needsCommit reports whether there is something to commit or the partition is stopping.
func (p *partition) needsCommit() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.isStopping() || p.state.pending.needsCommit()
}

// deferredFor returns how much longer the effects of the pending records may wait.
func (p *partition) deferredFor(now time.Time) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.state.pending.deferredFor(now, p.run.r.cfg.DeferredCommitInterval)
}

// isUrgent reports whether the next commit must not wait for the gap.
func (p *partition) isUrgent() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.isStopping() || p.isFull()
}

// seal adds the applied rows and the gathered records to the pending batch and returns it for the commit. Callbacks then fill the next
// batch. It returns nil if there is nothing to commit, or if the partition has failed.
func (p *partition) seal() *batch {
	p.mu.Lock()
	defer p.mu.Unlock()
	b := p.state.pending
	if p.discard || !b.needsCommit() {
		return nil
	}
	if err := b.emitGathered(); err != nil {
		p.discard = true
		p.fail(err)
		return nil
	}
	for i, topic := range p.run.r.topo.reads() {
		if b.applied[i] >= 0 {
			at := position{topic: p.session.ids[topic], offset: b.applied[i]}
			p.state.putReserved(Name(appliedKind, topic), at.append(nil), false)
		}
	}
	b.sealed = true
	p.inFlight.seal()
	p.state.committing, p.state.pending, p.spare = b, p.spare, nil
	if p.state.pending == nil {
		p.state.pending = p.newBatch()
	}
	p.capacity.Broadcast()
	return b
}

// commit makes a batch durable: first on the brokers, in one transaction, then in the local store. After an error, the
// outcome of the transaction is unknown. The next owner initializes the transactional id, which commits or aborts the
// transaction, and reads the result during recovery.
func (p *partition) commit(b *batch) error {
	if err := errors.Join(p.run.r.checkDisk(), p.store.writable()); err != nil {
		return err
	}
	if err := p.client.BeginTransaction(); err != nil {
		return fmt.Errorf("begin transaction: %w", err)
	}
	ctx, cancel := context.WithTimeout(p.ctx, topics.DeliveryTimeout)
	defer cancel()
	offset, err := p.produce(ctx, b)
	if err != nil {
		p.abortTransaction()
		return err
	}
	p.run.r.at(beforeEnd)
	if err := topics.EndTransaction(ctx, p.client, kgo.TryCommit, p.newTopics(b)...); err != nil {
		return fmt.Errorf("end transaction, outcome unknown: %w", err)
	}
	p.run.r.at(afterEnd)
	return p.apply(b, offset)
}

// newTopics returns the topics of a batch that no earlier batch of this partition had.
func (p *partition) newTopics(b *batch) (list []string) {
	last, topo := "", p.run.r.topo
	note := func(topic string) {
		if topic == last { // most emits have the same topic as the emit before
			return
		}
		last = topic
		if _, known := p.knownTopics[topic]; !known {
			p.knownTopics[topic] = struct{}{}
			list = append(list, topic)
		}
	}
	note(topo.table)
	for i := range b.emits {
		note(b.topicOf(&b.emits[i], topo))
	}
	return list
}

// abortTransaction aborts the transaction. Otherwise, it would block readers until it times out.
func (p *partition) abortTransaction() {
	ctx, cancel := context.WithTimeout(context.Background(), p.run.r.cfg.HandoverTimeout)
	defer cancel()
	_ = p.client.AbortBufferedRecords(ctx)
	_ = p.client.EndTransaction(ctx, kgo.TryAbort)
}

// transactionRecords holds the records of one transaction. Its memory is reused for later transactions.
type transactionRecords struct {
	records     []kgo.Record
	headers     []kgo.RecordHeader
	originTimes []byte
}

// produce sends the records of a batch and returns the changelog offset of the last row.
func (p *partition) produce(ctx context.Context, b *batch) (int64, error) {
	f := p.run.r.recordPool.Get().(*transactionRecords)
	records := f.fill(b, p.run.r.topo, p.id)
	var failed atomic.Pointer[error]
	promise := func(_ *kgo.Record, err error) {
		if err != nil {
			first := err // a copy, so that err itself does not escape to the heap for every record
			failed.CompareAndSwap(nil, &first)
		}
	}
	for i := range records {
		p.client.Produce(ctx, &records[i], promise)
	}
	err := p.client.Flush(ctx)
	if first := failed.Load(); first != nil {
		err = *first
	}
	if err != nil {
		return 0, fmt.Errorf("produce: %w", err) // the client may still use records: do not reuse f
	}
	offset := f.lastRow(p.run.r.topo.table)
	f.reset()
	p.run.r.recordPool.Put(f)
	return offset, nil
}

// fill creates the records of a batch: its rows and its emits.
func (f *transactionRecords) fill(b *batch, topo *topology, partition int32) []kgo.Record {
	f.records = slices.Grow(f.records, len(b.writes)-len(b.skipped)+len(b.emits))
	for i := range b.writes {
		w := &b.writes[i]
		if w.replaced {
			continue
		}
		r := f.next()
		r.Topic, r.Partition, r.Key = topo.table, partition, b.at(w.key)
		if !w.deleted {
			r.Value = b.at(w.value)
		}
	}
	f.headers = grown(f.headers, len(b.emits))
	f.originTimes = grown(f.originTimes, 8*len(b.emits))
	for i := range b.emits {
		if e := &b.emits[i]; !b.isSuperseded(e) {
			f.emit(b, e, topo, i)
		}
	}
	return f.records
}

func grown[T any](s []T, n int) []T {
	if cap(s) < n {
		return make([]T, n)
	}
	return s[:n]
}

func (f *transactionRecords) next() *kgo.Record {
	f.records = append(f.records, kgo.Record{})
	return &f.records[len(f.records)-1]
}

func (f *transactionRecords) emit(b *batch, e *emit, topo *topology, i int) {
	since := f.originTimes[8*i : 8*i+8 : 8*i+8]
	binary.BigEndian.PutUint64(since, uint64(e.originTime))
	f.headers[i] = kgo.RecordHeader{Key: topics.OriginHeader, Value: since}
	r := f.next()
	r.Partition, r.Key = e.partition, b.at(e.key)
	if !e.noValue {
		r.Value = b.at(e.value)
	}
	r.Headers = f.headers[i : i+1 : i+1]
	if e.traced != 0 {
		r.Headers = append(r.Headers, kgo.RecordHeader{Key: tracing.Header, Value: b.traces.header(e.traced)})
	}
	r.Topic = b.topicOf(e, topo)
	if e.envelope == 0 {
		return
	}
	c := &b.envelopes[e.envelope-1]
	if !c.isNew {
		r.Timestamp = time.UnixMicro(c.micros)
	}
	for key, value := range c.headers {
		if e.traced == 0 || key != tracing.Header {
			r.Headers = append(r.Headers, kgo.RecordHeader{Key: key, Value: value})
		}
	}
}

func (f *transactionRecords) lastRow(table string) int64 {
	for i := len(f.records) - 1; i >= 0; i-- {
		if f.records[i].Topic == table {
			return f.records[i].Offset
		}
	}
	return offsetNone
}

// maxReusedRecords is the largest number of records whose memory is kept for reuse.
const maxReusedRecords = 32 << 10

func (f *transactionRecords) reset() {
	if cap(f.records) > maxReusedRecords {
		*f = transactionRecords{}
	}
	clear(f.records)
	f.records = f.records[:0]
}

// finishCommit marks the input offsets of a committed batch, which sarama commits for external tools, and notifies
// views, timers and metrics.
func (p *partition) finishCommit(b *batch, took time.Duration) {
	mark := p.offsetMetadata()
	for i, topic := range p.run.r.topo.reads() {
		if b.applied[i] >= 0 {
			p.session.MarkOffset(topic, p.id, b.applied[i]+1, mark)
		}
	}
	p.run.r.meter.committed(b, took, p.emission.active.Load())
	p.inFlight.commit()
	b.traces.end("")
	timers, ticked, chained := b.timers, b.ticked, b.nextTickSent
	p.mu.Lock()
	p.state.committed()
	b.reset()
	p.spare = b
	p.capacity.Broadcast()
	p.mu.Unlock()
	p.run.r.changed(p.id)
	if timers {
		p.timers.committed(ticked, chained)
	}
}
