package app

import (
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/smartfeed/smartfeed/internal/outgoing"
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
	return auth.ScrapeToken{File: p.cfg.Metrics.TokenFile}, nil
}

// configureAuth makes the server authenticate clients, if auth is configured, and peers, if peers.secret_file is set.
func (p *App) configureAuth(deps *api.Deps) error {
	if p.cfg.Peers.SecretFile != "" {
		proof, err := p.peerAuth()
		if err != nil {
			return err
		}
		deps.Peers = proof
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
	if c.API.Insecure || outgoing.OnLoopback(host) || c.Metrics.TokenFile != "" {
		return nil
	}
	return fmt.Errorf("admin: other machines can reach %q without authentication: listen on 127.0.0.1, set metrics.token_file "+
		"to serve only metrics, or set api.insecure if a firewall or proxy protects the address", c.Admin)
}
