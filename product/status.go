package product

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/smartfeed/smartfeed/processors"
	"github.com/smartfeed/smartfeed/processors/rows"
	"github.com/smartfeed/smartfeed/schemas"
	"github.com/smartfeed/smartfeed/serving/auth"
	"github.com/smartfeed/smartfeed/serving/feedstore/cassandra"
	"github.com/smartfeed/smartfeed/topics"
)

// status is the answer of /v1/status.
type status struct {
	Version string                 `json:"version"`
	Ready   bool                   `json:"ready"`
	Missing []string               `json:"missing"`
	Parts   []processors.PartState `json:"parts"`
	Groups  []groupStatus          `json:"groups"`
	Flows   []topics.Flow          `json:"flows,omitempty"`  // the topics between the groups; absent: not known
	Shares  []schemas.FeedShare    `json:"shares,omitempty"` // of what was chosen here, by feed and source; absent: nothing is chosen here
}

// groupStatus is a group in this process, with how much of its inputs it has not worked off.
type groupStatus struct {
	rows.Status
	Lag map[string]int64 `json:"lag,omitempty"` // by input topic: records, transaction markers among them; absent: not known
}

// brokerPatience is how long a status waits for what the broker knows: it is asked for when something is wrong, and the
// broker may be it.
const brokerPatience = 2 * time.Second

func (p *product) status(ctx context.Context) any {
	missing := p.missing()
	s := status{Version: version, Ready: len(missing) == 0, Missing: missing, Parts: p.supervisor.State(), Groups: []groupStatus{}}
	for _, g := range p.groupsNow() {
		s.Groups = append(s.Groups, groupStatus{g.Status(), nil})
	}
	ctx, cancel := context.WithTimeout(ctx, brokerPatience)
	defer cancel()
	p.addLag(ctx, s.Groups)
	s.Flows = p.flows(ctx)
	if p.local != nil {
		s.Shares = p.local.FeedShares()
	}
	return s
}

// flows asks the broker what goes through the topics; nil if it does not answer.
func (p *product) flows(ctx context.Context) []topics.Flow {
	setup := topics.Setup{Kafka: p.kafka, FeedStores: p.cfg.FeedStore.others()}
	flows, err := p.ends.Flows(ctx, topics.Catalogue(topics.Profile{Partitions: p.kafka.Partitions}), p.readers(setup.Readers()))
	if err != nil {
		p.log.DebugContext(ctx, "flows are not known", "error", err)
		return nil
	}
	return flows
}

// readers are the generations that there are of some readers, as far as this process knows.
func (p *product) readers(of []topics.Reader) []topics.Reader {
	if p.watch == nil {
		return of
	}
	return p.watch.Readers(of)
}

// addLag asks the broker where the inputs end. What it does not answer stays unknown: a status is asked for when
// something is wrong.
func (p *product) addLag(ctx context.Context, groups []groupStatus) {
	var inputs []string
	for _, g := range groups {
		for _, part := range g.Partitions {
			for topic := range part.Applied {
				inputs = append(inputs, topic)
			}
		}
	}
	ends, err := p.ends.Ends(ctx, inputs...)
	if err != nil {
		p.log.DebugContext(ctx, "lag is not known", "error", err)
		return
	}
	for i := range groups {
		groups[i].Lag = map[string]int64{}
		for _, part := range groups[i].Partitions {
			for topic, applied := range part.Applied {
				groups[i].Lag[topic] += max(0, ends[topic][part.Partition]-applied-1)
			}
		}
	}
}

// missing names what is not there yet, or not there any more, of what an answer needs.
func (p *product) missing() []string {
	missing := []string{}
	for _, s := range p.supervisor.State() {
		if s.Condition != processors.Running && !slices.Contains(p.spare, s.Name) {
			missing = append(missing, fmt.Sprintf("%s is %s", s.Name, s.Condition))
		}
	}
	for _, g := range p.groupsNow() {
		if s := g.Status(); !s.Ready && p.answers(g) {
			missing = append(missing, s.Group+" has partitions that are not ready")
		}
	}
	select {
	case <-p.deleted.Ready():
	default:
		missing = append(missing, "users-deleted is still being read")
	}
	if p.local != nil {
		select {
		case <-p.pulled:
		default:
			missing = append(missing, "recents-pulled is still being read")
		}
		if !p.hot.Ready() {
			missing = append(missing, "hot-pins is still being read")
		}
	}
	if p.verifier != nil && !p.verifier.Ready() {
		missing = append(missing, auth.ErrNoKeys.Error())
	}
	if len(p.clusters) > 0 && !slices.ContainsFunc(p.clusters, (*cassandra.Store).Connected) {
		missing = append(missing, "no feed store can be reached")
	}
	return missing
}
