package api

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/smartfeed/smartfeed/internal/testkit/eventually"
	"github.com/smartfeed/smartfeed/internal/testkit/expect"
	"github.com/smartfeed/smartfeed/internal/testkit/must"
	"github.com/smartfeed/smartfeed/internal/testkit/securetest"
)

// certificates writes a certificate and its key, and returns the file and a client configuration that trusts it.
func certificates(t *testing.T) (pair string, believes *tls.Config) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "made")
	must.OK(t, securetest.Write(dir))
	authority := must.Get(os.ReadFile(filepath.Join(dir, securetest.CA)))(t)
	believes = &tls.Config{RootCAs: x509.NewCertPool()}
	believes.RootCAs.AppendCertsFromPEM(authority)
	return filepath.Join(dir, securetest.Server), believes
}

func copyFile(t *testing.T, to, from string) {
	t.Helper()
	text, err := os.ReadFile(from)
	if err == nil {
		err = os.WriteFile(to, text, 0o600)
	}
	must.OK(t, err)
}

// getTLS sends one request to the server over a new connection.
func getTLS(addr string, believes *tls.Config) (*http.Response, error) {
	transport := &http.Transport{TLSClientConfig: believes, ForceAttemptHTTP2: true, DisableKeepAlives: true}
	defer transport.CloseIdleConnections()
	res, err := (&http.Client{Transport: transport, Timeout: 10 * time.Second}).Get("https://" + addr + "/healthz")
	if err != nil {
		return nil, err
	}
	return res, res.Body.Close()
}

// A replaced certificate is reloaded. A damaged one is not, and is reported.
func TestTLS_ReloadsCertificates(t *testing.T) {
	first, believesFirst := certificates(t)
	second, believesSecond := certificates(t)
	file := filepath.Join(t.TempDir(), "server.pem")
	copyFile(t, file, first)
	var log logged
	s := listen(t, &fakes{}, func(c *Config, d *Deps) {
		c.TLS = TLSConfig{CertFile: file, KeyFile: file}
		d.Log = log.logger(slog.LevelWarn)
	})
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx) }()
	defer func() {
		cancel()
		must.OK(t, <-ended)
	}()
	res, err := getTLS(s.Addr(), believesFirst)
	if err != nil || res.StatusCode != 200 || res.ProtoMajor != 2 || s.Scheme() != "https" {
		t.Fatalf("got %v, %v by %s, want 200 over HTTP/2", res, err, s.Scheme())
	}
	expect.Error(t, expect.ErrorOf(getTLS(s.Addr(), believesSecond)), "unknown authority", "another authority")
	old := believesFirst.Clone()
	old.MaxVersion = tls.VersionTLS11
	old.MinVersion = tls.VersionTLS10
	expect.Error(t, expect.ErrorOf(getTLS(s.Addr(), old)), "version", "TLS 1.1")
	copyFile(t, file, "tls_test.go")
	eventually.True(t, "the damaged pair is logged", func() bool {
		_, err := getTLS(s.Addr(), believesFirst)
		return err == nil && strings.Contains(log.String(), "cannot reload the certificate")
	})
	copyFile(t, file, second)
	eventually.True(t, "the second pair is in use", func() bool {
		_, err := getTLS(s.Addr(), believesSecond)
		return err == nil
	})
}

func TestTLS_RejectsInvalidFiles(t *testing.T) {
	pair, _ := certificates(t)
	for name, c := range map[string]struct {
		tls  TLSConfig
		want string
	}{
		"no key":      {TLSConfig{CertFile: pair}, "both or neither are required"},
		"no file":     {TLSConfig{CertFile: pair + "x", KeyFile: pair}, "no such file"},
		"another key": {TLSConfig{CertFile: pair, KeyFile: "tls_test.go"}, "tls: "},
	} {
		cfg := DefaultConfig()
		cfg.TLS = c.tls
		expect.Error(t, expect.ErrorOf(Listen("127.0.0.1:0", cfg, (&fakes{}).deps())), c.want, "%s", name)
	}
}
