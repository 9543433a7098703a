package app

import (
	"context"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/smartfeed/smartfeed/processors"
	"github.com/smartfeed/smartfeed/processors/rows"
	"github.com/smartfeed/smartfeed/serving/api"
	"github.com/smartfeed/smartfeed/serving/auth"
	"github.com/smartfeed/smartfeed/serving/feedstore/cassandra"
	"github.com/smartfeed/smartfeed/topics"
)

// status is the response of /v1/status: the state of this process and, if it can reach the others, of the groups in all
// of them.
type status struct {
	processState
	Dir       string          `json:"dir"`                 // state directory of this process, an absolute path on its machine
	Processes []processStatus `json:"processes,omitempty"` // those that responded, this one first; absent: this process does not request the state of others
	Unasked   []unasked       `json:"unasked,omitempty"`   // sources missing from groups and shares; absent: none
	Stores    []storeStatus   `json:"stores"`              // that this process reads or fills
	Flows     []topics.Flow   `json:"flows,omitempty"`     // the topics between the groups; absent: unknown
}

// storeStatus is a store of this process.
type storeStatus struct {
	Name      string `json:"name"`                // primary, standby: feed stores; features
	Kind      string `json:"kind"`                // embedded, cassandra, pinot
	Connected *bool  `json:"connected,omitempty"` // whether a node responds; absent: there is no permanent connection
}

// absolute returns a path that other processes on this machine can use.
func absolute(path string) string {
	if abs, err := filepath.Abs(path); err == nil {
		return abs
	}
	return path
}

// storeOf adds a store to the status. connected may be nil.
func (p *App) storeOf(name, kind string, connected func() bool) {
	p.stores = append(p.stores, func() storeStatus {
		s := storeStatus{Name: name, Kind: kind}
		if connected != nil {
			is := connected()
			s.Connected = &is
		}
		return s
	})
}

// brokerPatience limits the broker requests of a status. People read the status when something is wrong, which may be
// the broker.
const brokerPatience = 2 * time.Second

func (p *App) status(ctx context.Context) any {
	s := status{processState: p.processState(), Dir: absolute(p.cfg.Dir), Stores: []storeStatus{}}
	for _, store := range p.stores {
		s.Stores = append(s.Stores, store())
	}
	patient, cancel := context.WithTimeout(ctx, brokerPatience)
	defer cancel()
	flows := make(chan []topics.Flow, 1)
	go func() { flows <- p.flows(patient) }()
	if p.others != nil {
		s.addOthers(ctx, p.others, p.cfg.peerAddress())
	}
	s.addLag(patient, p.ends)
	s.Flows = <-flows
	return s
}

// flows requests the progress of the topics from the broker. It returns nil if the broker does not respond.
func (p *App) flows(ctx context.Context) []topics.Flow {
	flows, err := p.ends.Flows(ctx, topics.Catalogue(topics.Profile{Partitions: p.kafka.Partitions}), p.readers())
	if err != nil {
		p.log.DebugContext(ctx, "flows are not known", "error", err)
		return nil
	}
	return flows
}

// readers returns all consumers that commit offsets, with their generations, as far as this process knows them.
func (p *App) readers() []topics.Reader {
	all := topics.Setup{Kafka: p.kafka, FeedStores: p.cfg.FeedStore.others()}.Readers()
	if p.watch == nil {
		return all
	}
	return p.watch.Readers(all)
}

// readerGroups returns the consumer groups of the readers.
func (p *App) readerGroups() (names []string) {
	for _, r := range p.readers() {
		names = append(names, r.Group)
	}
	return names
}

// addLag requests the end offsets of the inputs, one request per group. A request for a topic that this process may not
// describe, such as a generation's, fails as a whole. Groups without an answer have no lag and are listed in Unasked.
func (s *status) addLag(ctx context.Context, from endsLister) {
	errs := make([]error, len(s.Groups))
	var all sync.WaitGroup
	for i := range s.Groups {
		all.Go(func() { errs[i] = s.Groups[i].addLag(ctx, from) })
	}
	all.Wait()
	for i, err := range errs {
		if err != nil {
			s.withoutLag(s.Groups[i].Group, err.Error())
		}
	}
}

// withoutLag lists groups without lag, in one entry per reason.
func (s *status) withoutLag(group, why string) {
	const what = "the lag of "
	at := slices.IndexFunc(s.Unasked, func(u unasked) bool { return u.Why == why && strings.HasPrefix(u.What, what) })
	if at < 0 {
		s.Unasked = append(s.Unasked, unasked{what + group, why})
		return
	}
	s.Unasked[at].What += ", " + group
}

// endsLister returns the end offsets of topics. topics.Log implements it.
type endsLister interface {
	Ends(ctx context.Context, topics ...string) (topics.Offsets, error)
}

func (g *groupStatus) addLag(ctx context.Context, from endsLister) error {
	inputs := map[string]bool{}
	for _, part := range g.Partitions {
		for topic := range part.Applied {
			inputs[topic] = true
		}
	}
	var ends topics.Offsets
	if len(inputs) > 0 { // an empty list would mean all topics
		var err error
		if ends, err = from.Ends(ctx, slices.Sorted(maps.Keys(inputs))...); err != nil {
			return err
		}
	}
	g.Lag = lagOf(g.Partitions, ends)
	return nil
}

// lagOf returns the number of unprocessed records by topic. A partition that is moving may briefly be in two processes;
// the higher offset counts.
func lagOf(partitions []partitionStatus, ends topics.Offsets) map[string]int64 {
	applied := topics.Offsets{}
	for _, p := range partitions {
		for topic, at := range p.Applied {
			if applied[topic] == nil {
				applied[topic] = map[int32]int64{}
			}
			if known, twice := applied[topic][p.Partition]; !twice || at > known {
				applied[topic][p.Partition] = at
			}
		}
	}
	lag := map[string]int64{}
	for topic, by := range applied {
		for p, at := range by {
			lag[topic] += max(0, ends[topic][p]-at-1)
		}
	}
	return lag
}

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
