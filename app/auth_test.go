package app

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	testchild "github.com/smartfeed/smartfeed/internal/testkit/child"
	"github.com/smartfeed/smartfeed/internal/testkit/eventually"
	"github.com/smartfeed/smartfeed/internal/testkit/expect"
	"github.com/smartfeed/smartfeed/internal/testkit/must"
	"github.com/smartfeed/smartfeed/internal/testkit/securetest"
	"github.com/smartfeed/smartfeed/serving/client"
	"github.com/smartfeed/smartfeed/topics"
)

// newToken creates a token with the command.
func newToken(t *testing.T, secret string, args ...string) string {
	t.Helper()
	out, err := runCommand(t.Context(), append([]string{"token", "--auth.secret_file", secret}, args...)...)
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	lines := strings.Split(strings.TrimSpace(out), "\n")
	return lines[len(lines)-1] // earlier lines report that a secret was created
}

// With a secret, callers and commands must authenticate. Metrics need the operator's scope, or the admin address.
func TestAuth_ProtectsEveryRoute(t *testing.T) {
	t.Parallel()
	secret := filepath.Join(t.TempDir(), "token.secret")
	ada, operator := newToken(t, secret, "--user", "user:ada"), newToken(t, secret, "--service", "ops", "--scope", "operate,events")
	cfg := testConfig(t.TempDir())
	cfg.Auth.SecretFile, cfg.Admin = secret, testchild.FreeAddress(t)
	scraper := strings.Repeat("s", 32)
	cfg.Metrics.TokenFile = filepath.Join(t.TempDir(), "scrape.token")
	must.OK(t, os.WriteFile(cfg.Metrics.TokenFile, []byte(scraper), 0o600))
	s := start(t, cfg)
	for _, c := range []struct {
		token, path string
		want        int
	}{
		{"", "/", 200}, {"", "/healthz", 200}, {"", "/readyz", 200}, {"", "/v1/openapi.json", 200}, {"", "/docs", 200},
		{"", "/v1/status", 401}, {"", "/metrics", 401}, {"", "/v1/users/user:ada/feed", 401},
		{ada, "/v1/users/user:ada/feed", 200}, {ada, "/v1/users/user:bob/feed", 403}, {ada, "/metrics", 403},
		{operator, "/v1/status", 200}, {operator, "/metrics", 200}, {operator, "/v1/users/user:ada/feed", 403},
		{ada + "x", "/v1/users/user:ada/feed", 401},
		{scraper, "/metrics", 200}, {scraper, "/v1/status", 401}, {scraper, "/v1/users/user:ada/feed", 401},
		{newToken(t, filepath.Join(t.TempDir(), "another"), "--user", "user:ada"), "/v1/users/user:ada/feed", 401},
	} {
		status, _ := s.api().send(c.path, "", "Authorization", "Bearer "+c.token)
		expect.Equal(t, status, c.want, "%s with the token %.20q", c.path, c.token)
	}
	metrics := httpAPI{t, "http://" + cfg.Admin}.get("/metrics")
	expect.Contains(t, metrics, "smartfeed_http_request_duration_seconds", "metrics at the admin address")
	s.checkCommandTokens(operator)
}

// checkCommandTokens runs a command with a token from each possible source, and without a token.
func (s *started) checkCommandTokens(token string) {
	s.t.Helper()
	file := filepath.Join(s.t.TempDir(), "token")
	must.OK(s.t, os.WriteFile(file, []byte(token+"\n"), 0o600))
	args := []string{"query", "get", "status", "--http", s.server.Addr()}
	for _, c := range []struct {
		environ, args []string
		code          int
	}{
		{nil, args, 1},
		{[]string{"SMARTFEED_TOKEN=" + token}, args, 0},
		{nil, append(args, "--auth.token_file", file), 0},
		{[]string{"SMARTFEED_TOKEN=canary"}, args, 1},
	} {
		code, _, problems := execute(s.t, c.environ, c.args...)
		if code != c.code || (code == 1) != strings.Contains(problems, "401") || strings.Contains(problems, "canary") {
			s.t.Errorf("%v, %d variables: got exit code %d and %s", c.args, len(c.environ), code, problems)
		}
	}
}

// Processes authenticate to each other over TLS, and reject a process with another secret.
func TestPeers_AuthenticateOverTLS(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "made")
	must.OK(t, securetest.Write(dir))
	callers, shared, other := filepath.Join(dir, "callers"), filepath.Join(dir, "shared"), filepath.Join(dir, "other")
	ada := newToken(t, callers, "--user", "user:ada")
	newToken(t, shared, "--user", "user:x")
	newToken(t, other, "--user", "user:x")
	broker := startBroker(t)
	role := func(secret string) Config {
		cfg := roleConfig(t, broker)
		cfg.API.TLS.CertFile, cfg.API.TLS.KeyFile = filepath.Join(dir, securetest.Server), filepath.Join(dir, securetest.Server)
		cfg.Peers.HTTPS, cfg.Peers.TLS.CAFile = true, filepath.Join(dir, securetest.CA)
		cfg.Auth.SecretFile, cfg.Peers.SecretFile = callers, secret
		return cfg
	}
	pools := startPieces(t, role(shared), processing(topics.RowGroups()))
	front := startPieces(t, role(shared), serving())
	stranger := startPieces(t, role(other), serving())
	settings := must.Get(front.cfg.Peers.TLS.Config())(t)
	waiting := func(at *started) error {
		c := must.Get(client.New(client.Config{Address: at.server.Addr(), Token: ada, TLS: settings}))(t)
		defer c.Close()
		return expect.ErrorOf(c.Waiting(t.Context(), "user:ada"))
	}
	eventually.True(t, "a response with the secret", func() bool { return waiting(front) == nil })
	expect.Fails(t, waiting(stranger), "with another secret")
	plain := http.Client{Transport: &http.Transport{TLSClientConfig: settings, DisableKeepAlives: true}, Timeout: 10 * time.Second}
	url := "https://" + pools.server.Addr() + "/peer/waiting"
	res := must.Get(plain.Post(url, "", strings.NewReader(`{"user":"user:ada"}`)))(t)
	defer res.Body.Close()
	expect.Equal(t, res.StatusCode, 401, "status without a token")
}
