package app

import (
	"context"
	"encoding/json"
	"path/filepath"
	"time"

	"github.com/smartfeed/smartfeed/internal/status"
	"github.com/smartfeed/smartfeed/serving/peers"
	"github.com/smartfeed/smartfeed/topics"
)

// absolute returns a path that other processes on this machine can use.
func absolute(path string) string {
	if abs, err := filepath.Abs(path); err == nil {
		return abs
	}
	return path
}

// storeOf adds a store to the status. connected may be nil.
func (p *App) storeOf(name, kind string, connected func() bool) {
	p.stores = append(p.stores, func() status.Store {
		s := status.Store{Name: name, Kind: kind}
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
	s := status.Status{Process: p.processState(), Dir: absolute(p.cfg.Dir), Stores: []status.Store{}}
	for _, store := range p.stores {
		s.Stores = append(s.Stores, store())
	}
	patient, cancel := context.WithTimeout(ctx, brokerPatience)
	defer cancel()
	flows := make(chan []topics.Flow, 1)
	go func() { flows <- p.flows(patient) }()
	if p.others != nil {
		own := p.cfg.peerAddress()
		others, err := p.others.Processes(ctx, own)
		s.AddProcesses(own, others, err)
	}
	s.AddLag(patient, p.ends)
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

// processState returns what this process knows about itself.
func (p *App) processState() status.Process {
	missing := p.missing()
	s := status.Process{Version: version, Ready: len(missing) == 0, Missing: missing, Components: p.supervisor.State(), Groups: []status.Group{}}
	for _, g := range p.groupsNow() {
		s.Groups = append(s.Groups, status.NewGroup(g.Status()))
	}
	if p.local != nil {
		s.Shares = p.local.FeedShares()
	}
	return s
}

// Process returns the state of this process for other processes.
func (p *App) Process(context.Context) (json.RawMessage, error) {
	return json.Marshal(p.processState())
}

// others lists the other processes. peers.Client implements it.
type others interface {
	Processes(ctx context.Context, but string) ([]peers.StatusResult, error)
}
