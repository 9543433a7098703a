package product

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/smartfeed/smartfeed/internal/command"
	"github.com/smartfeed/smartfeed/processors/pools"
	"github.com/smartfeed/smartfeed/processors/rows"
	"github.com/smartfeed/smartfeed/schemas"
	"github.com/smartfeed/smartfeed/topics"
	"github.com/smartfeed/smartfeed/topics/operate"
)

// built is what came of building a generation.
type built struct {
	Generation int             `json:"generation"`       // that answers now
	Former     int             `json:"former"`           // that did before
	Copied     *rows.Copied    `json:"copied,omitempty"` // nil: an earlier run did
	Left       int             `json:"left,omitempty"`   // candidates of related that were scored by another half-life and are not taken over
	Asked      operate.Rebuilt `json:"asked"`
	Seconds    float64         `json:"seconds"`
}

// String is for people.
func (b built) String() string {
	left := ""
	if b.Left > 0 {
		left = fmt.Sprintf("; %d candidates of related were scored by another half-life and stay behind", b.Left)
	}
	return fmt.Sprintf("generation %d of the pools answers, of %d users, after %.1f s; %s and %s are read by nobody any more%s",
		b.Generation, b.Asked.Users, b.Seconds, topics.TableOf(topics.GenerationName(topics.Pools, b.Former)),
		topics.TicksOf(topics.GenerationName(topics.Pools, b.Former)), left)
}

// builder builds a generation of the pools beside the one that answers, and cuts over to it. Every step can be taken again,
// and where it is the topic generations and the new generation's own topics say.
type builder struct {
	setup   topics.Setup
	streams *topics.Streams
	rate    float64     // users a second
	carry   pools.Carry // what is taken over, the source that is built anew among it
	log     *topics.Log
	client  *kgo.Client
	watch   *topics.GenerationWatch
}

func newBuilder(ctx context.Context, setup topics.Setup, rate float64) (*builder, error) {
	b := &builder{setup: setup, rate: rate}
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

// build goes on from wherever an earlier run was.
func (b *builder) build(ctx context.Context) (built, error) {
	start := time.Now()
	if err := b.watch.Refresh(ctx); err != nil {
		return built{}, err
	}
	now := b.watch.Of(topics.Pools)
	done := built{Generation: now.Building, Former: now.Active}
	if now.Building != 0 {
		b.carry.Source = now.Source
	}
	if now.Building == 0 {
		var err error
		if done.Generation, done.Copied, err = b.begin(ctx, now.Active); err != nil {
			return done, err
		}
		done.Left = b.carry.Left()
	}
	var err error
	if done.Asked, err = b.fill(ctx, done.Generation); err != nil {
		return done, err
	}
	if err := topics.CutOver(ctx, b.setup.Kafka, poolsInputs(), topics.Pools, done.Generation); err != nil {
		return done, err
	}
	if err := b.wait(ctx, "cut over"); err != nil { // until everything before the marks is applied by both
		return done, err
	}
	err = topics.SetGeneration(ctx, b.client, topics.Generation{Group: topics.Pools, Active: done.Generation})
	done.Seconds = time.Since(start).Seconds()
	return done, err
}

// abort ends what is being built.
func (b *builder) abort(ctx context.Context) error {
	if err := b.watch.Refresh(ctx); err != nil {
		return err
	}
	now := b.watch.Of(topics.Pools)
	if now.Building == 0 {
		return errors.New("no generation is being built")
	}
	now.Building, now.Source = 0, ""
	return topics.SetGeneration(ctx, b.client, now)
}

// begin makes the topics of the next generation, copies what followees cannot bring, and has the processes run it.
func (b *builder) begin(ctx context.Context, active int) (int, *rows.Copied, error) {
	profile, err := topics.ProfileOf(ctx, b.setup.Kafka)
	if err != nil {
		return 0, nil, err
	}
	number, err := b.next(ctx, profile, active)
	if err != nil {
		return 0, nil, err
	}
	task := b.setup.Start("copy rows", -1)
	defer task.Done()
	copied, err := rows.Copy(ctx, b.setup.Kafka, topics.Pools, active, number, b.carry.Keep, task.Add)
	if err != nil {
		return 0, nil, err
	}
	err = topics.SetGeneration(ctx, b.client, topics.Generation{Group: topics.Pools, Active: active, Building: number, Source: b.carry.Source})
	return number, &copied, err
}

// next makes the topics of the first generation that has none: of one that was given up rows are left.
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

// fill has the followees of everybody bring what they have.
func (b *builder) fill(ctx context.Context, number int) (operate.Rebuilt, error) {
	if err := b.wait(ctx, "catch up"); err != nil {
		return operate.Rebuilt{}, err
	}
	r := operate.Rebuilder{
		Setup: b.setup, Streams: b.streams, Readers: b.setup.Readers(), Rate: b.rate,
		Source: b.carry.Source, Keep: topics.GenerationName(topics.Pools, number), Resume: true,
	}
	return r.All(ctx)
}

func (b *builder) wait(ctx context.Context, what string) error {
	task := b.setup.Start(what, -1)
	defer task.Done()
	return topics.Wait(ctx, b.setup.Kafka, schemas.MicrosOf(time.Now()), func(s topics.WaitState) { task.Say(s.String()) }, b.setup.Readers()...)
}

// poolsInputs are the topics on which the pools are cut over: all that they read, but the ticks, which are each
// generation's own.
func poolsInputs() []string {
	return slices.DeleteFunc(topics.ReadBy(topics.Pools), func(t string) bool { return t == topics.TicksOf(topics.Pools) })
}

// generation builds or gives up a generation, as the flags say.
func (p *program) generation(ctx context.Context, cmd *cobra.Command, o rebuildOptions) error {
	setup, err := p.setup(cmd)
	if err != nil {
		return err
	}
	b, err := newBuilder(ctx, setup, o.rate)
	if err != nil {
		return err
	}
	defer b.close()
	if o.abort {
		if err := b.abort(ctx); err != nil {
			return err
		}
		_, err := fmt.Fprintln(cmd.OutOrStdout(), "what was being built is given up")
		return err
	}
	done, err := b.build(ctx)
	if err != nil {
		return fmt.Errorf("%w (run it again to go on, or with --abort to give up)", err)
	}
	if o.json {
		return command.PrintJSON(cmd.OutOrStdout(), done)
	}
	_, err = fmt.Fprintln(cmd.OutOrStdout(), done)
	return err
}
