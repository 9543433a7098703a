package client

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	mathrand "math/rand/v2"
	"time"
)

// PublishOptions are the options of PublishAll.
type PublishOptions struct {
	MaxEvents int           // of a request; 0: 500
	MaxBytes  int           // a request is sent when it reaches this size; 0: 1 MiB
	Linger    time.Duration // how long the first event of a request waits for others; 0: 50 ms
	RetryFor  time.Duration // how long a request is repeated before its events are rejected; 0: two minutes
}

// A Rejection is an event that the server has not accepted.
type Rejection struct {
	Event   Event
	Reason  error
	Invalid bool // the event itself is invalid; otherwise it can be published again, with its id
}

// errOthers is the reason of valid events in a request with invalid ones: the server accepts all or none.
var errOthers = errors.New("not published, because other events of the request are invalid")

// PublishAll publishes the events of a channel until the channel is closed, and then returns nil. It sends them in batches, in
// order, with one request at a time. The capacity of the channel is the queue: if it is full, the server is slower than the
// senders. If ctx ends, PublishAll rejects the events that it has received, and returns the cause.
//
// An event without an ID gets a random one. An event without a Time gets the time at which PublishAll receives it: set the Time
// if the event may wait in the channel. If the server is unavailable or overloaded, PublishAll repeats the request with the same
// ids, so each event has one effect. It never repeats a request that the server rejected: rejected receives each of its events.
func (c *Client) PublishAll(ctx context.Context, events <-chan Event, rejected func(Rejection), o PublishOptions) error {
	o.MaxEvents, o.MaxBytes = cmp.Or(o.MaxEvents, 500), cmp.Or(o.MaxBytes, 1<<20)
	o.Linger, o.RetryFor = cmp.Or(o.Linger, 50*time.Millisecond), cmp.Or(o.RetryFor, 2*time.Minute)
	for open := true; open; {
		b := batch{rejected: rejected}
		if open = b.fill(ctx, events, o); len(b.events) > 0 {
			c.publishBatch(ctx, b, o.RetryFor)
		}
	}
	return context.Cause(ctx)
}

// batch is the events of a request.
type batch struct {
	events   []Event
	body     []byte
	rejected func(Rejection)
}

// fill waits for events, and reports whether there may be more: the channel is open, and so is ctx.
func (b *batch) fill(ctx context.Context, events <-chan Event, o PublishOptions) (open bool) {
	var linger <-chan time.Time
	for len(b.events) < o.MaxEvents && len(b.body) < o.MaxBytes {
		select {
		case e, ok := <-events:
			if !ok {
				return false
			}
			if b.add(e); linger == nil {
				linger = time.After(o.Linger)
			}
		case <-linger:
			return true
		case <-ctx.Done():
			return false
		}
	}
	return true
}

func (b *batch) add(e Event) {
	e.ID = cmp.Or(e.ID, rand.Text())
	if e.Time.IsZero() {
		e.Time = time.Now()
	}
	line, err := json.Marshal(e)
	if err != nil {
		b.rejected(Rejection{e, err, true})
		return
	}
	b.events, b.body = append(b.events, e), append(append(b.body, line...), '\n')
}

// publishBatch sends a batch until the server accepts or rejects it, or the time is over.
func (c *Client) publishBatch(ctx context.Context, b batch, retryFor time.Duration) {
	ctx, cancel := context.WithTimeout(ctx, retryFor)
	defer cancel()
	for backoff := 100 * time.Millisecond; ; backoff = min(2*backoff, 10*time.Second) {
		_, err := c.Publish(ctx, bytes.NewReader(b.body))
		if err == nil {
			return
		}
		wait, temporary := pause(err, backoff)
		if temporary {
			select {
			case <-time.After(wait):
				continue
			case <-ctx.Done():
			}
		}
		b.reject(err)
		return
	}
}

// pause returns how long to wait after an error, and reports whether the request may then succeed: there was no answer, or the
// server, or a proxy, is overloaded or unavailable. Half of the backoff is random, so that clients do not return at once.
func pause(err error, backoff time.Duration) (wait time.Duration, temporary bool) {
	wait = backoff/2 + mathrand.N(backoff/2)
	var refused *Error
	if !errors.As(err, &refused) {
		return wait, true
	}
	s := refused.Status
	return max(wait, time.Duration(refused.RetryAfter)*time.Second), s == 408 || s == 429 || s >= 502 && s <= 504
}

// reject reports each event, with its own reason if the server names its line.
func (b *batch) reject(err error) {
	reasons := map[int]error{}
	if refused, ok := errors.AsType[*Error](err); ok {
		for _, text := range refused.Errors {
			var line int
			if n, _ := fmt.Sscanf(text, "line %d", &line); n == 1 {
				reasons[line], err = errors.New(text), errOthers
			}
		}
	}
	for i, e := range b.events {
		reason, invalid := reasons[i+1]
		b.rejected(Rejection{e, cmp.Or(reason, err), invalid})
	}
}
