package app

import (
	"fmt"
	"slices"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/smartfeed/smartfeed/processors"
	"github.com/smartfeed/smartfeed/processors/rows"
	"github.com/smartfeed/smartfeed/serving/api"
	"github.com/smartfeed/smartfeed/serving/auth"
	"github.com/smartfeed/smartfeed/serving/feedstore/cassandra"
	"github.com/smartfeed/smartfeed/topics"
)

// missing describes the parts needed for answers that are not ready or have stopped.
func (p *App) missing() []string {
	missing := []string{}
	for _, l := range p.lacking() {
		missing = append(missing, l.Text)
	}
	return missing
}

// lacking returns what missing describes as values. It does not wait for anything that may hang: brokers, disks, or
// callbacks of groups.
func (p *App) lacking() []api.NotReadyReason {
	var all []api.NotReadyReason
	if p.health.unavailable() {
		all = append(all, lack("kafka", "unreachable", "no broker of Kafka answers"))
	}
	for _, s := range p.supervisor.State() {
		if s.Condition != processors.Running && !slices.Contains(p.spare, s.Name) {
			all = append(all, lack(s.Name, string(s.Condition), fmt.Sprintf("%s is %s", s.Name, s.Condition)))
		}
	}
	for _, g := range p.groupsNow() {
		if s := g.Readiness(); !s.Ready && p.isActive(g) {
			all = append(all, lackOf(s))
		}
	}
	all = append(all, p.unread()...)
	if p.verifier != nil && !p.verifier.Ready() {
		all = append(all, lack("auth", "unreachable", auth.ErrNoKeys.Error()))
	}
	if len(p.clusters) > 0 && !slices.ContainsFunc(p.clusters, (*cassandra.Store).Connected) {
		all = append(all, lack("feed-store", "unreachable", "no feed store can be reached"))
	}
	return all
}

// lackings exports the result of lacking to Prometheus, so that the metrics include what /readyz reports.
type lackings struct {
	desc    *prometheus.Desc
	lacking func() []api.NotReadyReason
}

func newLackings(lacking func() []api.NotReadyReason) lackings {
	const help = "1 for each part that the process lacks to answer or to do its work, as /readyz names them; parts that it does not lack are not told of."
	return lackings{prometheus.NewDesc("smartfeed_lacking", help, []string{"part"}, nil), lacking}
}

// Describe implements prometheus.Collector.
func (l lackings) Describe(to chan<- *prometheus.Desc) { to <- l.desc }

// Collect implements prometheus.Collector.
func (l lackings) Collect(to chan<- prometheus.Metric) {
	told := map[string]bool{}
	for _, lack := range l.lacking() {
		if !told[lack.Part] { // a part may be waiting while its group recovers
			told[lack.Part] = true
			to <- prometheus.MustNewConstMetric(l.desc, prometheus.GaugeValue, 1, lack.Part)
		}
	}
}

func lack(part, state, text string) api.NotReadyReason {
	return api.NotReadyReason{Part: part, State: state, Text: text}
}

// unread returns the global tables that are still being read.
func (p *App) unread() (all []api.NotReadyReason) {
	held := []struct {
		topic string
		ready <-chan struct{}
	}{{topics.UsersDeleted, p.deleted.Ready()}, {topics.InterestDecisions, p.decided.Ready()}}
	if p.local != nil {
		held = append(held, struct {
			topic string
			ready <-chan struct{}
		}{topics.RecentsPulled, p.pulled})
	}
	for _, h := range held {
		select {
		case <-h.ready:
		default:
			all = append(all, lack(h.topic, "reading", h.topic+" is still being read"))
		}
	}
	if p.local != nil && !p.hot.Ready() {
		all = append(all, lack(topics.HotPins, "reading", topics.HotPins+" is still being read"))
	}
	return all
}

// lackOf describes how far a group is that is not ready.
func lackOf(s rows.Status) api.NotReadyReason {
	if !s.Joined {
		return lack(s.Group, "joining", s.Group+" has no partitions yet: it is joining its group")
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
	l := lack(s.Group, string(rows.StageRecovering), fmt.Sprintf("%s has partitions that are not ready: %d of %d recover their rows, %d %% of them are here",
		s.Group, recovering, len(s.Partitions), percent))
	l.Percent = &percent
	return l
}
