package app

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/smartfeed/smartfeed/internal/testkit/expect"
	"github.com/smartfeed/smartfeed/internal/testkit/must"
	"github.com/smartfeed/smartfeed/internal/testkit/securetest"
	"github.com/smartfeed/smartfeed/serving/client"
)

// Client works over TLS, with the configured token or another one.
func TestClient_ReachesOwnServer(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "made")
	must.OK(t, securetest.Write(dir))
	secret, file := filepath.Join(dir, "callers"), filepath.Join(dir, "token")
	ada, operator := newToken(t, secret, "--user", "user:ada"), newToken(t, secret, "--service", "ops", "--scope", "operate")
	must.OK(t, os.WriteFile(file, []byte(operator+"\n"), 0o600))
	cfg := testConfig(t.TempDir())
	cfg.API.TLS.CertFile, cfg.API.TLS.KeyFile = filepath.Join(dir, securetest.Server), filepath.Join(dir, securetest.Server)
	cfg.Peers.TLS.CAFile = filepath.Join(dir, securetest.CA)
	cfg.Auth.SecretFile, cfg.Auth.TokenFile = secret, file
	p := start(t, cfg).App
	status := func(c *client.Client, err error) (code int) {
		t.Helper()
		must.OK(t, err)
		defer c.Close()
		_, err = c.Get(t.Context(), nil, "v1", "status")
		var refused *client.Error
		switch {
		case errors.As(err, &refused):
			return refused.Status
		case err != nil:
			t.Fatal(err)
		}
		return 200
	}
	expect.Equal(t, status(p.Client()), 200, "with the token of the configuration")
	expect.Equal(t, status(p.ClientAs(ada)), 403, "as a user")
	expect.Equal(t, status(p.ClientAs("")), 401, "without a token")
	p.cfg.Auth.TokenFile, p.cfg.Peers.TLS.CAFile = file+"x", file+"y"
	expect.Error(t, expect.ErrorOf(p.Client()), "auth.token_file", "missing token file")
	expect.Error(t, expect.ErrorOf(p.ClientAs(ada)), "peers.tls", "missing CA file")
}
