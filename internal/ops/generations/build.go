package generations

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/smartfeed/smartfeed/internal/command"
	"github.com/smartfeed/smartfeed/processors/pools"
	"github.com/smartfeed/smartfeed/schemas"
	"github.com/smartfeed/smartfeed/topics"
	"github.com/smartfeed/smartfeed/topics/generation"
)

// Built is the result of building a generation.
type Built struct {
	Generation int     `json:"generation"`       // the new active generation
	Previous   int     `json:"previous"`         // the previous active generation
	Copied     *Copied `json:"copied,omitempty"` // nil: an earlier run copied the rows
	Rebuilt    Rebuilt `json:"rebuilt"`          // zero: an earlier run started the cut-over
	Seconds    float64 `json:"seconds"`
}

// String returns the result as one line of text.
func (b Built) String() string {
	previous := generation.Name(topics.Pools, b.Previous)
	return fmt.Sprintf("generation %d of the pools is active, with %s, after %.1f s; \"smartfeed topics prune\" deletes the unused topics %s and %s",
		b.Generation, command.Count(b.Rebuilt.Users, "user"), b.Seconds, topics.TableOf(previous), topics.TicksOf(previous))
}

// builder builds a generation of the pools while another one is active, and cuts over to it. It takes the steps of package
// generation, and can resume after each.
type builder struct {
	*access
	command string      // starts the build, and resumes it
	carry   pools.Carry // the rows to carry over, including the source that is rebuilt
	rate    float64     // users per second
}

// now returns the present state of the pools.
func (b *builder) now(ctx context.Context) (generation.Record, error) {
	return stateOf(ctx, b.log, topics.Pools)
}

// errEnded is returned when another run has aborted or finished the build.
var errEnded = errors.New("another run has aborted or finished the build")

// take publishes the next state of a build. building is the generation being built, 0 before the start. It returns the
// resulting state.
func (b *builder) take(ctx context.Context, building int, step func(generation.Record) (generation.Record, error)) (generation.Record, error) {
	now, err := b.now(ctx)
	if err == nil && now.Building != building {
		err = errEnded
	}
	if err != nil {
		return now, err
	}
	next, err := step(now)
	if err == nil {
		err = topics.SetGeneration(ctx, b.client, next)
	}
	if err != nil {
		return now, err
	}
	return next, nil
}

// check returns the present state of the pools, and an error if another command builds a generation.
func (b *builder) check(ctx context.Context) (generation.Record, error) {
	now, err := b.now(ctx)
	if err == nil && now.State() != generation.Stable && now.Command != b.command {
		err = fmt.Errorf("generation %d of the pools is being built: %s", now.Building, b.howToResume(now))
	}
	return now, err
}

// build takes the remaining steps of a build. Errors include the command that resumes it.
func (b *builder) build(ctx context.Context) (*Built, error) {
	start := time.Now()
	now, err := b.check(ctx)
	if err != nil {
		return nil, err
	}
	done := &Built{Previous: now.Active}
	for err == nil && now.Active == done.Previous {
		now, err = b.advance(ctx, now, done)
	}
	done.Generation, done.Seconds = now.Active, time.Since(start).Seconds()
	if err != nil && !errors.Is(err, errEnded) {
		err = fmt.Errorf("%w (%s)", err, b.howToResume(now))
	}
	return done, err
}

// advance takes the next step of a build, and returns the resulting state.
func (b *builder) advance(ctx context.Context, now generation.Record, done *Built) (next generation.Record, err error) {
	switch now.State() {
	case generation.Stable:
		next, done.Copied, err = b.start(ctx, now)
	case generation.Building:
		next, done.Rebuilt, err = b.fill(ctx, now)
	case generation.CuttingOver:
		next, err = b.cutOver(ctx, now)
	}
	return next, err
}

// howToResume describes how to resume the build, and whether it can be aborted.
func (b *builder) howToResume(now generation.Record) string {
	switch now.State() {
	case generation.CuttingOver:
		return fmt.Sprintf("the cut-over has started: %q finishes it", "smartfeed "+now.Command)
	case generation.Building:
		return fmt.Sprintf(`%q resumes it, "smartfeed rebuild all --abort" aborts it`, "smartfeed "+now.Command)
	}
	return strconv.Quote("smartfeed "+b.command) + " starts another build"
}

// abort aborts the generation that is being built, unless marks may have been written: after a mark, the active generation
// emits nothing.
func (b *builder) abort(ctx context.Context) error {
	now, err := b.now(ctx)
	switch {
	case err != nil:
		return err
	case now.State() == generation.Stable:
		return errors.New("no generation is being built")
	case now.State() == generation.CuttingOver:
		return fmt.Errorf("abort generation %d of the pools: %s", now.Building, b.howToResume(now))
	}
	_, err = b.take(ctx, now.Building, generation.Record.Abort)
	return err
}

// start creates the topics of the next generation, copies the rows that a backfill cannot restore, and announces the
// generation to the processes.
func (b *builder) start(ctx context.Context, now generation.Record) (generation.Record, *Copied, error) {
	number, err := b.next(ctx, now.Active)
	if err != nil {
		return now, nil, err
	}
	copied, err := Copy(ctx, b.Setup, now.Active, number, b.carry.Keep)
	if err != nil {
		return now, nil, err
	}
	now, err = b.take(ctx, 0, func(now generation.Record) (generation.Record, error) { return now.Start(number, b.command) })
	return now, copied, err
}

// next creates the topics of the first generation without any. It does not reuse the topics of an aborted generation,
// which contain rows.
func (b *builder) next(ctx context.Context, active int) (int, error) {
	profile, err := topics.ProfileOf(ctx, b.Kafka)
	if err != nil {
		return 0, err
	}
	for number := active + 1; ; number++ {
		own := topics.GenerationTopics(profile, topics.Pools, number)
		plan, err := topics.Apply(ctx, b.Kafka, own)
		if err != nil {
			return 0, err
		}
		if len(plan.Create) == len(own) {
			return number, nil
		}
	}
}

// fill requests backfills from the followees of all users. A resumed run requests them again.
func (b *builder) fill(ctx context.Context, now generation.Record) (generation.Record, Rebuilt, error) {
	if err := b.waitFor(ctx, "catch up"); err != nil {
		return now, Rebuilt{}, err
	}
	users, err := ownersOf(ctx, b.log, topics.Pools)
	if err != nil {
		return now, Rebuilt{}, err
	}
	done, err := b.rebuild(ctx, users, schemas.Rebuild{Source: b.carry.Source, Keep: true}, b.rate)
	if err == nil {
		now, err = b.take(ctx, now.Building, generation.Record.CutOver)
	}
	return now, done, err
}

// cutOver writes the marks, and waits until both generations have processed all records before them.
func (b *builder) cutOver(ctx context.Context, now generation.Record) (generation.Record, error) {
	if err := topics.WriteMarks(ctx, b.Kafka, poolsInputs(), now); err != nil {
		return now, err
	}
	if err := b.waitFor(ctx, "cut over"); err != nil {
		return now, err
	}
	return b.take(ctx, now.Building, generation.Record.Finish)
}

func (b *builder) waitFor(ctx context.Context, what string) error {
	task := b.Start(what, -1)
	defer task.Done()
	return b.wait(ctx, task)
}

// poolsInputs returns the topics that get marks: all inputs of the pools except the ticks, because each generation has
// its own ticks.
func poolsInputs() []string {
	return slices.DeleteFunc(topics.ReadBy(topics.Pools), func(t string) bool { return t == topics.TicksOf(topics.Pools) })
}
