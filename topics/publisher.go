package topics

import (
	"context"
	"errors"
	"fmt"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/smartfeed/smartfeed/internal/tracing"
	"github.com/smartfeed/smartfeed/schemas"
)

// Publisher produces records, each to the partition of its key, and reports acknowledgements. It checks only what encoding
// needs, because the API and the commands validate events. It is safe for concurrent use. The caller must close it.
type Publisher struct {
	Operator string // recorded in deletes of pins and users, see OperatorHeader; "": unknown. Set it before use

	client  *kgo.Client
	streams *Streams
}

// NewPublisher returns a publisher. It does not connect until it is used.
func NewPublisher(k Kafka, s *Streams) (*Publisher, error) {
	client, err := k.Client()
	if err != nil {
		return nil, err
	}
	return &Publisher{client: client, streams: s}, nil
}

// Close drops unacknowledged records and closes the connections. Call Flush first.
func (p *Publisher) Close() { p.client.Close() }

// PublishError is returned when not all events of a publication are acknowledged. The outcome of the others is unknown. It is
// safe to publish all events again, because events have ids.
type PublishError struct {
	Acknowledged int // acknowledged events
	Events       int // all events of the publication
	Err          error
}

// Error returns the number of acknowledged events and the first error of the others.
func (e *PublishError) Error() string {
	return fmt.Sprintf("publish: %d of %d events are acknowledged: %v", e.Acknowledged, e.Events, e.Err)
}

// Unwrap returns the first error of an event.
func (e *PublishError) Unwrap() error { return e.Err }

// OperatorHeader is the header that names the operator or service that sent a record on behalf of a user. Deletes have it,
// because the actor of a user's delete is the user.
const OperatorHeader = "operator"

// Publish returns nil when every event is acknowledged. If an event cannot be encoded, nothing is published. After any
// other failure, including a canceled ctx, the error is a *PublishError.
func (p *Publisher) Publish(ctx context.Context, lines []schemas.Line) error {
	return p.PublishAs(ctx, p.Operator, lines)
}

// PublishAs is Publish with the given operator instead of p.Operator.
func (p *Publisher) PublishAs(ctx context.Context, operator string, lines []schemas.Line) error {
	records := make([]*kgo.Record, len(lines))
	for i, l := range lines {
		var err error
		if records[i], err = p.record(l, operator); err != nil {
			return fmt.Errorf("publish event %d: %w", i+1, err)
		}
	}
	ctx, span := startSend(ctx, records)
	acknowledged := 0
	err := produce(ctx, p.client, records, func(result kgo.ProduceResult) {
		if result.Err == nil {
			acknowledged++
		}
	})
	tracing.End(span, err)
	if err != nil {
		return &PublishError{Acknowledged: acknowledged, Events: len(lines), Err: err}
	}
	return nil
}

// Send publishes one event and returns immediately, unless the buffers are full. done is called from another goroutine with
// nil when the event is acknowledged, or with the error. done must not block.
func (p *Publisher) Send(ctx context.Context, line schemas.Line, done func(error)) {
	r, err := p.record(line, p.Operator)
	if err != nil {
		done(err)
		return
	}
	p.client.Produce(ctx, r, func(_ *kgo.Record, err error) { done(err) })
}

// Flush returns when no record is in flight, or when ctx is canceled.
func (p *Publisher) Flush(ctx context.Context) error {
	if err := p.client.Flush(ctx); err != nil {
		return fmt.Errorf("flush: %w", err)
	}
	return nil
}

// record encodes an event.
func (p *Publisher) record(l schemas.Line, operator string) (*kgo.Record, error) {
	stream, ok := p.streams.byTopic[l.Stream]
	if !ok {
		return nil, fmt.Errorf("encode %T: unknown stream %.64q", l.Event, l.Stream)
	}
	value, err := stream.encodeAny(l.Event)
	if err != nil {
		return nil, err
	}
	r := &kgo.Record{Topic: l.Stream, Key: []byte(l.Key), Value: value}
	if _, _, deletes := l.Deletes(); deletes && operator != "" {
		r.Headers = []kgo.RecordHeader{{Key: OperatorHeader, Value: []byte(operator)}}
	}
	return r, nil
}

// Decide publishes a decision about a term, and returns when it is acknowledged.
func (p *Publisher) Decide(ctx context.Context, d *schemas.InterestDecision) error {
	if err := send(ctx, p, p.streams.InterestDecisions, d.Term, d); err != nil {
		return fmt.Errorf("publish decision about %.64q: %w", d.Term, err)
	}
	return nil
}

// SendDeadLetter sends a record that a consumer cannot process to the dead-letter topic, and returns when it is acknowledged.
func (p *Publisher) SendDeadLetter(ctx context.Context, group string, r *kgo.Record, reason string) error {
	if err := send(ctx, p, p.streams.DeadLetters, r.Topic, NewDeadLetter(group, r, reason), WithOrigin(nil, OriginTime(r))...); err != nil {
		return fmt.Errorf("send dead letter of %s/%d/%d: %w", r.Topic, r.Partition, r.Offset, err)
	}
	return nil
}

// DeadLetterSender accepts records that cannot be read. *Publisher implements it.
type DeadLetterSender interface {
	// SendDeadLetter returns when the dead letter is acknowledged.
	SendDeadLetter(ctx context.Context, group string, r *kgo.Record, reason string) error
}

// SendIfBad sends a record to the dead-letter topic, and counts it, if err is a *schemas.BadRecordError. It returns any other
// error.
func SendIfBad(ctx context.Context, to DeadLetterSender, group string, r *kgo.Record, err error, sent func()) error {
	bad, ok := errors.AsType[*schemas.BadRecordError](err)
	if !ok {
		return fmt.Errorf("read %s/%d/%d: %w", r.Topic, r.Partition, r.Offset, err)
	}
	sent()
	return to.SendDeadLetter(ctx, group, r, bad.Reason)
}

func send[T any](ctx context.Context, p *Publisher, s Stream[T], key string, rec *T, headers ...kgo.RecordHeader) error {
	value, err := s.Encode(rec)
	if err != nil {
		return err
	}
	return Produce(ctx, p.client, &kgo.Record{Topic: s.Name, Key: []byte(key), Value: value, Headers: headers})
}
