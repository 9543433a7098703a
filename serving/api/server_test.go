package api

import (
	"context"
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/smartfeed/smartfeed/internal/testkit/expect"
	"github.com/smartfeed/smartfeed/internal/testkit/must"
)

func TestValidateBounds(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*Config)
		want   string // "": valid
	}{
		"bodies below one":  {func(c *Config) { c.MaxInflightBytes = c.MaxEventsBytes - 1 }, "max_inflight_bytes: 8388607: want 8MiB"},
		"bodies of one":     {func(c *Config) { c.MaxInflightBytes = c.MaxEventsBytes }, ""},
		"caller below one":  {func(c *Config) { c.MaxCallerBytes = 64 << 10 }, ""},
		"no time to answer": {func(c *Config) { c.WriteTimeout = 44 * time.Second }, "write_timeout: 44s: want at least"},
		"just enough time":  {func(c *Config) { c.WriteTimeout = 45 * time.Second }, ""},
		"allowed host":      {func(c *Config) { c.AllowedHosts = []string{"feed.example"} }, ""},
		"host with a port":  {func(c *Config) { c.AllowedHosts = []string{"feed.example:80"} }, `allowed_hosts: "feed.example:80"`},
		"every host":        {func(c *Config) { c.AllowedHosts = []string{"*.example"} }, `allowed_hosts: "*.example"`},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := DefaultConfig()
			c.change(&cfg)
			expect.Error(t, cfg.Validate(), c.want, "Validate")
		})
	}
}

func TestListen_Rejects(t *testing.T) {
	taken := listen(t, &fakes{}, nil)
	invalid := DefaultConfig()
	invalid.MaxEvents = 0
	for name, c := range map[string]struct {
		addr string
		cfg  Config
		want string
	}{
		"address of all interfaces": {"0.0.0.0:0", DefaultConfig(), "set api.insecure"},
		"port in use":               {taken.Addr(), DefaultConfig(), "listen on " + taken.Addr() + ": listen tcp " + taken.Addr() + ": bind: address already in use"},
		"invalid configuration":     {"127.0.0.1:0", invalid, "max_events: 0"},
	} {
		t.Run(name, func(t *testing.T) {
			expect.Error(t, expect.ErrorOf(Listen(c.addr, c.cfg, (&fakes{}).deps())), c.want, "Listen")
		})
	}
}

// An error after the address was opened closes the address.
func TestListen_ClosesAddressOnError(t *testing.T) {
	first := listen(t, &fakes{}, nil)
	addr := first.Addr()
	must.OK(t, first.Close())
	first.listener = nil
	deps := (&fakes{}).deps()
	must.Get(newMeasures(deps.Metrics))(t)
	expect.Error(t, expect.ErrorOf(Listen(addr, DefaultConfig(), deps)), "register metrics", "error")
	again := must.Get(net.Listen("tcp", addr))(t)
	must.OK(t, again.Close())
}

func TestRun_ServesAgainOnSameAddress(t *testing.T) {
	s := listen(t, &fakes{}, nil)
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: 10 * time.Second}
	for range 2 {
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- s.Run(ctx) }()
		res, err := client.Get("http://" + s.Addr() + "/healthz") // the first Run already has the listener; the second one opens it again
		for deadline := time.Now().Add(10 * time.Second); err != nil && time.Now().Before(deadline); {
			res, err = client.Get("http://" + s.Addr() + "/healthz")
		}
		if err != nil || res.StatusCode != 200 {
			t.Fatalf("got %v, %v, want 200", res, err)
		}
		must.OK(t, res.Body.Close())
		cancel()
		expect.Error(t, <-ended, "", "Run")
	}
}

func TestRun_EndsWithItsListener(t *testing.T) {
	s := listen(t, &fakes{}, nil)
	must.OK(t, s.listener.Close())
	expect.Error(t, s.Run(t.Context()), "serve http on "+s.Addr(), "Run")
}
