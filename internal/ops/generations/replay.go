package generations

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/smartfeed/smartfeed/internal/command"
	"github.com/smartfeed/smartfeed/schemas"
	"github.com/smartfeed/smartfeed/topics"
)

// replayPasses is the number of passes over the log. During the first pass, some publications of a followee have scores
// by the old rules and some by the new ones, so the followee's recents may drop the wrong ones. After it, all have scores
// by the new rules, and the second pass restores the dropped ones.
const replayPasses = 2

// replayBatch is the number of events published together. A resumed run may publish up to as many twice.
const replayBatch = 200

// ReplayedEvents counts the events of a replay.
type ReplayedEvents struct {
	Source  schemas.Source `json:"source,omitempty"` // "": for every followee
	Events  int64          `json:"events"`           // published in all passes by this run
	Before  int64          `json:"before,omitempty"` // published by the resumed run
	Skipped int64          `json:"skipped"`          // records that are not replayed: deletes, undecodable records, and pins outside the request
	Seconds float64        `json:"seconds"`
}

// replayer makes the group objects process events of pins again, see schemas.Replay. It can select the pins of some
// followees. Each pass reads the log up to its end at the start of the pass; the groups process later events
// by the current rules.
type replayer struct {
	*access
	ReplayOptions
	followees map[schemas.Followee]struct{} // only pins that some event assigns to one of these; nil: all pins

	run     string // the name of this run
	to      publisher
	pins    map[schemas.PinID]struct{} // pins to replay; nil: all
	reached reached                    // position of the resumed run
	done    ReplayedEvents
}

// reached is the position of a run: it has published the events before next in each partition of a pass.
type reached struct {
	pass int32
	next map[int32]int64
}

// replay publishes the events and returns when they have had their effect. If ctx is canceled before, the published events
// still take effect, and a run with resume continues after them.
func (r *replayer) replay(ctx context.Context) (ReplayedEvents, error) {
	start := time.Now()
	r.run, r.reached, r.done = r.prefix()+rand.Text(), reached{pass: 1}, ReplayedEvents{Source: r.Target.source()}
	r.to = r.publisher(r.Rate, replayBatch)
	if err := r.prepare(ctx); err != nil {
		return r.done, fmt.Errorf("replay: %w", err)
	}
	var err error
	for pass := r.reached.pass; err == nil && pass <= replayPasses; pass++ {
		err = r.pass(ctx, pass)
	}
	r.done.Seconds = time.Since(start).Seconds()
	if err != nil {
		err = fmt.Errorf("replay, after %s: %w", command.Count(r.done.Events, "event"), err)
	}
	return r.done, err
}

// prefix returns the prefix of the names of runs with the same source.
func (r *replayer) prefix() string { return string(r.Target.source()) + "|" }

// prepare finds the position of a resumed run, and the pins to replay.
func (r *replayer) prepare(ctx context.Context) error {
	err := r.checkPartitions(ctx)
	if err == nil && r.Resume {
		err = r.findRun(ctx)
	}
	if err == nil && r.followees != nil {
		err = r.choose(ctx)
	}
	return err
}

// checkPartitions returns an error if the configured partition count is wrong: the replay would look up keys in wrong
// partitions.
func (r *replayer) checkPartitions(ctx context.Context) error {
	ends, err := r.log.Ends(ctx, topics.Pins)
	if n := len(ends[topics.Pins]); err == nil && n != int(r.Kafka.Partitions) {
		err = fmt.Errorf("the topics have %s, partitions is %d: a replay cannot change the partition count. To change it, create "+
			"the topics on other brokers (topics apply) and publish the events of pins, follows, users and actions there; "+
			"materialized feeds cannot be migrated", command.Count(n, "partition"), r.Kafka.Partitions)
	}
	return err
}

// findRun finds the last run with the same prefix, and sets the name, position and count of this one.
func (r *replayer) findRun(ctx context.Context) error {
	counts, passes := map[string]int64{}, map[string]reached{}
	runOf := func(e *schemas.Replay) string { return e.Run }
	last, err := newestRun(ctx, r.log, r.streams.Replays, r.prefix(), runOf, func(e *schemas.Replay, rec *kgo.Record) {
		counts[e.Run]++
		passes[e.Run] = passes[e.Run].with(e.Pass, rec.Partition, e.Offset+1)
	})
	if err == nil && last == "" {
		err = errors.New("no run to resume")
	}
	if err != nil {
		return err
	}
	r.run, r.reached, r.done.Before = last, passes[last], counts[last]
	return nil
}

// with returns the position of a run that has also published the event before next.
func (at reached) with(pass, partition int32, next int64) reached {
	if pass < at.pass {
		return at
	}
	if pass > at.pass {
		at = reached{pass, map[int32]int64{}}
	}
	at.next[partition] = max(at.next[partition], next)
	return at
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
func (r *replayer) pass(ctx context.Context, pass int32) error {
	starts, err := r.log.Starts(ctx, topics.Pins)
	if err != nil {
		return err
	}
	ends, err := r.log.Ends(ctx, topics.Pins)
	if err != nil {
		return err
	}
	from, total := starts[topics.Pins], int64(0)
	for p := range from {
		if pass == r.reached.pass {
			from[p] = max(from[p], r.reached.next[p])
		}
		total += max(0, ends[topics.Pins][p]-from[p])
	}
	task := r.Start(fmt.Sprintf("replay, pass %d of %d", pass, replayPasses), int(total))
	defer task.Done()
	for _, p := range slices.Sorted(maps.Keys(from)) {
		if err := r.partition(ctx, task, pass, p, from[p], ends[topics.Pins][p]); err != nil {
			return err
		}
	}
	return r.wait(ctx, task)
}

// partition publishes the selected events of a partition, in order.
func (r *replayer) partition(ctx context.Context, task topics.Progress, pass, p int32, from, end int64) error {
	var batch []*kgo.Record
	flush := func() error {
		err := r.to.publish(ctx, batch)
		if err == nil {
			r.done.Events += int64(len(batch))
		}
		batch = batch[:0]
		return err
	}
	last := from
	err := r.log.ReadAround(ctx, topics.Pins, p, from, end, func(rec *kgo.Record) error {
		task.Add(int(rec.Offset + 1 - last)) // includes transaction markers
		last = rec.Offset + 1
		value, err := r.encode(rec, pass)
		if err != nil || value == nil {
			r.done.Skipped++
			return err
		}
		if batch = append(batch, &kgo.Record{Topic: topics.Replays, Key: rec.Key, Value: value}); len(batch) < r.to.batch {
			return nil
		}
		return flush()
	})
	if err != nil {
		return err
	}
	return flush()
}

// encode returns the encoded Replay for an event, or nil if the event is not selected.
func (r *replayer) encode(rec *kgo.Record, pass int32) ([]byte, error) {
	if topics.Partition(string(rec.Key), r.Kafka.Partitions) != rec.Partition { // misplaced records were re-emitted to the right partition
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
	return r.streams.Replays.Encode(&schemas.Replay{
		Pin: schemas.PinID(e.Object), Event: rec.Value, Source: r.Target.source(), Run: r.run, Pass: pass, Offset: rec.Offset,
	})
}
