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

// run is the committer. It writes pending batches, one transaction at a time, until the partition is closed or has failed.
func (p *part) run() {
	defer close(p.ended)
	var r rhythm
	for p.await(&r) {
		began := time.Now()
		b := p.seal()
		if b == nil {
			continue
		}
		r.commit(began, p.w.r.shared.pace.gap())
		p.w.r.shared.pace.commit(began)
		if err := p.commit(b); err != nil {
			p.mu.Lock()
			p.fail(fmt.Errorf("commit %s/%d: %w", p.w.r.topo.table, p.id, err))
			p.mu.Unlock()
			return
		}
		p.settle(b, time.Since(began))
	}
}

// await blocks until there is something to commit and either the gap has passed or the batch is full. It returns false if
// nothing more will be committed.
func (p *part) await(r *rhythm) bool {
	for !p.waiting() {
		select {
		case <-p.kick:
		case <-p.ctx.Done():
			return false
		}
	}
	for !p.urgent() {
		turn := r.wait(time.Now(), p.w.r.shared.pace.gap())
		if turn <= 0 {
			break
		}
		if !sleep(p.ctx, turn, p.kick) {
			return false
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return !p.discard && (p.state.pending.waits() || !p.last())
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

// last reports whether no more records will be added. mu is held.
func (p *part) last() bool { return p.err != nil || p.closing }

// waiting reports whether there is something to commit or the partition ends.
func (p *part) waiting() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.last() || p.state.pending.waits()
}

// urgent reports whether the next commit must not wait for the gap.
func (p *part) urgent() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.last() || p.full()
}

// seal adds the applied rows to the pending batch and returns it for the commit. Callbacks then fill the next batch.
func (p *part) seal() *batch {
	p.mu.Lock()
	defer p.mu.Unlock()
	b := p.state.pending
	if p.discard || !b.waits() {
		return nil
	}
	for i, topic := range p.w.r.topo.reads() {
		if b.applied[i] >= 0 {
			at := position{topic: p.session.ids[topic], offset: b.applied[i]}
			p.state.putReserved(appliedName(topic), at.append(nil), false)
		}
	}
	b.sealed = true
	p.inFlight.seal()
	p.state.flying, p.state.pending, p.spare = b, p.spare, nil
	if p.state.pending == nil {
		p.state.pending = p.newBatch()
	}
	p.room.Broadcast()
	return b
}

// commit makes a batch durable: first on the brokers, in one transaction, then in the local store. After an error, the
// outcome of the transaction is unknown. The next owner settles it: it initializes the transactional id, which ends the
// transaction, and reads the result during recovery.
func (p *part) commit(b *batch) error {
	if err := errors.Join(p.w.r.checkDisk(), p.store.writable()); err != nil {
		return err
	}
	if err := p.client.BeginTransaction(); err != nil {
		return fmt.Errorf("begin transaction: %w", err)
	}
	ctx, cancel := context.WithTimeout(p.ctx, topics.DeliveryTimeout)
	defer cancel()
	offset, err := p.produce(ctx, b)
	if err != nil {
		p.abort()
		return err
	}
	p.w.r.at(beforeEnd)
	if err := topics.EndTransaction(ctx, p.client, kgo.TryCommit, p.newTopics(b)...); err != nil {
		return fmt.Errorf("end transaction, outcome unknown: %w", err)
	}
	p.w.r.at(afterEnd)
	return p.apply(b, offset)
}

// newTopics returns the topics of a batch that no earlier batch of this partition had.
func (p *part) newTopics(b *batch) (list []string) {
	last, topo := "", p.w.r.topo
	note := func(topic string) {
		if topic == last { // most emits have the same topic as the emit before
			return
		}
		last = topic
		if _, known := p.known[topic]; !known {
			p.known[topic] = struct{}{}
			list = append(list, topic)
		}
	}
	note(topo.table)
	for i := range b.emits {
		note(b.topicOf(&b.emits[i], topo))
	}
	return list
}

// abort aborts the transaction. Otherwise, it would block readers until it times out.
func (p *part) abort() {
	ctx, cancel := context.WithTimeout(context.Background(), p.w.r.cfg.Grace)
	defer cancel()
	_ = p.client.AbortBufferedRecords(ctx)
	_ = p.client.EndTransaction(ctx, kgo.TryAbort)
}

// flight holds the records of one transaction. Its memory is reused for later transactions.
type flight struct {
	records []kgo.Record
	headers []kgo.RecordHeader
	since   []byte
}

// produce sends the records of a batch and returns the changelog offset of the last row.
func (p *part) produce(ctx context.Context, b *batch) (int64, error) {
	f := p.w.r.flights.Get().(*flight)
	records := f.fill(b, p.w.r.topo, p.id)
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
	offset := f.lastRow(p.w.r.topo.table)
	f.reset()
	p.w.r.flights.Put(f)
	return offset, nil
}

// fill creates the records of a batch: its rows and its emits.
func (f *flight) fill(b *batch, topo *topology, partition int32) []kgo.Record {
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
	f.since = grown(f.since, 8*len(b.emits))
	for i := range b.emits {
		f.emit(b, &b.emits[i], topo, i)
	}
	return f.records
}

func grown[T any](s []T, n int) []T {
	if cap(s) < n {
		return make([]T, n)
	}
	return s[:n]
}

func (f *flight) next() *kgo.Record {
	f.records = append(f.records, kgo.Record{})
	return &f.records[len(f.records)-1]
}

func (f *flight) emit(b *batch, e *emit, topo *topology, i int) {
	since := f.since[8*i : 8*i+8 : 8*i+8]
	binary.BigEndian.PutUint64(since, uint64(e.since))
	f.headers[i] = kgo.RecordHeader{Key: topics.SinceHeader, Value: since}
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

func (f *flight) lastRow(table string) int64 {
	for i := len(f.records) - 1; i >= 0; i-- {
		if f.records[i].Topic == table {
			return f.records[i].Offset
		}
	}
	return offsetNone
}

// maxFlight is the largest number of records whose memory is kept for reuse.
const maxFlight = 32 << 10

func (f *flight) reset() {
	if cap(f.records) > maxFlight {
		*f = flight{}
	}
	clear(f.records)
	f.records = f.records[:0]
}

// settle announces a committed batch to sarama, which commits the input offsets for external tools, and to views, timers and
// metrics.
func (p *part) settle(b *batch, took time.Duration) {
	mark := p.mark()
	for i, topic := range p.w.r.topo.reads() {
		if b.applied[i] >= 0 {
			p.session.MarkOffset(topic, p.id, b.applied[i]+1, mark)
		}
	}
	p.w.r.meter.committed(b, took, p.emission.active.Load())
	p.inFlight.commit()
	b.traces.end("")
	timers, ticked, chained := b.timers, b.ticked, b.chained
	p.mu.Lock()
	p.state.committed()
	b.reset()
	p.spare = b
	p.room.Broadcast()
	p.mu.Unlock()
	p.w.r.changed(p.id)
	if timers {
		p.timers.committed(ticked, chained)
	}
}
