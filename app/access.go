package app

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
	"github.com/smartfeed/smartfeed/internal/outgoing"
	"github.com/smartfeed/smartfeed/internal/secure"
	"github.com/smartfeed/smartfeed/serving/api"
	"github.com/smartfeed/smartfeed/serving/auth"
	"github.com/smartfeed/smartfeed/serving/peers"
)

// scrapeToken returns the check of the metrics' static token, or nil if there is none.
func (p *App) scrapeToken() (api.ScrapeCheck, error) {
	if p.cfg.Metrics.TokenFile == "" {
		return nil, nil
	}
	if _, err := auth.ReadSecret(p.cfg.Metrics.TokenFile); err != nil {
		return nil, fmt.Errorf("metrics.token_file: %w", err)
	}
	return auth.ScrapeToken{File: p.cfg.Metrics.TokenFile}.Check, nil
}

// configureAuth makes the server authenticate clients, if auth is configured, and peers, if peers.secret_file is set.
func (p *App) configureAuth(deps *api.Deps) error {
	if p.cfg.Peers.SecretFile != "" {
		proof, err := p.peerAuth()
		if err != nil {
			return err
		}
		deps.Peers = proof.Check
	}
	if !p.cfg.Auth.Enabled() {
		return nil
	}
	guard, err := outgoing.New(p.cfg.Outgoing, nil)
	if err != nil {
		return err
	}
	transport := &http.Transport{DialContext: guard.DialContext, IdleConnTimeout: time.Minute}
	p.onCloseDo(transport.CloseIdleConnections)
	p.verifier, err = auth.NewVerifier(p.cfg.Auth, auth.Deps{Client: &http.Client{Transport: transport}, Log: p.log})
	if err != nil {
		return err
	}
	p.component("auth", p.verifier.Run)
	deps.Auth = p.verifier
	deps.Scrape, err = p.scrapeToken()
	return err
}

// peerAuth returns the authentication with the secret that all processes share.
func (p *App) peerAuth() (*auth.Peers, error) {
	secret, err := auth.ReadSecret(p.cfg.Peers.SecretFile)
	if err != nil {
		return nil, fmt.Errorf("peers.secret_file: %w", err)
	}
	return auth.NewPeers(secret, p.cfg.peerAddress(), nil), nil
}

// configurePeerClient makes a peer client sign its calls (peers.secret_file) and, with peers.https, verify the
// certificates of peers.
func (p *App) configurePeerClient(deps *peers.Deps) error {
	if p.cfg.Peers.SecretFile != "" {
		proof, err := p.peerAuth()
		if err != nil {
			return err
		}
		deps.Prove = proof.Sign
	}
	deps.Check = p.cfg.Peers.CheckAddress
	if !p.cfg.Peers.HTTPS {
		return nil
	}
	var err error
	deps.TLS, err = p.cfg.Peers.TLS.Config()
	return err
}

// validateAdminAddress rejects an admin address that other machines can reach, because the admin server has no
// authentication other than metrics.token_file. api.insecure disables the check.
func (c *Config) validateAdminAddress() error {
	if c.Admin == "" {
		return nil
	}
	host, _, err := net.SplitHostPort(c.Admin)
	if err != nil {
		return fmt.Errorf("admin: %q is not host:port", c.Admin)
	}
	if c.API.Insecure || secure.OnLoopback(host) || c.Metrics.TokenFile != "" {
		return nil
	}
	return fmt.Errorf("admin: other machines can reach %q without authentication: listen on 127.0.0.1, set metrics.token_file "+
		"to serve only metrics, or set api.insecure if a firewall or proxy protects the address", c.Admin)
}

// admin serves profiles and metrics on its own address. On loopback, or with api.insecure, requests need no token.
// On any other address it serves only metrics, to requests with the static token. It serves no profiles there: a
// profile shows memory and uses as much CPU time as the request specifies.
type admin struct {
	listener net.Listener
	metrics  prometheus.Gatherer
	hosts    []string        // accepted host names
	scrape   api.ScrapeCheck // nil: requests need no token
}

func listenAdmin(cfg Config, scrape api.ScrapeCheck, metrics prometheus.Gatherer) (*admin, error) {
	l, err := net.Listen("tcp", cfg.Admin)
	if err != nil {
		return nil, fmt.Errorf("admin server: listen on %s: %w", cfg.Admin, err)
	}
	host, _, _ := net.SplitHostPort(cfg.Admin) // validated
	if cfg.API.Insecure || secure.OnLoopback(host) {
		scrape = nil
	}
	return &admin{l, metrics, cfg.hosts(), scrape}, nil
}

// Run serves until ctx is done. It must be called only once.
func (a *admin) Run(ctx context.Context) error {
	server := &http.Server{Handler: a.handler(), ReadHeaderTimeout: 5 * time.Second}
	stop := context.AfterFunc(ctx, func() { _ = server.Close() }) // no graceful shutdown: an incomplete profile is useless
	defer stop()
	if err := server.Serve(a.listener); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve profiles on %s: %w", a.listener.Addr(), err)
	}
	return nil
}

func (a *admin) handler() http.Handler {
	mux := http.NewServeMux()
	metrics := promhttp.HandlerFor(a.metrics, promhttp.HandlerOpts{MaxRequestsInFlight: 4})
	if a.scrape != nil {
		mux.Handle("/metrics", a.requireToken(metrics))
		return foreign.RefusePages(mux, foreign.Page)
	}
	mux.Handle("/metrics", metrics)
	mux.HandleFunc("/debug/pprof/", pprof.Index)
	mux.HandleFunc("/debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("/debug/pprof/trace", pprof.Trace)
	// Reject cross-site requests from browsers, because a profile takes CPU time, and unknown host names (DNS rebinding).
	return foreign.RefuseNames(foreign.RefusePages(mux, foreign.Page), a.hosts...)
}

// requireToken rejects requests without the static token of the metrics.
func (a *admin) requireToken(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		token, given := auth.Bearer(r)
		if !given || a.scrape(token) != nil {
			w.Header().Set("WWW-Authenticate", "Bearer")
			http.Error(w, "authenticate: send the token in metrics.token_file as a bearer token", http.StatusUnauthorized)
			return
		}
		h.ServeHTTP(w, r)
	})
}
