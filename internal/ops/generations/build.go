package generations

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/smartfeed/smartfeed/internal/command"
	"github.com/smartfeed/smartfeed/processors/pools"
	"github.com/smartfeed/smartfeed/processors/rows"
	"github.com/smartfeed/smartfeed/schemas"
	"github.com/smartfeed/smartfeed/topics"
)

// Built is the result of building a generation.
type Built struct {
	Generation int          `json:"generation"`       // the new active generation
	Former     int          `json:"former"`           // the previous active generation
	Copied     *rows.Copied `json:"copied,omitempty"` // nil: an earlier run copied the rows
	Left       int          `json:"left,omitempty"`   // candidates of related that were scored with another time constant and are not carried over
	Asked      Rebuilt      `json:"asked"`
	Seconds    float64      `json:"seconds"`
}

// String returns one line for people.
func (b Built) String() string {
	left := ""
	if b.Left > 0 {
		left = fmt.Sprintf("; %s of related scored by another half-life: not carried over", command.Count(b.Left, "candidate"))
	}
	return fmt.Sprintf("generation %d of the pools answers, of %s, after %.1f s; no process reads %s and %s any more, and \"smartfeed topics prune\" deletes them%s",
		b.Generation, command.Count(b.Asked.Users, "user"), b.Seconds, topics.TableOf(topics.GenerationName(topics.Pools, b.Former)),
		topics.TicksOf(topics.GenerationName(topics.Pools, b.Former)), left)
}

// rebuildGeneration is the command that builds a generation or resumes building it.
const rebuildGeneration = "rebuild all --generation"

// builder builds a generation of the pools while another one is active, and cuts over to it. Every step can be
// repeated. The topic generations and the topics of the new generation record the progress.
type builder struct {
	setup   topics.Setup
	streams *topics.Streams
	rate    float64     // users per second
	carry   pools.Carry // the rows to carry over, including the source that is rebuilt
	command string      // to resume it
	log     *topics.Log
	client  *kgo.Client
	watch   *topics.GenerationWatch
}

func newBuilder(ctx context.Context, setup topics.Setup, rate float64) (*builder, error) {
	b := &builder{setup: setup, rate: rate, command: rebuildGeneration}
	var err error
	if b.streams, err = setup.Streams(ctx); err != nil {
		return nil, err
	}
	if b.log, err = topics.NewLog(setup.Kafka); err != nil {
		return nil, err
	}
	b.watch = &topics.GenerationWatch{Log: b.log}
	if b.client, err = setup.Kafka.Client(); err != nil {
		b.log.Close()
	}
	return b, err
}

func (b *builder) close() {
	b.client.Close()
	b.log.Close()
}

// now returns the present generations.
func (b *builder) now(ctx context.Context) (topics.Generation, error) {
	err := b.watch.Refresh(ctx)
	return b.watch.Of(topics.Pools), err
}

// errEnded is returned when the generation is no longer being built.
var errEnded = errors.New("what was being built was given up meanwhile, or cut over to by another run")

// build resumes where an earlier run of the same command stopped. An error says how to resume.
func (b *builder) build(ctx context.Context) (Built, error) {
	start := time.Now()
	now, err := b.now(ctx)
	if err == nil {
		err = b.refuse(now, true)
	}
	if err != nil {
		return Built{}, err
	}
	if now.Building == 0 {
		now.Source, now.Command = b.carry.Source, b.command
	}
	b.carry.Source = now.Source
	done, err := b.from(ctx, &now)
	done.Seconds = time.Since(start).Seconds()
	if err != nil && !errors.Is(err, errEnded) {
		err = fmt.Errorf("%w (%s)", err, goesOn(now))
	}
	return done, err
}

// from takes the remaining steps. It keeps now as it was last published, except at the end.
func (b *builder) from(ctx context.Context, now *topics.Generation) (done Built, err error) {
	done.Former = now.Active
	if now.Building == 0 {
		if done.Copied, err = b.begin(ctx, now); err != nil {
			return done, err
		}
		done.Left = b.carry.Left()
	}
	done.Generation = now.Building
	if done.Asked, err = b.fill(ctx, now.Building); err != nil {
		return done, err
	}
	if err := b.cutOver(ctx, now); err != nil {
		return done, err
	}
	return done, topics.SetGeneration(ctx, b.client, topics.Generation{Group: topics.Pools, Active: now.Building})
}

// refuse returns an error if this run must not resume the generation that is being built: because another command
// started it, or because the run must not resume anything. The error says how to resume it.
func (b *builder) refuse(now topics.Generation, resume bool) error {
	if now.Building == 0 || resume && commandOf(now) == b.command {
		return nil
	}
	return fmt.Errorf("generation %d of the pools is being built: %s", now.Building, goesOn(now))
}

// goesOn describes how to resume the generation that is being built, and whether it can be aborted.
func goesOn(now topics.Generation) string {
	again := strconv.Quote("smartfeed " + commandOf(now))
	switch {
	case now.CuttingOver:
		return "it is being cut over already: " + again + " ends that"
	case now.Command == "":
		return "it was begun by a release that did not say when it is cut over: " + again + " ends it"
	}
	return again + ` goes on with it, "smartfeed rebuild all --abort" gives it up`
}

// commandOf returns the command that resumes building. A generation that a former release started without recording its
// command is resumed by a rebuild, which takes all remaining steps.
func commandOf(now topics.Generation) string { return cmp.Or(now.Command, rebuildGeneration) }

// abort aborts the generation that is being built, unless cut-over markers may have been sent: after a marker, the
// active generation produces no output.
func (b *builder) abort(ctx context.Context) error {
	now, err := b.now(ctx)
	switch {
	case err != nil:
		return err
	case now.Building == 0:
		return errors.New("no generation is being built")
	case now.CuttingOver, now.Command == "":
		return fmt.Errorf("generation %d of the pools cannot be given up: %s", now.Building, goesOn(now))
	}
	return topics.SetGeneration(ctx, b.client, topics.Generation{Group: topics.Pools, Active: now.Active})
}

// begin creates the topics of the next generation, copies the rows that followees cannot deliver, and makes the
// processes run it.
func (b *builder) begin(ctx context.Context, now *topics.Generation) (*rows.Copied, error) {
	profile, err := topics.ProfileOf(ctx, b.setup.Kafka)
	if err != nil {
		return nil, err
	}
	number, err := b.next(ctx, profile, now.Active)
	if err != nil {
		return nil, err
	}
	task := b.setup.Start("copy rows", -1)
	defer task.Done()
	copied, err := rows.Copy(ctx, b.setup.Kafka, topics.Pools, now.Active, number, b.carry.Keep, task.Add)
	if err != nil {
		return nil, err
	}
	now.Building, now.Token = number, rand.Text()
	return &copied, topics.SetGeneration(ctx, b.client, *now)
}

// next creates the topics of the first generation that has none: an aborted generation leaves rows.
func (b *builder) next(ctx context.Context, profile topics.Profile, active int) (int, error) {
	for number := active + 1; ; number++ {
		own := topics.GenerationTopics(profile, topics.Pools, number)
		plan, err := topics.Apply(ctx, b.setup.Kafka, own)
		if err != nil {
			return 0, err
		}
		if len(plan.Create) == len(own) {
			return number, nil
		}
	}
}

// fill requests backfills from the followees of all users.
func (b *builder) fill(ctx context.Context, number int) (Rebuilt, error) {
	if err := b.wait(ctx, "catch up"); err != nil {
		return Rebuilt{}, err
	}
	r := Rebuilder{
		Setup: b.setup, Streams: b.streams, Readers: b.setup.Readers(), Rate: b.rate,
		Source: b.carry.Source, Keep: topics.GenerationName(topics.Pools, number), Resume: true,
	}
	return r.All(ctx)
}

// cutOver announces the cut-over, sends the markers, and waits until both generations have applied everything before
// them.
func (b *builder) cutOver(ctx context.Context, now *topics.Generation) error {
	is, err := b.now(ctx)
	if err != nil {
		return err
	}
	if is.Building != now.Building {
		return errEnded
	}
	now.CuttingOver = true
	if err := topics.SetGeneration(ctx, b.client, *now); err != nil {
		return err
	}
	if err := topics.CutOver(ctx, b.setup.Kafka, poolsInputs(), *now); err != nil {
		return err
	}
	return b.wait(ctx, "cut over")
}

func (b *builder) wait(ctx context.Context, what string) error {
	task := b.setup.Start(what, -1)
	defer task.Done()
	return topics.Wait(ctx, b.setup.Kafka, schemas.MicrosOf(time.Now()), func(s topics.WaitState) { task.Say(s.String()) }, b.setup.Readers()...)
}

// poolsInputs returns the topics on which the pools are cut over: all inputs except the ticks, of which each generation
// has its own.
func poolsInputs() []string {
	return slices.DeleteFunc(topics.ReadBy(topics.Pools), func(t string) bool { return t == topics.TicksOf(topics.Pools) })
}
