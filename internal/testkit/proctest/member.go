package proctest

import (
	"context"
	"errors"
	"path/filepath"
	"sync"
	"time"

	"github.com/smartfeed/smartfeed/internal/testkit/faultnet"
	"github.com/smartfeed/smartfeed/internal/testkit/must"
	"github.com/smartfeed/smartfeed/processors/rows"
)

// Member simulates a process: groups with their own directory. It restarts groups that fail, like the supervisor.
type Member struct {
	w       *Wire
	name    string
	groups  []rows.Group
	adjust  func(*rows.Config)
	runners map[string]*rows.Runner
	net     *faultnet.Net

	cancel context.CancelCauseFunc // nil: not running
	wg     sync.WaitGroup
}

// Start starts a member. If a member with this name exists, Start stops it, and the new one uses its directory.
func (w *Wire) Start(name string, groups ...rows.Group) *Member {
	w.t.Helper()
	return w.StartWith(name, nil, groups...)
}

// StartWith is Start with a configuration that adjust has changed.
func (w *Wire) StartWith(name string, adjust func(*rows.Config), groups ...rows.Group) *Member {
	w.t.Helper()
	m := &Member{w: w, name: name, groups: groups, adjust: adjust, net: faultnet.New()}
	if old := w.members[name]; old != nil {
		old.Stop()
	}
	w.members[name] = m
	for _, g := range groups {
		w.reads[g.Name] = g.Reads()
	}
	w.t.Cleanup(m.Stop)
	m.Restart()
	return m
}

// Restart starts a member that was stopped or killed.
func (m *Member) Restart() {
	m.w.t.Helper()
	if m.cancel != nil {
		m.w.t.Fatalf("start %s: it runs", m.name)
	}
	ctx, cancel := context.WithCancelCause(context.WithoutCancel(m.w.t.Context()))
	m.cancel, m.runners = cancel, map[string]*rows.Runner{}
	cfg := rows.DefaultConfig()
	cfg.Dir = filepath.Join(m.w.dir, m.name)
	cfg.DeferredCommitInterval, cfg.FetchMaxWait = 0, 50*time.Millisecond
	cfg.SessionTimeout, cfg.HandoverTimeout = 2*time.Second, time.Second
	cfg.BlockCacheBytes, cfg.MemTableBytes, cfg.MinFreeDiskBytes = 8<<20, 16<<20, 0
	if m.adjust != nil {
		m.adjust(&cfg)
	}
	kafka := m.w.Kafka
	kafka.Dial = m.net.Dial
	for _, g := range m.groups {
		r := must.Get(rows.New(cfg, rows.Env{Kafka: kafka, Streams: m.w.Streams, Log: m.w.Setup().Log.With("member", m.name)}, g))(m.w.t)
		m.runners[g.Name] = r
		m.wg.Go(func() { m.keep(ctx, r) })
	}
}

// keep runs a group until the member stops.
func (m *Member) keep(ctx context.Context, r *rows.Runner) {
	for ctx.Err() == nil {
		if err := r.Run(ctx); err != nil && !errors.Is(context.Cause(ctx), rows.ErrAbandoned) {
			m.w.t.Logf("member %s: %v", m.name, err)
		}
		select {
		case <-time.After(50 * time.Millisecond):
		case <-ctx.Done():
		}
	}
}

// Stop stops the member gracefully.
func (m *Member) Stop() { m.end(nil) }

// Kill stops the member like a crash: pending batches are dropped, and the local stores keep only what is on disk.
func (m *Member) Kill() { m.end(rows.ErrAbandoned) }

// Pause blocks all traffic between the member and the broker, which simulates a hanging process or network. After the
// session timeout of two seconds, the broker assigns its partitions to other members.
func (m *Member) Pause() { m.net.Hold() }

// Resume ends a Pause. The blocked requests then reach the broker late.
func (m *Member) Resume() { m.net.Release() }

// Faults returns the member's network, which can drop or change the broker's responses to this member. For responses to
// all clients, use w.Broker().
func (m *Member) Faults() *faultnet.Net { return m.net }

func (m *Member) end(cause error) {
	m.net.Release()
	if m.cancel == nil {
		return
	}
	m.cancel(cause)
	m.wg.Wait()
	m.cancel = nil
}

// View returns the view of one of the member's groups.
func (m *Member) View(group string) *rows.View { return m.runners[group].View() }

// Status returns the status of one of the member's groups.
func (m *Member) Status(group string) rows.Status { return m.runners[group].Status() }

// Owns reports whether the member owns the owner's partition and has recovered it.
func (m *Member) Owns(group, owner string) bool {
	return m.View(group).Read(context.Background(), owner, func(rows.Snapshot) error { return nil }) == nil
}
