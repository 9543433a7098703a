package app

import (
	"context"
	"encoding/json"
	"path/filepath"
	"sync"
	"time"

	"github.com/smartfeed/smartfeed/internal/convert"
	"github.com/smartfeed/smartfeed/internal/status"
	"github.com/smartfeed/smartfeed/processors/rows"
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

// statusTimeout limits the broker requests of a status: operators read the status when a broker may be down.
const statusTimeout = 2 * time.Second

func (p *App) status(ctx context.Context) any {
	stores := convert.All(p.stores, func(store func() status.Store) status.Store { return store() })
	s := status.Status{Process: p.processState(), Dir: absolute(p.cfg.Dir), Stores: stores}
	limited, cancel := context.WithTimeout(ctx, statusTimeout)
	defer cancel()
	var flows []topics.Flow
	var unknown error
	var requests sync.WaitGroup
	requests.Go(func() { flows, unknown = p.flows(limited) })
	if p.peers != nil {
		own := p.cfg.peerAddress()
		others, err := p.peers.Processes(ctx, own)
		s.AddProcesses(own, others, err)
	}
	requests.Wait()
	s.AddFlows(flows, unknown)
	return s
}

// flows requests the progress of the topics from the broker.
func (p *App) flows(ctx context.Context) ([]topics.Flow, error) {
	return p.ends.Flows(ctx, topics.Catalogue(topics.Profile{Partitions: p.kafka.Partitions}), p.readers())
}

// readers returns all consumers that commit offsets. If this process reads the pools, it includes their generations.
func (p *App) readers() []topics.Reader {
	setup, _ := p.Setup() // its files were readable at the start
	all := setup.Readers()
	if p.watch == nil {
		return all
	}
	return p.watch.Readers(all)
}

// readerGroups returns the consumer groups of the readers.
func (p *App) readerGroups() []string {
	return convert.All(p.readers(), func(r topics.Reader) string { return r.Group })
}

// processState returns the state of this process.
func (p *App) processState() status.Process {
	missing := p.missing()
	groups := convert.All(p.runningGroups(), func(g *rows.Runner) status.Group { return status.NewGroup(g.Status()) })
	s := status.Process{Groups: groups, State: status.State{
		Version: Version(), Ready: len(missing) == 0, Missing: missing, Components: p.supervisor.State(), Reloads: p.reloadStates(),
	}}
	if p.local != nil {
		s.Shares = p.local.FeedShares()
	}
	return s
}

// Process returns the state of this process for other processes.
func (p *App) Process(context.Context) (json.RawMessage, error) {
	return json.Marshal(p.processState())
}
