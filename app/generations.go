package app

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/smartfeed/smartfeed/processors"
	"github.com/smartfeed/smartfeed/processors/rows"
	"github.com/smartfeed/smartfeed/topics"
	"github.com/smartfeed/smartfeed/topics/generation"
)

// poolGenerations manages the generations of the pools in this process: the active one, and one that is being built, if
// any. It follows the topic that names them, and gives readers of the pools the rows of the active one. Readers hold no
// reference to a generation.
type poolGenerations struct {
	p     *App
	watch *topics.GenerationWatch
	open  func(number int) (*rows.Runner, error)

	view atomic.Pointer[activeRows]

	mu       sync.Mutex
	active   int
	switched time.Time // when another one became active
	opened   map[int]*openGeneration
}

// openGeneration is a generation in this process.
type openGeneration struct {
	runner *rows.Runner
	stop   context.CancelFunc // nil: it does not run yet
}

// lingering is how long the previous generation keeps running for other processes: until cutOverReaches, plus the
// maximum duration of a chunk that was started then.
const lingering = 5 * time.Second

// cutOverReaches is the time after which every process knows about a cut-over, including the check itself. Until then,
// a process may still get chunks from the previous generation.
const cutOverReaches = 2 * topics.WatchInterval

// newPoolGenerations reads which generation is active, and opens it.
func newPoolGenerations(ctx context.Context, p *App, open func(number int) (*rows.Runner, error)) (*poolGenerations, error) {
	g := &poolGenerations{
		p: p, open: open, watch: &topics.GenerationWatch{Log: p.ends},
		opened: map[int]*openGeneration{},
	}
	if err := g.watch.Refresh(ctx); err != nil {
		return nil, err
	}
	g.active = g.watch.Of(topics.Pools).Active
	g.removeRetired(ctx, 0)
	runner, err := open(g.active)
	if err != nil {
		return nil, err
	}
	g.opened[g.active] = &openGeneration{runner: runner}
	g.view.Store(&activeRows{View: runner.View()})
	return g, nil
}

// activeRows are the rows of the active generation.
type activeRows struct {
	*rows.View
	since time.Time // when all processes had switched to it; zero: before the process started
}

// Read reads the rows of the active generation.
func (g *poolGenerations) Read(ctx context.Context, owner string, f func(rows.Snapshot) error) error {
	a := g.view.Load()
	if a.since.IsZero() {
		return a.View.Read(ctx, owner, f)
	}
	return a.View.Read(ctx, owner, func(s rows.Snapshot) error { return f(putInFront{s, a.since}) })
}

// putInFront is a snapshot of a generation that replaced another one, whose partition may have been owned by another
// process.
type putInFront struct {
	rows.Snapshot
	at time.Time
}

// Since returns when this process became the owner, but no earlier than the generation became active.
func (s putInFront) Since() time.Time {
	if since := s.Snapshot.Since(); since.After(s.at) {
		return since
	}
	return s.at
}

// Changed returns the channel of the generation that is active now.
func (g *poolGenerations) Changed(owner string) <-chan struct{} { return g.view.Load().Changed(owner) }

// first runs the generation that was active when the process started, until another one is.
func (g *poolGenerations) first() (run func(context.Context) error) {
	number := g.active
	return func(ctx context.Context) error {
		own, cancel := context.WithCancel(ctx)
		defer cancel()
		g.mu.Lock()
		opened := g.opened[number]
		if opened != nil {
			opened.stop = cancel
		}
		g.mu.Unlock()
		if opened == nil { // it was retired while it was not running
			<-ctx.Done()
			return nil
		}
		err := opened.runner.Run(own)
		if own.Err() != nil {
			g.removeRetired(ctx, number)
			<-ctx.Done()
			return nil
		}
		return err
	}
}

// Run runs all generations but the first, as they start and retire.
func (g *poolGenerations) Run(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error {
		return g.watch.Run(ctx, func(err error) {
			if err != nil {
				g.p.log.DebugContext(ctx, "generations are not known", "error", err)
				return
			}
			g.follow(ctx, group)
		})
	})
	return group.Wait()
}

// follow starts, activates and stops generations as the topic says.
func (g *poolGenerations) follow(ctx context.Context, group *errgroup.Group) {
	now := g.watch.Of(topics.Pools)
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, number := range now.Numbers() {
		if g.opened[number] == nil {
			g.start(ctx, group, number)
		}
	}
	if opened := g.opened[now.Active]; opened != nil && now.Active != g.active {
		g.active, g.switched = now.Active, time.Now()
		g.view.Store(&activeRows{opened.runner.View(), g.switched.Add(cutOverReaches)})
		g.p.log.InfoContext(ctx, "another generation of the pools answers", "generation", now.Active)
	}
	for number, own := range g.opened {
		if own.stop != nil && number != g.active && !slices.Contains(now.Numbers(), number) && time.Since(g.switched) > lingering {
			own.stop()
			delete(g.opened, number)
		}
	}
}

// start runs a generation under its own supervisor. mu is held.
func (g *poolGenerations) start(ctx context.Context, group *errgroup.Group, number int) {
	runner, err := g.open(number)
	if err != nil {
		g.p.log.ErrorContext(ctx, "a generation of the pools cannot be opened", "generation", number, "error", err)
		return
	}
	own, stop := context.WithCancel(ctx)
	g.opened[number] = &openGeneration{runner, stop}
	part := processors.Component{Name: generation.Name(topics.Pools, number), Run: g.p.afterGlobalTables(runner.Run)}
	supervisor := processors.NewSupervisor(processors.DefaultBackoff(), g.p.log, part)
	group.Go(func() error {
		defer stop()
		err := supervisor.Run(own)
		g.removeRetired(ctx, number)
		return err
	})
}

// removeRetired removes the local directories of a retired generation, or of all retired ones if number is 0. They are
// copies of changelogs that no process reads. No runner of such a generation may be running. A directory that cannot be
// removed is logged and removed at the next start.
func (g *poolGenerations) removeRetired(ctx context.Context, number int) {
	dir := g.p.cfg.below(g.p.cfg.Rows.Dir)
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		g.p.log.WarnContext(ctx, "local rows cannot be listed", "dir", dir, "error", err)
	}
	now := g.watch.Of(topics.Pools)
	for _, e := range entries {
		own, isTable := strings.CutSuffix(e.Name(), topics.TableOf(""))
		is := now.Retired(own)
		if !isTable || is == 0 || number != 0 && number != is {
			continue
		}
		retired := filepath.Join(dir, e.Name())
		if err := os.RemoveAll(retired); err != nil {
			g.p.log.WarnContext(ctx, "local rows of a retired generation cannot be removed", "dir", retired, "error", err)
			continue
		}
		g.p.log.InfoContext(ctx, "local rows of a retired generation are removed", "dir", retired)
	}
}

// running returns the generations in this process, the active one first.
func (g *poolGenerations) running() []*rows.Runner {
	g.mu.Lock()
	defer g.mu.Unlock()
	list := []*rows.Runner{g.opened[g.active].runner}
	for number, own := range g.opened {
		if number != g.active {
			list = append(list, own.runner)
		}
	}
	return list
}

// isActive reports whether a runner belongs to the active generation of its group.
func (p *App) isActive(r *rows.Runner) bool {
	return p.generations == nil || slices.Index(p.generations.running(), r) <= 0
}

// groupsNow returns the groups that run here, every generation of them.
func (p *App) groupsNow() []*rows.Runner {
	if p.generations == nil {
		return p.groups
	}
	others := slices.DeleteFunc(slices.Clone(p.groups), func(r *rows.Runner) bool { return r == p.firstPools })
	return append(others, p.generations.running()...)
}
