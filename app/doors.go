package app

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/smartfeed/smartfeed/internal/command"
	"github.com/smartfeed/smartfeed/internal/outgoing"
	"github.com/smartfeed/smartfeed/schemas"
	"github.com/smartfeed/smartfeed/serving/api"
	"github.com/smartfeed/smartfeed/serving/auth"
	"github.com/smartfeed/smartfeed/serving/client"
	"github.com/smartfeed/smartfeed/serving/peers"
)

// scrapeToken returns the check of the metrics' static token, or nil if there is none.
func (p *product) scrapeToken() (api.ScrapeCheck, error) {
	if p.cfg.Metrics.TokenFile == "" {
		return nil, nil
	}
	if _, err := auth.ReadSecret(p.cfg.Metrics.TokenFile); err != nil {
		return nil, fmt.Errorf("metrics.token_file: %w", err)
	}
	return auth.ScrapeToken{File: p.cfg.Metrics.TokenFile}, nil
}

// askWhoTheyAre configures how the server authenticates callers and other processes, as far as the configuration
// enables it.
func (p *product) askWhoTheyAre(deps *api.Deps) error {
	if p.cfg.Peers.SecretFile != "" {
		proof, err := p.peerProof()
		if err != nil {
			return err
		}
		deps.Peers = proof
	}
	if !p.cfg.Auth.On() {
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
	p.part("auth", p.verifier.Run)
	deps.Auth = p.verifier
	deps.Scrape, err = p.scrapeToken()
	return err
}

// peerProof returns the authentication by the secret that all processes share.
func (p *product) peerProof() (*auth.Peers, error) {
	secret, err := auth.ReadSecret(p.cfg.Peers.SecretFile)
	if err != nil {
		return nil, fmt.Errorf("peers.secret_file: %w", err)
	}
	return auth.NewPeers(secret, p.cfg.peerAddress(), nil), nil
}

// provePeer configures how a client of peers authenticates itself, and which servers it trusts.
func (p *product) provePeer(deps *peers.Deps) error {
	if p.cfg.Peers.SecretFile != "" {
		proof, err := p.peerProof()
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

// checkAdmin rejects an admin address beyond loopback without protection: the static token of the metrics, or an
// external guard.
func (c *Config) checkAdmin() error {
	if c.Admin == "" {
		return nil
	}
	host, _, err := net.SplitHostPort(c.Admin)
	if err != nil {
		return fmt.Errorf("admin: %q is not host:port", c.Admin)
	}
	if c.API.Insecure || isLoopback(host) || c.Metrics.TokenFile != "" {
		return nil
	}
	return fmt.Errorf("admin: %q can be reached from other machines, and callers are not authenticated there: listen on 127.0.0.1, "+
		"set metrics.token_file for metrics alone, or, if something else guards the address, set api.insecure", c.Admin)
}

// isLoopback reports whether only this machine can reach a host.
func isLoopback(host string) bool {
	ip, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && ip.IsLoopback()
}

// server returns the HTTP server and the credentials for a command.
func (p *program) server(cmd *cobra.Command) (client.Config, error) {
	cfg, err := p.load(cmd)
	if err != nil {
		return client.Config{}, err
	}
	return p.asked(cfg)
}

func (p *program) asked(cfg Config) (client.Config, error) {
	token, err := cfg.Auth.SentToken(p.environ)
	if err != nil {
		return client.Config{}, err
	}
	var settings *tls.Config
	if cfg.API.TLS.CertFile != "" || cfg.Peers.HTTPS {
		if settings, err = cfg.Peers.TLS.Config(); err != nil {
			return client.Config{}, fmt.Errorf("peers.tls: %w", err)
		}
	}
	return client.Config{Address: cfg.HTTP, Token: token, TLS: settings}, nil
}

// longest is the maximum lifetime of a token for trying out.
const longest = 90 * 24 * time.Hour

func (p *program) tokenCommand() *cobra.Command {
	grant := auth.Grant{}
	var user, service string
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "token",
		Short: "make a token for trying out",
		Long: `Print a bearer token that is signed with the secret in --auth.secret_file, which is made if it is not there. A user's token
reads that user's own feed; a service's token may do what its scopes say: ` + strings.Join(auth.Scopes(), ", ") + `.
Whoever has the secret can make any token: where more than one program is to be trusted, use keys (--auth.jwks).`,
		Example: "  smartfeed token --auth.secret_file token.secret --user user:ada\n  smartfeed token --auth.secret_file token.secret --service dashboard --scope operate,feed --for 8h",
		Args:    noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			cfg, err := p.load(cmd)
			if err != nil {
				return err
			}
			grant.User, grant.Service = schemas.UserID(user), service
			if err := checkGrant(grant, cfg.Auth); err != nil {
				return &command.UsageError{Err: err}
			}
			return mint(cmd, cfg.Auth, grant, asJSON)
		},
	}
	cmd.Flags().StringVar(&user, "user", "", "whose token it is, user:…")
	cmd.Flags().StringVar(&service, "service", "", "the service whose token it is, with or without auth.service_prefix")
	cmd.Flags().StringSliceVar(&grant.Scopes, "scope", nil, "what it may do: "+strings.Join(auth.Scopes(), ", "))
	cmd.Flags().DurationVar(&grant.For, "for", time.Hour, "how long, 1s to "+longest.String())
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	complete(cmd, "scope", auth.Scopes()...)
	return cmd
}

// checkGrant checks the flags of token.
func checkGrant(g auth.Grant, cfg auth.Config) error {
	var problems []error
	if (g.User == "") == (g.Service == "") {
		problems = append(problems, errors.New("want --user or --service"))
	}
	if g.User != "" {
		if _, err := schemas.ParseUserID(string(g.User)); err != nil {
			problems = append(problems, fmt.Errorf("--user: %w", err))
		}
	}
	if g.Service != "" && cfg.ServicePrefix == "" && cfg.ServiceClaim == "" {
		problems = append(problems, errors.New("--service: auth.service_prefix and auth.service_claim are empty, so no token is a service's"))
	}
	if g.Service != "" && cfg.ServicePrefix == "" && cfg.UserPrefix != "" && strings.HasPrefix(g.Service, cfg.UserPrefix) {
		problems = append(problems, fmt.Errorf("--service: %q starts with auth.user_prefix: the token would be refused", g.Service))
	}
	if g.User != "" && len(g.Scopes) > 0 {
		problems = append(problems, errors.New("--scope: is for --service: a user's token opens what is the user's, whatever its scopes"))
	}
	if g.Service != "" && len(g.Scopes) == 0 {
		problems = append(problems, errors.New("--scope: a service without any may do nothing"))
	}
	for _, scope := range g.Scopes {
		if !slices.Contains(auth.Scopes(), scope) {
			problems = append(problems, fmt.Errorf("--scope: there is no %q, but %s", scope, strings.Join(auth.Scopes(), ", ")))
		}
	}
	if g.For < time.Second || g.For > longest {
		problems = append(problems, fmt.Errorf("--for: %s: want 1s to %s", g.For, longest))
	}
	return errors.Join(problems...)
}

func mint(cmd *cobra.Command, cfg auth.Config, g auth.Grant, asJSON bool) error {
	if cfg.SecretFile == "" {
		return command.Usagef("auth.secret_file: is empty: want the file of the secret that the server checks tokens with")
	}
	secret, made, err := auth.MakeSecret(cfg.SecretFile)
	if err != nil {
		return err
	}
	if made {
		fmt.Fprintf(cmd.ErrOrStderr(), "a new secret is in %s: start the server with --auth.secret_file %[1]s\n", cfg.SecretFile)
	}
	now := time.Now()
	token, err := auth.Mint(cfg, secret, g, now)
	if err != nil {
		return err
	}
	if asJSON {
		return command.PrintJSON(cmd.OutOrStdout(), struct {
			Token   string    `json:"token"`
			Expires time.Time `json:"expires"`
		}{token, now.Add(g.For).UTC().Truncate(time.Second)})
	}
	fmt.Fprintln(cmd.OutOrStdout(), token)
	return nil
}
