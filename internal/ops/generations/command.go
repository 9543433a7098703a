package generations

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/smartfeed/smartfeed/internal/command"
	"github.com/smartfeed/smartfeed/internal/settings"
	"github.com/smartfeed/smartfeed/processors/pools"
	"github.com/smartfeed/smartfeed/processors/pools/layout"
	"github.com/smartfeed/smartfeed/schemas"
	"github.com/smartfeed/smartfeed/topics"
	"github.com/smartfeed/smartfeed/topics/generation"
)

// Target selects the pools to rebuild: those of one user, or those of all users in one source or in both.
type Target string

// The targets other than a user's id.
const (
	All       Target = "all"
	Following        = Target(schemas.Following)
	Interest         = Target(schemas.FromInterest)
)

// Targets returns the targets other than a user's id.
func Targets() []Target { return []Target{Following, Interest, All} }

// IsAll reports whether the target is all users, in one source or in both.
func (t Target) IsAll() bool { return slices.Contains(Targets(), t) }

// source returns the source of the target; "": both.
func (t Target) source() schemas.Source {
	if t == Following || t == Interest {
		return schemas.Source(t)
	}
	return ""
}

// Validate returns an error unless the target is one of Targets or the id of a user.
func (t Target) Validate() error {
	if t.IsAll() {
		return nil
	}
	if _, err := schemas.ParseUserID(string(t)); err != nil {
		return fmt.Errorf("target %q: want following, interest, all, or the id of a user: %w", t, err)
	}
	return nil
}

// RebuildOptions configure Rebuild.
type RebuildOptions struct {
	Target Target
	Source schemas.Source // of a user; "": both
	Rate   float64        // users per second, of all users
	Resume bool           // continue the last run of all users
}

// Rebuild rebuilds pools in place and returns when they are complete.
func Rebuild(ctx context.Context, setup topics.Setup, o RebuildOptions) (Rebuilt, error) {
	a, err := open(ctx, setup)
	if err != nil {
		return Rebuilt{}, err
	}
	defer a.close()
	if !o.Target.IsAll() {
		return rebuilder{access: a, source: o.Source, rate: 1}.user(ctx, schemas.UserID(o.Target))
	}
	return rebuilder{access: a, source: o.Target.source(), rate: o.Rate, resume: o.Resume}.all(ctx)
}

// Build builds a new generation of the pools and cuts over to it. It resumes an interrupted build. rate is the number of
// users per second. Errors include the command that resumes the build.
func Build(ctx context.Context, setup topics.Setup, rate float64) (Built, error) {
	a, err := open(ctx, setup)
	if err != nil {
		return Built{}, err
	}
	defer a.close()
	return newBuilder(a, rate).build(ctx)
}

// Abort aborts the generation that is being built. It returns an error if the cut-over may have started.
func Abort(ctx context.Context, setup topics.Setup) error {
	a, err := open(ctx, setup)
	if err != nil {
		return err
	}
	defer a.close()
	return newBuilder(a, 1).abort(ctx)
}

// ReplayOptions configure Replay.
type ReplayOptions struct {
	Target   Target
	Rate     float64       // events per second
	Users    float64       // users per second whose pools are built, of all users
	Resume   bool          // continue the last run with the same target and HalfLife
	HalfLife time.Duration // fanout.score_half_life, if it has changed; 0: it has not
}

// command returns the command line that resumes a replay of all users: it has the options that define the result.
func (o ReplayOptions) command() string {
	words := []string{"replay", string(o.Target)}
	if o.HalfLife != 0 {
		words = append(words, "--half-life", settings.Short(o.HalfLife))
	}
	return strings.Join(append(words, "--resume"), " ")
}

// Replayed is the result of Replay.
type Replayed struct {
	User    schemas.UserID  `json:"user,omitempty"`
	Events  *ReplayedEvents `json:"events,omitempty"`  // nil: an earlier run replayed them
	Built   *Built          `json:"built,omitempty"`   // for all users
	Rebuilt *Rebuilt        `json:"rebuilt,omitempty"` // for one user
	Seconds float64         `json:"seconds"`
}

// String returns the result as one line of text.
func (r Replayed) String() string {
	var parts []string
	if r.Events != nil {
		parts = append(parts, "replayed "+command.Count(r.Events.Events, "event")+" of pins")
	}
	if r.Built != nil {
		parts = append(parts, r.Built.String())
	}
	if r.Rebuilt != nil {
		parts = append(parts, r.Rebuilt.String())
	}
	return strings.Join(parts, "; ")
}

// Replay processes the log of pins again. For all users, it then builds a generation of the pools. For one user, it
// rebuilds the user's pools in place.
func Replay(ctx context.Context, setup topics.Setup, o ReplayOptions) (done Replayed, err error) {
	start := time.Now()
	a, err := open(ctx, setup)
	if err != nil {
		return done, err
	}
	defer a.close()
	r := &replayer{access: a, ReplayOptions: o}
	if o.Target.IsAll() {
		b := newBuilder(a, o.Users)
		b.carry, b.command = pools.Carry{Source: o.Target.source(), HalfLife: o.HalfLife}, o.command()
		done, err = b.replay(ctx, r)
	} else {
		done, err = r.replayUser(ctx, schemas.UserID(o.Target))
	}
	done.Seconds = time.Since(start).Seconds()
	return done, err
}

// replay processes the log again and then builds a generation. If a generation is being built, the log has been processed,
// and a resumed run skips it.
func (b *builder) replay(ctx context.Context, r *replayer) (done Replayed, err error) {
	now, err := b.now(ctx)
	if err == nil {
		err = b.refuse(now, r.Resume)
	}
	if err != nil {
		return done, err
	}
	if now.State() == generation.Stable {
		events, err := r.replay(ctx)
		if done.Events = &events; err != nil {
			return done, fmt.Errorf("%w (--resume continues there)", err)
		}
	}
	built, err := b.build(ctx)
	done.Built = &built
	return done, err
}

// replayUser processes the publications of a user's followees again, and rebuilds the user's pools in place.
func (r *replayer) replayUser(ctx context.Context, user schemas.UserID) (Replayed, error) {
	done := Replayed{User: user}
	own, err := RowsOf(ctx, r.log, topics.Pools, user)
	if err == nil && len(own) == 0 {
		err = fmt.Errorf("replay %s: %w", user, ErrNoData)
	}
	if err != nil {
		return done, err
	}
	r.followees = layout.Follows(own)
	events, err := r.replay(ctx)
	if done.Events = &events; err != nil {
		return done, err
	}
	rebuilt, err := rebuilder{access: r.access, rate: 1}.user(ctx, user)
	done.Rebuilt = &rebuilt
	return done, err
}
