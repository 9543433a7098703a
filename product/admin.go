package product

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/pprof"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/smartfeed/smartfeed/internal/foreign"
)

// admin serves profiles and metrics to whoever operates the program, on an address of its own, where nobody is asked for a
// token: a profile names insides, and takes as long as it is asked to.
type admin struct {
	listener net.Listener
	metrics  prometheus.Gatherer
	guarded  bool // by something else, which knows by what names it is asked for
}

func listenAdmin(cfg Config, metrics prometheus.Gatherer) (*admin, error) {
	l, err := net.Listen("tcp", cfg.Admin)
	if err != nil {
		return nil, fmt.Errorf("admin server: listen on %s: %w", cfg.Admin, err)
	}
	return &admin{l, metrics, cfg.API.Insecure}, nil
}

// Run serves until ctx ends. It is called once.
func (a *admin) Run(ctx context.Context) error {
	mux := http.NewServeMux()
	mux.HandleFunc("/debug/pprof/", pprof.Index)
	mux.HandleFunc("/debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("/debug/pprof/trace", pprof.Trace)
	mux.Handle("/metrics", promhttp.HandlerFor(a.metrics, promhttp.HandlerOpts{MaxRequestsInFlight: 4}))
	server := &http.Server{Handler: a.fenced(mux), ReadHeaderTimeout: 5 * time.Second}
	stop := context.AfterFunc(ctx, func() { _ = server.Close() }) // profiles under way are of no use half
	defer stop()
	if err := server.Serve(a.listener); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve profiles on %s: %w", a.listener.Addr(), err)
	}
	return nil
}

// fenced refuses pages of other sites in a browser, whatever they ask for, since a profile takes the time of processors, and
// any that ask by a name (DNS rebinding).
func (a *admin) fenced(h http.Handler) http.Handler {
	h = foreign.RefusePages(h, foreign.Page)
	if a.guarded {
		return h
	}
	return foreign.RefuseNames(h)
}

// closeListener gives an address back, if the server on it has not done so.
func closeListener(l net.Listener) func() error {
	return func() error {
		if err := l.Close(); err != nil && !errors.Is(err, net.ErrClosed) {
			return fmt.Errorf("close %s: %w", l.Addr(), err)
		}
		return nil
	}
}
