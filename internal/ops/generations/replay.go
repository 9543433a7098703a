package generations

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"golang.org/x/time/rate"

	"github.com/smartfeed/smartfeed/internal/command"
	"github.com/smartfeed/smartfeed/schemas"
	"github.com/smartfeed/smartfeed/topics"
)

// replayPasses is the number of passes over the log. During the first pass, a followee's publications are scored by two
// rules. Those already processed may be dropped in favor of others that are not. After it, all are scored by one rule, and
// the second pass restores what was dropped.
const replayPasses = 2

// replayBatch is the number of events published together. A resumed run may publish as many again.
const replayBatch = 200

// ReplayedEvents is the result of Replayer.Replay.
type ReplayedEvents struct {
	Source  schemas.Source `json:"source,omitempty"` // "": for every followee
	Events  int64          `json:"events"`           // published in all passes by this run
	Before  int64          `json:"before,omitempty"` // published by the resumed run
	Skipped int64          `json:"skipped"`          // records of the log without a replay: deletes, undecodable records, and pins or times that were not requested
	Seconds float64        `json:"seconds"`
}

// Replayer makes the group objects process events of pins again, see schemas.Replay. It can select a time span, and the
// pins of some followees. It reads the log up to its end at the start of each pass. Later events are processed by the
// current rules anyway.
type Replayer struct {
	Setup        topics.Setup // the brokers, and the progress display
	Streams      *topics.Streams
	Readers      []topics.Reader               // readers to wait for; none: those of the catalogue
	Source       schemas.Source                // publish only to followees of this source; "": to all
	Since, Until time.Time                     // arrival of the events: from Since, before Until; zero: unbounded
	Followees    map[schemas.Followee]struct{} // only pins that some event assigns to one of these; nil: all pins
	Rate         float64                       // events per second, above 0
	Resume       bool                          // continue the last run with the same source and span
}

// Replay publishes the events and returns when they have had their effect. If ctx is canceled before, the published events
// still take effect, and a run with Resume continues after them.
func (r Replayer) Replay(ctx context.Context) (ReplayedEvents, error) {
	start := time.Now()
	run, err := newReplayRun(ctx, r)
	if err != nil {
		return ReplayedEvents{Source: r.Source}, fmt.Errorf("replay: %w", err)
	}
	defer run.close()
	for pass := run.reached.pass; err == nil && pass <= replayPasses; pass++ {
		if err = run.pass(ctx, pass); err == nil {
			err = topics.Wait(ctx, r.Setup.Kafka, schemas.MicrosOf(time.Now()), nil, r.Readers...)
		}
	}
	run.done.Seconds = time.Since(start).Seconds()
	if err != nil {
		err = fmt.Errorf("replay, after %s: %w", command.Count(run.done.Events, "event"), err)
	}
	return run.done, err
}

// prefix returns the prefix of the names of runs with the same source and span.
func (r Replayer) prefix() string {
	name := func(t time.Time) string {
		if t.IsZero() {
			return ""
		}
		return t.UTC().Format(time.RFC3339Nano)
	}
	return fmt.Sprintf("%s|%s|%s|", r.Source, name(r.Since), name(r.Until))
}

// replayRun is one run of a Replayer.
type replayRun struct {
	Replayer
	log     *topics.Log
	client  *kgo.Client
	pace    *rate.Limiter
	name    string
	pins    map[schemas.PinID]struct{} // pins to replay; nil: all
	reached reached                    // position of the resumed run
	done    ReplayedEvents
}

// reached is the position of a run: everything before next in each partition of a pass is published.
type reached struct {
	pass int32
	next map[int32]int64
}

func newReplayRun(ctx context.Context, r Replayer) (run *replayRun, err error) {
	batch := min(replayBatch, max(1, int(r.Rate/10)))
	run = &replayRun{
		Replayer: r, name: r.prefix() + rand.Text(), pace: rate.NewLimiter(rate.Limit(r.Rate), batch),
		reached: reached{pass: 1}, done: ReplayedEvents{Source: r.Source},
	}
	if run.log, err = topics.NewLog(r.Setup.Kafka); err != nil {
		return nil, err
	}
	if run.client, err = r.Setup.Kafka.Client(); err != nil {
		run.log.Close()
		return nil, err
	}
	if err = run.checkPartitions(ctx); err == nil && r.Resume {
		err = run.resume(ctx)
	}
	if err == nil && r.Followees != nil {
		err = run.choose(ctx)
	}
	if err != nil {
		run.close()
	}
	return run, err
}

func (run *replayRun) close() {
	run.client.Close()
	run.log.Close()
}

// partitionsError is returned when the topics have a different number of partitions than the configuration.
type partitionsError struct{ Topics, Configured int32 }

// Error says what can be done.
func (e *partitionsError) Error() string {
	return fmt.Sprintf("the topics have %s, partitions is %d: the number never changes, not by a replay either; for another "+
		"one set up other brokers, make the topics there (topics apply) and publish what pins, follows, users and actions hold; "+
		"what was shown does not move", command.Count(e.Topics, "partition"), e.Configured)
}

// checkPartitions returns a *partitionsError if the configured partition count is wrong: keys would be searched in wrong
// partitions.
func (run *replayRun) checkPartitions(ctx context.Context) error {
	ends, err := run.log.Ends(ctx, topics.Pins)
	if n := int32(len(ends[topics.Pins])); err == nil && n != run.Setup.Kafka.Partitions {
		err = &partitionsError{n, run.Setup.Kafka.Partitions}
	}
	return err
}

// resume continues the last run with the same prefix: it sets the run's name, position and count.
func (run *replayRun) resume(ctx context.Context) error {
	var newest time.Time
	former, counts := "", map[string]int64{}
	passes := map[string]reached{}
	err := run.log.ReadAll(ctx, topics.Replays, func(rec *kgo.Record) error {
		r, err := run.Streams.Replays.Decode(rec.Value)
		if err != nil || !strings.HasPrefix(r.Run, run.prefix()) {
			return nil
		}
		if !rec.Timestamp.Before(newest) {
			newest, former = rec.Timestamp, r.Run
		}
		counts[r.Run]++
		passes[r.Run] = passes[r.Run].with(r.Pass, rec.Partition, r.Offset+1)
		return nil
	})
	if err != nil {
		return err
	}
	if former == "" {
		return errors.New("there is no run to resume")
	}
	run.name, run.reached, run.done.Before = former, passes[former], counts[former]
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

// choose finds the pins that the followees have published.
func (run *replayRun) choose(ctx context.Context) error {
	run.pins = map[schemas.PinID]struct{}{}
	return run.log.ReadAll(ctx, topics.Pins, func(rec *kgo.Record) error {
		e, err := run.Streams.Pins.Decode(rec.Value)
		if err == nil && run.names(e) {
			run.pins[schemas.PinID(e.Object)] = struct{}{}
		}
		return nil
	})
}

// names reports whether an event names one of the followees.
func (run *replayRun) names(e *schemas.PinEvent) bool {
	facets := e.Facets()
	for followee := range facets.Followees {
		if _, ok := run.Followees[followee]; ok {
			return true
		}
	}
	return false
}

// pass reads the log once and publishes the selected events.
func (run *replayRun) pass(ctx context.Context, pass int32) error {
	starts, err := run.log.Starts(ctx, topics.Pins)
	if err != nil {
		return err
	}
	ends, err := run.log.Ends(ctx, topics.Pins)
	if err != nil {
		return err
	}
	from, total := starts[topics.Pins], int64(0)
	for p := range from {
		if pass == run.reached.pass {
			from[p] = max(from[p], run.reached.next[p])
		}
		total += max(0, ends[topics.Pins][p]-from[p])
	}
	task := run.Setup.Start(fmt.Sprintf("replay, pass %d of %d", pass, replayPasses), int(total))
	defer task.Done()
	for _, p := range slices.Sorted(maps.Keys(from)) {
		if err := run.partition(ctx, task, pass, p, from[p], ends[topics.Pins][p]); err != nil {
			return err
		}
	}
	return nil
}

// partition publishes the selected events of a partition, in order, at the configured rate.
func (run *replayRun) partition(ctx context.Context, task topics.Progress, pass, p int32, from, end int64) error {
	batch := make([]*kgo.Record, 0, run.pace.Burst())
	flush := func() error {
		err := run.send(ctx, batch)
		batch = batch[:0]
		return err
	}
	last := from
	err := run.log.ReadAround(ctx, topics.Pins, p, from, end, func(rec *kgo.Record) error {
		task.Add(int(rec.Offset + 1 - last)) // markers count
		last = rec.Offset + 1
		value, err := run.replay(rec, pass)
		if err != nil || value == nil {
			run.done.Skipped++
			return err
		}
		if batch = append(batch, &kgo.Record{Topic: topics.Replays, Key: rec.Key, Value: value}); len(batch) < cap(batch) {
			return nil
		}
		return flush()
	})
	if err != nil {
		return err
	}
	return flush()
}

// replay returns the encoded Replay for an event, or nil if the event is not selected.
func (run *replayRun) replay(rec *kgo.Record, pass int32) ([]byte, error) {
	before, late := rec.Timestamp.Before(run.Since), !run.Until.IsZero() && !rec.Timestamp.Before(run.Until)
	if before || late || topics.Partition(string(rec.Key), run.Setup.Kafka.Partitions) != rec.Partition { // misplaced records were re-emitted to the right partition
		return nil, nil
	}
	e, err := run.Streams.Pins.Decode(rec.Value)
	if bad := new(schemas.BadRecordError); errors.As(err, &bad) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if _, chosen := run.pins[schemas.PinID(e.Object)]; e.Verb == schemas.Delete || e.Key() != string(rec.Key) || run.pins != nil && !chosen {
		return nil, nil
	}
	return run.Streams.Replays.Encode(&schemas.Replay{
		Pin: schemas.PinID(e.Object), Event: rec.Value, Source: run.Source, Run: run.name, Pass: pass, Offset: rec.Offset,
	})
}

// send waits for the rate limit, publishes a batch, and returns when it is acknowledged.
func (run *replayRun) send(ctx context.Context, batch []*kgo.Record) error {
	if len(batch) == 0 {
		return nil
	}
	if err := run.pace.WaitN(ctx, len(batch)); err != nil {
		return err
	}
	if err := topics.Produce(ctx, run.client, batch...); err != nil {
		return fmt.Errorf("publish %s: %w", topics.Replays, err)
	}
	run.done.Events += int64(len(batch))
	return nil
}
