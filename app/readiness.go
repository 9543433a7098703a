package app

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/smartfeed/smartfeed/internal/periodic"
	"github.com/smartfeed/smartfeed/processors"
	"github.com/smartfeed/smartfeed/processors/rows"
	"github.com/smartfeed/smartfeed/serving/auth"
	"github.com/smartfeed/smartfeed/serving/feedstore/cassandra"
	"github.com/smartfeed/smartfeed/topics"
)

// missing returns the required components that are not ready or have stopped, each as a sentence. It never blocks on brokers,
// disks, or callbacks of groups.
func (p *App) missing() []string {
	all := []string{}
	if p.health.unavailable() {
		all = append(all, "no Kafka broker responds")
	}
	for _, s := range p.supervisor.State() {
		if s.Condition != processors.Running && !slices.Contains(p.optional, s.Name) {
			all = append(all, fmt.Sprintf("%s is %s", s.Name, s.Condition))
		}
	}
	for _, g := range p.runningGroups() {
		if s := g.Readiness(); !s.Ready && p.isActive(g) {
			all = append(all, groupNotReady(s))
		}
	}
	all = append(all, p.unreadTables()...)
	if p.verifier != nil && !p.verifier.Ready() {
		all = append(all, auth.ErrNoKeys.Error())
	}
	if len(p.clusters) > 0 && !slices.ContainsFunc(p.clusters, (*cassandra.Store).Connected) {
		all = append(all, "no feed store is reachable")
	}
	return all
}

// unreadTables returns the global tables that are still being read.
func (p *App) unreadTables() (all []string) {
	for _, t := range p.tables {
		select {
		case <-t.ready:
		default:
			all = append(all, t.topic+" is still being read")
		}
	}
	return all
}

// groupNotReady describes the progress of a group that is not ready.
func groupNotReady(s rows.Status) string {
	if !s.Joined {
		return s.Group + " has no partitions yet: it is joining its consumer group"
	}
	var done, all int64
	recovering := 0
	for _, p := range s.Partitions {
		if p.Stage == rows.StageRecovering {
			recovering++
			done, all = done+min(p.Table+1, p.End), all+p.End
		}
	}
	percent := 0
	if all > 0 {
		percent = int(max(done, 0) * 100 / all)
	}
	return fmt.Sprintf("%s is not ready: %d of %d partitions are recovering, %d %% of their rows are read",
		s.Group, recovering, len(s.Partitions), percent)
}

const (
	// brokerCheckEvery is the interval between checks.
	brokerCheckEvery = time.Second
	// brokerTimeout is the maximum time for a response: longer than a busy broker takes, and shorter than the timeouts
	// of consumers.
	brokerTimeout = 5 * time.Second
)

// brokerHealth checks whether any broker responds. The consumers and producers detect a hanging broker only after a
// minute or more, and none of them reports to readiness that Kafka is unavailable.
type brokerHealth struct {
	kafka    topics.Kafka
	refused  atomic.Bool
	answered atomic.Int64 // Unix time in nanoseconds when a broker last responded, or Run started; 0: Run has not started
}

// Run checks until ctx is done.
func (h *brokerHealth) Run(ctx context.Context) error {
	client, err := h.kafka.Client()
	if err != nil {
		return err
	}
	defer client.Close()
	h.answered.Store(time.Now().UnixNano())
	return periodic.Run(ctx, brokerCheckEvery, func() error {
		err := client.Ping(ctx)
		if ctx.Err() != nil {
			return nil
		}
		if h.refused.Store(err != nil); err == nil {
			h.answered.Store(time.Now().UnixNano())
		}
		return nil
	})
}

// unavailable reports whether no broker responds. It also checks the time of the last response, because a request to a
// hanging broker blocks until the client's timeout.
func (h *brokerHealth) unavailable() bool {
	answered := h.answered.Load()
	return h.refused.Load() || answered > 0 && time.Since(time.Unix(0, answered)) > brokerCheckEvery+brokerTimeout
}
