package app

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/smartfeed/smartfeed/internal/config"
	"github.com/smartfeed/smartfeed/internal/testkit/expect"
	"github.com/smartfeed/smartfeed/internal/testkit/must"
	"github.com/smartfeed/smartfeed/topics"
)

// invalidConfigs returns configurations that prevent roles from starting, with the expected error. Files are below dir,
// which contains short, a file of six bytes.
func invalidConfigs(dir string) map[string]struct {
	args  []string
	roles []Role // that fail; none: all
	want  string
} {
	none, short := filepath.Join(dir, "none"), filepath.Join(dir, "short")
	cassandra := []string{"--feed_store.cassandra.primary.hosts", deaf, "--feed_store.cassandra.primary.tls.enabled", "--feed_store.cassandra.primary.tls.ca_file", none}
	stores, serves, remote := []Role{Dev, Serve, Materialize}, []Role{Dev, Serve}, []Role{Process, Serve, Materialize}
	return map[string]struct {
		args  []string
		roles []Role
		want  string
	}{
		"value out of bounds":        {[]string{"--pools.max_candidates", "1"}, nil, "pools.max_candidates"},
		"open address":               {[]string{"--http", "0.0.0.0:8080"}, nil, "authentication is disabled"},
		"open admin address":         {[]string{"--admin", "0.0.0.0:6060"}, nil, "admin: "},
		"peers without a secret":     {[]string{"--auth.jwks", "https://id.example/keys", "--auth.audience", "x"}, []Role{Process}, "peers.secret_file"},
		"missing secret":             {[]string{"--auth.secret_file", none}, nil, "auth.secret_file: "},
		"short secret":               {[]string{"--auth.secret_file", short}, nil, "want at least 32"},
		"missing scrape token":       {[]string{"--metrics.token_file", none}, nil, "metrics.token_file: "},
		"missing secret of peers":    {[]string{"--peers.secret_file", none}, nil, "peers.secret_file: "},
		"missing certificate":        {[]string{"--api.tls.cert_file", none, "--api.tls.key_file", none}, nil, "api.tls: "},
		"certificate without key":    {[]string{"--api.tls.cert_file", none}, nil, "api.tls.cert_file, key_file"},
		"missing CA of peers":        {[]string{"--peers.https", "--peers.tls.ca_file", none}, nil, "peers.tls: "},
		"missing CA of a collector":  {[]string{"--tracing.endpoint", "https://x.example", "--tracing.tls.ca_file", none}, nil, "tracing: "},
		"missing definitions":        {[]string{"--features_file", none}, serves, "features_file: "},
		"broken definitions":         {[]string{"--features_file", short}, serves, "features_file: "},
		"unknown feature of a model": {[]string{"--generator.model.url", "http://model/", "--generator.model.features", "nope"}, []Role{Dev, Serve, Process}, `generator.model.features: feature "nope" is not defined`},
		"model without Pinot":        {[]string{"--generator.model.url", "http://model/", "--generator.model.features", "pin_actors_24h"}, []Role{Process}, "generator.model.features: the role process reads features only from Pinot"},
		"short cursor key":           {[]string{"--feed.cursor_key_file", short}, serves, "feed.cursor_key_file: "},
		"missing CA of Pinot":        {[]string{"--pinot.brokers", deaf, "--pinot.client.tls.ca_file", none}, serves, "pinot.client: "},
		"missing CA of Cassandra":    {cassandra, stores, "feed_store.cassandra.primary: "},
		"missing CA of Kafka":        {[]string{"--kafka_client.tls.enabled", "--kafka_client.tls.ca_file", none}, remote, "kafka_client.tls: "},
		"missing CA of the registry": {[]string{"--registry_client.tls.ca_file", none}, remote, "registry_client: "},
		"no port":                    {[]string{"--http", "127.0.0.1:0"}, remote, "other processes need a fixed port"},
		"broker beyond loopback":     {[]string{"--kafka", "10.0.0.1:9092"}, []Role{Dev}, "not a loopback address"},
		"registry beyond loopback":   {[]string{"--registry", "10.0.0.1:8081"}, []Role{Dev}, "not a loopback address"},
		"small broker":               {[]string{"--embedded.max_bytes", "1"}, []Role{Dev}, "max_bytes"},
		"embedded feed store":        {nil, []Role{Materialize}, "feed_store.cassandra.primary.hosts"},
	}
}

// "config check" and the start of a role must reject the same configurations, with the same errors.
func TestConfigCheck_MatchesStartOfRoles(t *testing.T) {
	dir := t.TempDir()
	must.OK(t, os.WriteFile(filepath.Join(dir, "short"), []byte("short:"), 0o600))
	for name, c := range invalidConfigs(dir) {
		for _, role := range Roles() {
			refuses := len(c.roles) == 0 || slices.Contains(c.roles, role)
			args := append([]string{"--dir", dir, "--kafka", deaf, "--registry", deaf, "--feed_store.cassandra.keyspace", "k"}, c.args...)
			if role == Materialize && name != "embedded feed store" {
				args = append([]string{"--feed_store.cassandra.primary.hosts", deaf}, args...)
			}
			check := func(command ...string) (bool, string) {
				code, out, errOut := execute(t, nil, append(command, args...)...)
				return code == 2 && strings.Contains(errOut, c.want), out + errOut
			}
			if got, said := check("config", "check", string(role)); got != refuses {
				t.Errorf("%s: config check %s refuses %t, want %t: %s", name, role, got, refuses, said)
			}
			if !refuses {
				continue // the role would start
			}
			if got, said := check(string(role)); !got {
				t.Errorf("%s: %s does not refuse with %q: %s", name, role, c.want, said)
			}
		}
	}
}

// The check must read every file that the configuration names, except those in elsewhere.
func TestConfigCheck_ReadsEveryFile(t *testing.T) {
	elsewhere := []string{"auth.token_file", "feed.cursor_key_file"} // read by commands; created at the start
	base := func() Config {
		cfg := DefaultConfig()
		cfg.Dir = t.TempDir()
		cfg.FeedStore.Cassandra.Primary.Hosts, cfg.FeedStore.Cassandra.Standby.Hosts = []string{deaf}, []string{deaf}
		cfg.Pinot.Brokers, cfg.Peers.HTTPS, cfg.Tracing.Endpoint = []string{deaf}, true, "https://x.example"
		return cfg
	}
	cfg := base()
	var files []string
	for _, key := range config.Keys(&cfg) {
		if strings.HasSuffix(key.Path, "_file") && !slices.Contains(elsewhere, key.Path) {
			files = append(files, key.Path)
		}
	}
	must.AtLeast(t, len(files), 25, "known files, %v", files)
	for _, path := range files {
		cfg, environ := base(), []string{}
		set := func(path, value string) {
			environ = append(environ, "SMARTFEED_"+strings.ToUpper(strings.ReplaceAll(path, ".", "_"))+"="+value)
		}
		parent, name, _ := cutLast(path)
		set(path, filepath.Join(cfg.Dir, "none"))
		switch name {
		case "cert_file":
			set(parent+".key_file", "none")
		case "key_file":
			set(parent+".cert_file", "none")
		case "password_file":
			set(parent+".user", "u")
		}
		if parent == "kafka_client.sasl" {
			set(parent+".mechanism", topics.ScramSHA256)
		}
		if strings.HasPrefix(path, "kafka_client.tls") || strings.Contains(path, "cassandra") && strings.Contains(path, ".tls.") {
			set(parent+".enabled", "true")
		}
		if err := config.Load(&cfg, config.Source{Environ: environ}); err != nil {
			t.Errorf("%s: %v", path, err)
			continue
		}
		expect.Error(t, cfg.Check(""), "none", "%s: missing file", path)
	}
}

func cutLast(path string) (parent, name string, ok bool) {
	i := strings.LastIndexByte(path, '.')
	if i < 0 {
		return "", path, false
	}
	return path[:i], path[i+1:], true
}
