package generations

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"golang.org/x/time/rate"

	"github.com/smartfeed/smartfeed/internal/command"
	"github.com/smartfeed/smartfeed/schemas"
	"github.com/smartfeed/smartfeed/topics"
)

// replayPasses is the number of passes over the log. During the first pass, some publications of a followee have scores
// by the old rules and some by the new ones, so the followee's recents may drop the wrong ones. After it, all have scores
// by the new rules, and the second pass restores the dropped ones.
const replayPasses = 2

// replayBatch is the maximum number of events that are published together.
const replayBatch = 200

// ReplayedEvents counts the events of a replay.
type ReplayedEvents struct {
	Source  schemas.Source `json:"source,omitempty"` // "": for every followee
	Events  int64          `json:"events"`           // published in all passes
	Skipped int64          `json:"skipped"`          // records that are not replayed: deletes, undecodable records, and pins outside the request
	Seconds float64        `json:"seconds"`
}

// replayer makes the group objects process events of pins again, see schemas.Replay. It can select the pins of some
// followees. Each pass reads the log up to its end at the start of the pass; the groups process later events by the current
// rules.
type replayer struct {
	*access
	rate      float64                       // events per second
	source    schemas.Source                // "": for every followee
	followees map[schemas.Followee]struct{} // only pins that some event assigns to one of these; nil: all pins

	to      *publisher
	pins    map[schemas.PinID]struct{} // pins to replay; nil: all
	skipped int64
}

// replay publishes the events and returns when they have had their effect. If ctx is canceled before, the published events
// still take effect.
func (r *replayer) replay(ctx context.Context) (*ReplayedEvents, error) {
	start := time.Now()
	r.to = newPublisher(r.client, rate.Limit(r.rate), replayBatch)
	err := r.prepare(ctx)
	for pass := 1; err == nil && pass <= replayPasses; pass++ {
		err = r.pass(ctx, pass)
	}
	if err != nil {
		return nil, fmt.Errorf("replay, after %s: %w", command.Count(r.to.published, "event"), err)
	}
	return &ReplayedEvents{r.source, r.to.published, r.skipped, time.Since(start).Seconds()}, nil
}

// prepare checks the partition count, and selects the pins of the followees. With a wrong count, the replay would look up
// keys in wrong partitions.
func (r *replayer) prepare(ctx context.Context) error {
	ends, err := r.log.Ends(ctx, topics.Pins)
	if n := len(ends[topics.Pins]); err == nil && n != int(r.Kafka.Partitions) {
		err = fmt.Errorf("the topics have %s, partitions is %d: a replay cannot change the partition count. To change it, create "+
			"the topics on other brokers (topics apply) and publish the events of pins, follows, users and actions there; "+
			"materialized feeds cannot be migrated", command.Count(n, "partition"), r.Kafka.Partitions)
	}
	if err == nil && r.followees != nil {
		err = r.choose(ctx)
	}
	return err
}

// choose selects the pins of the followees.
func (r *replayer) choose(ctx context.Context) error {
	r.pins = map[schemas.PinID]struct{}{}
	return r.log.ReadAll(ctx, topics.Pins, topics.Decoded(r.streams.Pins, func(e *schemas.PinEvent, _ *kgo.Record) error {
		if r.names(e) {
			r.pins[schemas.PinID(e.Object)] = struct{}{}
		}
		return nil
	}))
}

// names reports whether an event names one of the followees.
func (r *replayer) names(e *schemas.PinEvent) bool {
	facets := e.Facets()
	for followee := range facets.Followees {
		if _, ok := r.followees[followee]; ok {
			return true
		}
	}
	return false
}

// pass reads the log once, publishes the selected events, and returns when they have had their effect.
func (r *replayer) pass(ctx context.Context, pass int) error {
	starts, err := r.log.Starts(ctx, topics.Pins)
	if err != nil {
		return err
	}
	ends, err := r.log.Ends(ctx, topics.Pins)
	if err != nil {
		return err
	}
	from, to, total := starts[topics.Pins], ends[topics.Pins], int64(0)
	for p := range from {
		total += max(0, to[p]-from[p])
	}
	task := r.Start(fmt.Sprintf("replay, pass %d of %d", pass, replayPasses), int(total))
	defer task.Done()
	for _, p := range slices.Sorted(maps.Keys(from)) {
		if err := r.partition(ctx, task, p, from[p], to[p]); err != nil {
			return err
		}
	}
	return r.wait(ctx, task)
}

// partition publishes the selected events of a partition, in order.
func (r *replayer) partition(ctx context.Context, task topics.Progress, p int32, from, end int64) error {
	last := from
	err := r.log.ReadAround(ctx, topics.Pins, p, from, end, func(rec *kgo.Record) error {
		task.Add(int(rec.Offset + 1 - last)) // includes transaction markers
		last = rec.Offset + 1
		value, err := r.encode(rec)
		if err != nil || value == nil {
			r.skipped++
			return err
		}
		return r.to.add(ctx, &kgo.Record{Topic: topics.Replays, Key: rec.Key, Value: value})
	})
	if err != nil {
		return err
	}
	return r.to.flush(ctx)
}

// encode returns the encoded Replay for an event, or nil if the event is not selected.
func (r *replayer) encode(rec *kgo.Record) ([]byte, error) {
	if topics.Partition(string(rec.Key), r.Kafka.Partitions) != rec.Partition { // it was re-emitted to the right partition
		return nil, nil
	}
	e, err := r.streams.Pins.Decode(rec.Value)
	if bad := new(schemas.BadRecordError); errors.As(err, &bad) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if _, chosen := r.pins[schemas.PinID(e.Object)]; e.Verb == schemas.Delete || e.Key() != string(rec.Key) || r.pins != nil && !chosen {
		return nil, nil
	}
	return r.streams.Replays.Encode(&schemas.Replay{Pin: schemas.PinID(e.Object), Event: rec.Value, Source: r.source})
}
