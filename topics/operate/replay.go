package operate

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

// replayPasses is how often a run goes through the log. While a followee's publications stand by two rules, those that are
// worked out first may be dropped for others that are not yet; after one pass all stand by one, and the next brings
// back what was dropped.
const replayPasses = 2

// replayBatch is how many events are published at once, and may be published again by a run that is resumed.
const replayBatch = 200

// Replayed is what came of a replay.
type Replayed struct {
	Source  schemas.Source `json:"source,omitempty"` // "": for every followee
	Events  int64          `json:"events"`           // published in all passes, by this run
	Before  int64          `json:"before,omitempty"` // by the run that was resumed
	Skipped int64          `json:"skipped"`          // of the log: deletes, records that nobody could read, what was not asked for
	Seconds float64        `json:"seconds"`
}

// Replayer has the events of pins worked off again, see schemas.Replay: a span of them or all, of all pins or of those that
// some followees have published. It goes through the log as it is when a pass begins: what is published meanwhile is
// worked off by the rules of now anyway.
type Replayer struct {
	Setup        topics.Setup // the brokers, and whom to tell
	Streams      *topics.Streams
	Readers      []topics.Reader               // that are waited for; none: those of the catalogue
	Source       schemas.Source                // only followees of this source are told; "": all are
	Since, Until time.Time                     // arrival of the events: from Since on, before Until; zero: without an end
	Followees    map[schemas.Followee]struct{} // only pins that some event of theirs names one of these with; nil: all
	Rate         float64                       // events a second, above 0
	Resume       bool                          // go on where the last run with the same source and span was
}

// Replay publishes the events and returns when they have had their effect. When ctx ends before, what was published has it
// all the same, and a run with Resume goes on from there.
func (r Replayer) Replay(ctx context.Context) (Replayed, error) {
	start := time.Now()
	run, err := newReplayRun(ctx, r)
	if err != nil {
		return Replayed{Source: r.Source}, fmt.Errorf("replay: %w", err)
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

// prefix begins the names of runs that go through the same events for the same followees.
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
	pins    map[schemas.PinID]struct{} // that events are published of; nil: all
	reached reached                    // by the run that is resumed
	done    Replayed
}

// reached is how far a run came: before next in each partition of a pass.
type reached struct {
	pass int32
	next map[int32]int64
}

func newReplayRun(ctx context.Context, r Replayer) (run *replayRun, err error) {
	batch := min(replayBatch, max(1, int(r.Rate/10)))
	run = &replayRun{
		Replayer: r, name: r.prefix() + rand.Text(), pace: rate.NewLimiter(rate.Limit(r.Rate), batch),
		reached: reached{pass: 1}, done: Replayed{Source: r.Source},
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

// partitionsError says that topics have another number of partitions than the configuration has.
type partitionsError struct{ Topics, Configured int32 }

// Error says what can be done.
func (e *partitionsError) Error() string {
	return fmt.Sprintf("the topics have %s, partitions is %d: the number never changes, not by a replay either; for another "+
		"one set up other brokers, make the topics there (topics apply) and publish what pins, follows, users and actions hold; "+
		"what was shown does not move", command.Count(e.Topics, "partition"), e.Configured)
}

// checkPartitions fails with a *partitionsError where keys would be looked for in other partitions than they are in.
func (run *replayRun) checkPartitions(ctx context.Context) error {
	ends, err := run.log.Ends(ctx, topics.Pins)
	if n := int32(len(ends[topics.Pins])); err == nil && n != run.Setup.Kafka.Partitions {
		err = &partitionsError{n, run.Setup.Kafka.Partitions}
	}
	return err
}

// resume takes over the name of the last run like this one, and how far it came.
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

// with is how far a run came that also came to next.
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

// names says whether an event names one of the followees.
func (run *replayRun) names(e *schemas.PinEvent) bool {
	has := func(f schemas.Followee) bool {
		_, ok := run.Followees[f]
		return ok
	}
	return has(schemas.Followee(e.Actor)) || has(schemas.Followee(e.Board)) ||
		slices.ContainsFunc(e.Interests, func(i schemas.InterestID) bool { return has(schemas.Followee(i)) })
}

// pass goes through the log once.
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

// partition publishes the events of a partition, in order, at the rate.
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

// replay returns the value of the record that has an event worked off again, nil for one that has no part in this.
func (run *replayRun) replay(rec *kgo.Record, pass int32) ([]byte, error) {
	before, late := rec.Timestamp.Before(run.Since), !run.Until.IsZero() && !rec.Timestamp.Before(run.Until)
	if before || late || topics.Partition(string(rec.Key), run.Setup.Kafka.Partitions) != rec.Partition { // it was sent on to its own
		return nil, nil
	}
	e, err := run.Streams.Pins.Decode(rec.Value)
	if bad := new(schemas.BadRecordError); errors.As(err, &bad) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if _, chosen := run.pins[schemas.PinID(e.Object)]; e.Verb == schemas.Delete || e.CheckKey(string(rec.Key)) != nil || run.pins != nil && !chosen {
		return nil, nil
	}
	return run.Streams.Replays.Encode(&schemas.Replay{
		Pin: schemas.PinID(e.Object), Event: rec.Value, Source: run.Source, Run: run.name, Pass: pass, Offset: rec.Offset,
	})
}

// send publishes a batch when its time has come, and returns when it is acknowledged.
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
