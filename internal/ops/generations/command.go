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

// Rebuild builds a new generation of the pools of all users, and cuts over to it. It resumes an interrupted build of the
// same target. rate is the number of users per second. Errors include the command that resumes the build.
func Rebuild(ctx context.Context, setup topics.Setup, target Target, rate float64) (*Built, error) {
	a, err := open(ctx, setup)
	if err != nil {
		return nil, err
	}
	defer a.close()
	b := builder{access: a, command: "rebuild " + string(target), carry: pools.Carry{Source: target.source()}, rate: rate}
	return b.build(ctx)
}

// RebuildUser rebuilds the pools of a user in place, in one source, "" for both, and returns when they are complete. It
// returns ErrNoData for a user without rows.
func RebuildUser(ctx context.Context, setup topics.Setup, user schemas.UserID, source schemas.Source) (Rebuilt, error) {
	a, err := open(ctx, setup)
	if err != nil {
		return Rebuilt{}, err
	}
	defer a.close()
	if _, err := a.rowsOf(ctx, user); err != nil {
		return Rebuilt{}, fmt.Errorf("rebuild %s: %w", user, err)
	}
	return a.rebuild(ctx, []schemas.UserID{user}, schemas.Rebuild{Source: source}, 1)
}

// Abort aborts the generation that is being built. It returns an error if the cut-over may have started.
func Abort(ctx context.Context, setup topics.Setup) error {
	a, err := open(ctx, setup)
	if err != nil {
		return err
	}
	defer a.close()
	return (&builder{access: a}).abort(ctx)
}

// ReplayOptions configure Replay.
type ReplayOptions struct {
	Target   Target
	Rate     float64       // events per second
	Users    float64       // users per second whose pools are built, of all users
	HalfLife time.Duration // fanout.score_half_life, if it has changed; 0: it has not
}

// command returns the command line that resumes a replay of all users: it has the options that define the result.
func (o ReplayOptions) command() string {
	line := "replay " + string(o.Target)
	if o.HalfLife != 0 {
		line += " --half-life " + settings.Short(o.HalfLife)
	}
	return line
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
	parts := []string{"an earlier run replayed the events of pins"}
	if r.Events != nil {
		parts[0] = "replayed " + command.Count(r.Events.Events, "event") + " of pins"
	}
	if r.Built != nil {
		parts = append(parts, r.Built.String())
	}
	if r.Rebuilt != nil {
		parts = append(parts, r.Rebuilt.String())
	}
	return strings.Join(parts, "; ")
}

// Replay processes the log of pins again. For all users, it then builds a generation of the pools, or resumes an
// interrupted build of the same target and half-life. For one user, it rebuilds the user's pools in place.
func Replay(ctx context.Context, setup topics.Setup, o ReplayOptions) (done Replayed, err error) {
	start := time.Now()
	a, err := open(ctx, setup)
	if err != nil {
		return done, err
	}
	defer a.close()
	r := &replayer{access: a, rate: o.Rate, source: o.Target.source()}
	if o.Target.IsAll() {
		b := builder{access: a, command: o.command(), carry: pools.Carry{Source: r.source, HalfLife: o.HalfLife}, rate: o.Users}
		done, err = r.replayAll(ctx, b)
	} else {
		done, err = r.replayUser(ctx, schemas.UserID(o.Target))
	}
	done.Seconds = time.Since(start).Seconds()
	return done, err
}

// replayAll processes the log again and then builds a generation. If a generation is being built, an earlier run has
// processed the log.
func (r *replayer) replayAll(ctx context.Context, b builder) (done Replayed, err error) {
	now, err := b.check(ctx)
	if err == nil && now.State() == generation.Stable {
		done.Events, err = r.replay(ctx)
	}
	if err == nil {
		done.Built, err = b.build(ctx)
	}
	return done, err
}

// replayUser processes the publications of a user's followees again, and rebuilds the user's pools in place.
func (r *replayer) replayUser(ctx context.Context, user schemas.UserID) (Replayed, error) {
	done := Replayed{User: user}
	own, err := r.rowsOf(ctx, user)
	if err != nil {
		return done, fmt.Errorf("replay %s: %w", user, err)
	}
	r.followees = layout.Follows(own)
	if done.Events, err = r.replay(ctx); err != nil {
		return done, err
	}
	rebuilt, err := r.rebuild(ctx, []schemas.UserID{user}, schemas.Rebuild{}, 1)
	done.Rebuilt = &rebuilt
	return done, err
}
