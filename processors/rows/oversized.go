package rows

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/IBM/sarama"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/smartfeed/smartfeed/internal/pause"
	"github.com/smartfeed/smartfeed/schemas"
	"github.com/smartfeed/smartfeed/topics"
)

// Oversized batches. sarama refuses a batch that decompresses to more than topics.MaxDecompressedBytes, and with it all else
// that the broker sent in the same answer, as often as it asks: what stands before the batch does not come through either, nor
// do other inputs. So its session is ended, and the next one looks for the batch with a client that knows how far it
// goes. sarama begins behind it, that client reads what stands before it, and the batch itself is a bad record.

// oversized is a batch of an input that nobody reads.
type oversized struct {
	from int64 // the next offset of the input to be worked off
	at   int64 // the batch's first offset
	next int64 // the offset behind it
}

// last is the offset at which the batch is worked off.
func (o oversized) last() int64 { return o.next - 1 }

// bad is what the dead letter says.
func (o oversized) bad() error {
	return schemas.Bad(fmt.Sprintf("batch from offset %d to %d: decompresses to more than %d bytes; none of its records was read",
		o.at, o.last(), topics.MaxDecompressedBytes))
}

const (
	seeks      = 4 // reads in which an oversized batch is looked for: sarama asks for much less at a time
	mostInVain = 5 // sessions that look for one and find none: sarama may have been further than what was committed
)

// seek looks for an oversized batch in what is next of an input.
func (w *work) seek(ctx context.Context, topic string, partition int32, from int64) (oversized, bool, error) {
	next := from
	for range seeks {
		_, to, err := w.log.Read(ctx, topic, partition, next)
		if large := new(kgo.ErrDecompressTooLarge); errors.As(err, &large) {
			return oversized{from: from, at: large.Offset, next: large.NextOffset}, true, nil
		}
		if err != nil {
			return oversized{}, false, fmt.Errorf("look for an oversized batch: %w", err)
		}
		if to == next {
			break
		}
		next = to
	}
	return oversized{}, false, nil
}

// sought is called when a session has looked for oversized batches in all its inputs.
func (w *work) sought(s *session) {
	found := false
	for _, p := range s.parts {
		found = found || len(p.oversized) > 0
	}
	if w.inVain.Add(1); found {
		w.inVain.Store(0)
	}
	w.oversized.Store(false)
}

// relay hands on the errors of a consumer group until there are no more. One that says that a batch is oversized ends the
// session.
func (w *work) relay(errs <-chan error) <-chan error {
	out := make(chan error, 1)
	w.relays.Go(func() {
		defer close(out)
		for {
			select {
			case err, ok := <-errs:
				if !ok {
					return
				}
				w.notice(err)
				select {
				case out <- err:
				default: // as sarama does when nobody listens
				}
			case <-w.ctx.Done():
				return
			}
		}
	})
	return out
}

// notice ends the session if an error says that a batch is oversized. Which one it does not say: sarama has such an error of each
// input of the answer. When the batch is looked for in vain again and again, the Run ends.
func (w *work) notice(err error) {
	if !errors.Is(err, sarama.ErrDecompressedBatchTooLarge) || !w.oversized.CompareAndSwap(false, true) {
		return
	}
	if w.inVain.Load() >= mostInVain {
		w.stop(fmt.Errorf("no oversized batch is found, and there is one: %w", err))
		return
	}
	w.r.log.Warn("an input holds a batch that is too large when it is decompressed: the next session looks for it")
	w.mu.Lock()
	defer w.mu.Unlock()
	w.renew()
}

// claim is what Goka reads of an input: sarama's claim, behind an oversized batch and what stands before it, if there is one.
func (w *work) claim(s sarama.ConsumerGroupSession, c sarama.ConsumerGroupClaim) sarama.ConsumerGroupClaim {
	p := w.part(c.Partition())
	if p == nil {
		return c
	}
	large, found := p.oversized[c.Topic()]
	if !found {
		return c
	}
	s.ResetOffset(c.Topic(), c.Partition(), large.from, p.mark()) // sarama has begun: from here on it is what others are told
	messages := make(chan *sarama.ConsumerMessage)
	f := feeder{ctx: s.Context(), log: w.log, claim: c, large: large, out: messages}
	w.relays.Go(func() {
		defer close(messages)
		if err := f.run(); err != nil && f.ctx.Err() == nil {
			w.stop(fmt.Errorf("read %s/%d before an oversized batch: %w", c.Topic(), c.Partition(), err))
		}
	})
	return fedClaim{c, messages}
}

// fedClaim is a claim whose records come from a feeder.
type fedClaim struct {
	sarama.ConsumerGroupClaim
	messages <-chan *sarama.ConsumerMessage
}

// Messages are the feeder's.
func (c fedClaim) Messages() <-chan *sarama.ConsumerMessage { return c.messages }

// feeder hands on what stands before an oversized batch, the batch, and what sarama reads behind it.
type feeder struct {
	ctx   context.Context // of the session
	log   *topics.Log
	claim sarama.ConsumerGroupClaim
	large oversized
	out   chan<- *sarama.ConsumerMessage
}

func (f *feeder) run() error {
	if err := f.before(); err != nil {
		return err
	}
	batch := messageOf(&kgo.Record{Topic: f.claim.Topic(), Partition: f.claim.Partition(), Offset: f.large.last(), Timestamp: time.Now()})
	for ok := f.hand(batch); ok; {
		m, more := <-f.claim.Messages()
		ok = more && f.hand(m)
	}
	return nil
}

// before hands on the records before the batch.
func (f *feeder) before() error {
	for next := f.large.from; next < f.large.at; {
		records, to, err := f.log.Read(f.ctx, f.claim.Topic(), f.claim.Partition(), next)
		if errors.Is(err, kgo.ErrMaxDecompress) {
			return nil // there were markers alone
		}
		if err != nil {
			return err
		}
		for _, r := range records {
			if r.Offset < f.large.at && !f.hand(messageOf(r)) {
				return nil
			}
		}
		if to == next && !pause.For(f.ctx, 10*time.Millisecond) { // a leader that has just taken over may know less
			return nil
		}
		next = to
	}
	return nil
}

// hand hands a record on. False: the session is over.
func (f *feeder) hand(m *sarama.ConsumerMessage) bool {
	select {
	case f.out <- m:
		return true
	case <-f.ctx.Done():
		return false
	}
}

// messageOf is a record as sarama shows it.
func messageOf(r *kgo.Record) *sarama.ConsumerMessage {
	m := &sarama.ConsumerMessage{
		Topic: r.Topic, Partition: r.Partition, Offset: r.Offset, Key: r.Key, Value: r.Value, Timestamp: r.Timestamp,
	}
	for _, h := range r.Headers {
		m.Headers = append(m.Headers, &sarama.RecordHeader{Key: []byte(h.Key), Value: h.Value})
	}
	return m
}
