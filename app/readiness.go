package app

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/smartfeed/smartfeed/internal/periodic"
	"github.com/smartfeed/smartfeed/processors"
	"github.com/smartfeed/smartfeed/processors/rows"
	"github.com/smartfeed/smartfeed/serving/api"
	"github.com/smartfeed/smartfeed/serving/auth"
	"github.com/smartfeed/smartfeed/serving/feedstore/cassandra"
	"github.com/smartfeed/smartfeed/topics"
)

// missing returns the texts of notReadyReasons.
func (p *App) missing() []string {
	missing := []string{}
	for _, l := range p.notReadyReasons() {
		missing = append(missing, l.Text)
	}
	return missing
}

// notReadyReasons returns the required components that are not ready or have stopped. It never blocks on brokers, disks, or
// callbacks of groups.
func (p *App) notReadyReasons() []api.NotReadyReason {
	var all []api.NotReadyReason
	if p.health.unavailable() {
		all = append(all, notReady("kafka", "unreachable", "no Kafka broker responds"))
	}
	for _, s := range p.supervisor.State() {
		if s.Condition != processors.Running && !slices.Contains(p.optional, s.Name) {
			all = append(all, notReady(s.Name, string(s.Condition), fmt.Sprintf("%s is %s", s.Name, s.Condition)))
		}
	}
	for _, g := range p.runningGroups() {
		if s := g.Readiness(); !s.Ready && p.isActive(g) {
			all = append(all, groupNotReady(s))
		}
	}
	all = append(all, p.unreadTables()...)
	if p.verifier != nil && !p.verifier.Ready() {
		all = append(all, notReady("auth", "unreachable", auth.ErrNoKeys.Error()))
	}
	if len(p.clusters) > 0 && !slices.ContainsFunc(p.clusters, (*cassandra.Store).Connected) {
		all = append(all, notReady("feed-store", "unreachable", "no feed store is reachable"))
	}
	return all
}

// readinessCollector exports the reasons that /readyz reports as a metric.
type readinessCollector struct {
	desc    *prometheus.Desc
	reasons func() []api.NotReadyReason
}

func newReadinessCollector(reasons func() []api.NotReadyReason) readinessCollector {
	const help = "1 for each component that is not ready, as listed by /readyz; ready components have no series."
	return readinessCollector{prometheus.NewDesc("smartfeed_component_not_ready", help, []string{"component"}, nil), reasons}
}

// Describe implements prometheus.Collector.
func (c readinessCollector) Describe(to chan<- *prometheus.Desc) { to <- c.desc }

// Collect implements prometheus.Collector.
func (c readinessCollector) Collect(to chan<- prometheus.Metric) {
	collected := map[string]bool{}
	for _, r := range c.reasons() {
		if !collected[r.Component] { // a component may be waiting while its group recovers
			collected[r.Component] = true
			to <- prometheus.MustNewConstMetric(c.desc, prometheus.GaugeValue, 1, r.Component)
		}
	}
}

func notReady(component, state, text string) api.NotReadyReason {
	return api.NotReadyReason{Component: component, State: state, Text: text}
}

// unreadTables returns the global tables that are still being read.
func (p *App) unreadTables() (all []api.NotReadyReason) {
	for _, t := range p.tables {
		select {
		case <-t.ready:
		default:
			all = append(all, notReady(t.topic, "reading", t.topic+" is still being read"))
		}
	}
	return all
}

// groupNotReady describes the progress of a group that is not ready.
func groupNotReady(s rows.Status) api.NotReadyReason {
	if !s.Joined {
		return notReady(s.Group, "joining", s.Group+" has no partitions yet: it is joining its consumer group")
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
	l := notReady(s.Group, string(rows.StageRecovering), fmt.Sprintf("%s is not ready: %d of %d partitions are recovering, %d %% of their rows are read",
		s.Group, recovering, len(s.Partitions), percent))
	l.Percent = &percent
	return l
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
