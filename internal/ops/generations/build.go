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
	"github.com/smartfeed/smartfeed/topics"
	"github.com/smartfeed/smartfeed/topics/generation"
)

// Built is the result of building a generation.
type Built struct {
	Generation int     `json:"generation"`                 // the new active generation
	Previous   int     `json:"previous"`                   // the previous active generation
	Copied     *Copied `json:"copied,omitempty"`           // nil: an earlier run copied the rows
	NotCarried int     `json:"not_carried_over,omitempty"` // candidates of related that were scored with another time constant and are not carried over
	Rebuilt    Rebuilt `json:"rebuilt"`                    // zero: an earlier run started the cut-over
	Seconds    float64 `json:"seconds"`
}

// String returns the result as one line of text.
func (b Built) String() string {
	left := ""
	if b.NotCarried > 0 {
		left = fmt.Sprintf("; %s of related not carried over: scored by another half-life", command.Count(b.NotCarried, "candidate"))
	}
	previous := generation.Name(topics.Pools, b.Previous)
	return fmt.Sprintf("generation %d of the pools is active, with %s, after %.1f s; \"smartfeed topics prune\" deletes the unused topics %s and %s%s",
		b.Generation, command.Count(b.Rebuilt.Users, "user"), b.Seconds, topics.TableOf(previous), topics.TicksOf(previous), left)
}

// rebuildGeneration is the command that builds a generation or resumes building it.
const rebuildGeneration = "rebuild all --generation"

// builder builds a generation of the pools while another one is active, and cuts over to it. It takes the steps of package
// generation, and can resume after each.
type builder struct {
	*access
	rate    float64     // users per second
	carry   pools.Carry // the rows to carry over, including the source that is rebuilt
	command string      // resumes the build
	watch   *topics.GenerationWatch
}

func newBuilder(a *access, usersPerSecond float64) *builder {
	return &builder{access: a, rate: usersPerSecond, command: rebuildGeneration, watch: &topics.GenerationWatch{Log: a.log}}
}

// now returns the present state of the pools.
func (b *builder) now(ctx context.Context) (generation.Record, error) {
	err := b.watch.Refresh(ctx)
	return b.watch.Of(topics.Pools), err
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

// build takes the remaining steps of a build. Errors include the command that resumes it.
func (b *builder) build(ctx context.Context) (done Built, err error) {
	start := time.Now()
	now, err := b.now(ctx)
	if err == nil {
		err = b.refuse(now, true)
	}
	if err != nil {
		return done, err
	}
	done.Previous = now.Active
	if now.State() == generation.Stable {
		now, err = b.start(ctx, now, &done)
	}
	b.carry.Source, done.Generation = now.Source, now.Building
	if err == nil && now.State() == generation.Building {
		if done.Rebuilt, err = b.fill(ctx, now.Building); err == nil {
			now, err = b.take(ctx, now.Building, generation.Record.CutOver)
		}
	}
	if err == nil {
		now, err = b.cutOver(ctx, now)
	}
	done.Seconds = time.Since(start).Seconds()
	if err != nil && !errors.Is(err, errEnded) {
		err = fmt.Errorf("%w (%s)", err, b.howToResume(now))
	}
	return done, err
}

// refuse returns an error if a generation is being built and this run must not resume it: because another command
// started it, or because resume is false.
func (b *builder) refuse(now generation.Record, resume bool) error {
	if now.State() == generation.Stable || resume && now.Command == b.command {
		return nil
	}
	return fmt.Errorf("generation %d of the pools is being built: %s", now.Building, b.howToResume(now))
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
func (b *builder) start(ctx context.Context, now generation.Record, done *Built) (generation.Record, error) {
	profile, err := topics.ProfileOf(ctx, b.Kafka)
	if err != nil {
		return now, err
	}
	number, err := b.next(ctx, profile, now.Active)
	if err != nil {
		return now, err
	}
	task := b.Start("copy rows", -1)
	defer task.Done()
	copied, err := Copy(ctx, b.Kafka, CopyOptions{Group: topics.Pools, From: now.Active, To: number, Keep: b.carry.Keep, Add: task.Add})
	if err != nil {
		return now, err
	}
	done.Copied, done.NotCarried = &copied, b.carry.Excluded()
	return b.take(ctx, 0, func(now generation.Record) (generation.Record, error) {
		return now.Start(number, b.carry.Source, b.command)
	})
}

// next creates the topics of the first generation without any. It does not reuse the topics of an aborted generation,
// which contain rows.
func (b *builder) next(ctx context.Context, profile topics.Profile, active int) (int, error) {
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

// fill requests backfills from the followees of all users.
func (b *builder) fill(ctx context.Context, number int) (Rebuilt, error) {
	if err := b.waitFor(ctx, "catch up"); err != nil {
		return Rebuilt{}, err
	}
	r := rebuilder{access: b.access, rate: b.rate, source: b.carry.Source, keep: generation.Name(topics.Pools, number), resume: true}
	return r.all(ctx)
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
