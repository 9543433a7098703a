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

// poolGenerations runs the generations of the pools in this process: the active one and, if any, the one that is being
// built. It follows the topic that names them. Readers of the pools get the rows of the active one, and hold no reference
// to a generation.
type poolGenerations struct {
	p     *App
	watch *topics.GenerationWatch
	open  func(number int) (*rows.Runner, error)

	view atomic.Pointer[activeRows]

	mu       sync.Mutex
	active   int
	switched time.Time // time of the last cut-over; zero: none since the start
	opened   map[int]*openGeneration
}

// openGeneration is a generation in this process.
type openGeneration struct {
	runner *rows.Runner
	stop   context.CancelFunc // nil: it does not run yet
}

// retireAfter is how long the previous generation runs after a cut-over, for requests from other processes:
// cutOverDelay plus the maximum duration of a chunk request that started just before.
const retireAfter = 5 * time.Second

// cutOverDelay is the maximum time until every process has noticed a cut-over: one interval between checks, and the
// check itself. Until then, a process may still request chunks of the previous generation.
const cutOverDelay = 2 * topics.WatchInterval

// newPoolGenerations opens the active generation.
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
	return a.View.Read(ctx, owner, func(s rows.Snapshot) error { return f(cutOverSnapshot{s, a.since}) })
}

// cutOverSnapshot is a snapshot of a generation that replaced another one. Another process may have owned the partition
// of the previous generation.
type cutOverSnapshot struct {
	rows.Snapshot
	at time.Time
}

// Since returns when this process became the owner, but no earlier than the generation became active.
func (s cutOverSnapshot) Since() time.Time {
	if since := s.Snapshot.Since(); since.After(s.at) {
		return since
	}
	return s.at
}

// Changed returns the channel of the generation that is active now.
func (g *poolGenerations) Changed(owner string) <-chan struct{} { return g.view.Load().Changed(owner) }

// initial returns the Run function of the generation that was active when the process started. It runs until that
// generation is retired.
func (g *poolGenerations) initial() (run func(context.Context) error) {
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
		if opened == nil { // retired between two runs
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

// Run starts and stops all generations except the initial one, until ctx is done.
func (g *poolGenerations) Run(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error {
		return g.watch.Run(ctx, func(err error) {
			if err != nil {
				g.p.log.DebugContext(ctx, "cannot read the generations", "error", err)
				return
			}
			g.follow(ctx, group)
		})
	})
	return group.Wait()
}

// follow starts, activates and stops generations to match the topic.
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
		g.view.Store(&activeRows{opened.runner.View(), g.switched.Add(cutOverDelay)})
		g.p.log.InfoContext(ctx, "cut over to another generation of the pools", "generation", now.Active)
	}
	for number, own := range g.opened {
		if own.stop != nil && number != g.active && !slices.Contains(now.Numbers(), number) && time.Since(g.switched) > retireAfter {
			own.stop()
			delete(g.opened, number)
		}
	}
}

// start runs a generation under its own supervisor. The caller must hold mu.
func (g *poolGenerations) start(ctx context.Context, group *errgroup.Group, number int) {
	runner, err := g.open(number)
	if err != nil {
		g.p.log.ErrorContext(ctx, "cannot open a generation of the pools", "generation", number, "error", err)
		return
	}
	own, stop := context.WithCancel(ctx)
	g.opened[number] = &openGeneration{runner, stop}
	component := processors.Component{Name: generation.Name(topics.Pools, number), Run: g.p.afterGlobalTables(runner.Run)}
	supervisor := processors.NewSupervisor(processors.DefaultBackoff(), g.p.log, component)
	group.Go(func() error {
		defer stop()
		err := supervisor.Run(own)
		g.removeRetired(ctx, number)
		return err
	})
}

// removeRetired removes the local directories of a retired generation, or of all retired ones if number is 0. They are
// copies of changelogs that no process reads. Their runners must have stopped. If it cannot remove a directory, it logs
// the error, and the next start tries again.
func (g *poolGenerations) removeRetired(ctx context.Context, number int) {
	dir := g.p.cfg.below(g.p.cfg.Rows.Dir)
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		g.p.log.WarnContext(ctx, "cannot list local rows", "dir", dir, "error", err)
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
			g.p.log.WarnContext(ctx, "cannot remove local rows of a retired generation", "dir", retired, "error", err)
			continue
		}
		g.p.log.InfoContext(ctx, "removed local rows of a retired generation", "dir", retired)
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

// runningGroups returns the groups that run in this process, with every running generation.
func (p *App) runningGroups() []*rows.Runner {
	if p.generations == nil {
		return p.groups
	}
	others := slices.DeleteFunc(slices.Clone(p.groups), func(r *rows.Runner) bool { return r == p.firstPools })
	return append(others, p.generations.running()...)
}
