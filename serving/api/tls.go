package api

import (
	"crypto/tls"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"
)

// TLSConfig is the server's certificate. The files are reloaded when they change.
type TLSConfig struct {
	CertFile string `yaml:"cert_file" help:"PEM file with the certificate chain, the server's own certificate first; empty: plain HTTP"`
	KeyFile  string `yaml:"key_file" help:"PEM file with its key"`
}

// Validate returns an error for a certificate without a key, and for a key without a certificate.
func (c TLSConfig) Validate() error {
	if (c.CertFile == "") != (c.KeyFile == "") {
		return errors.New("cert_file and key_file: one without the other")
	}
	return nil
}

// glance is the minimum interval between two checks of the files.
const glance = time.Second

// certificate is the loaded certificate.
type certificate struct {
	cfg    TLSConfig
	failed func(error) // called with the error if changed files cannot be loaded

	mu     sync.Mutex
	pair   *tls.Certificate
	seen   [2]time.Time // modification times of the files
	looked time.Time
}

// loadCertificate loads the files. It returns an error if they do not match; a later reload then keeps the current pair.
func loadCertificate(cfg TLSConfig, failed func(error)) (*certificate, error) {
	c := &certificate{cfg: cfg, failed: failed, looked: time.Now()}
	var err error
	if c.seen, err = c.changed(); err != nil {
		return nil, fmt.Errorf("tls: %w", err)
	}
	if err := c.load(); err != nil {
		return nil, err
	}
	return c, nil
}

func (c *certificate) load() error {
	pair, err := tls.LoadX509KeyPair(c.cfg.CertFile, c.cfg.KeyFile)
	if err != nil {
		return fmt.Errorf("tls: %w", err)
	}
	c.pair = &pair
	return nil
}

func (c *certificate) changed() (at [2]time.Time, err error) {
	for i, file := range []string{c.cfg.CertFile, c.cfg.KeyFile} {
		info, err := os.Stat(file)
		if err != nil {
			return at, err
		}
		at[i] = info.ModTime()
	}
	return at, nil
}

// get returns the pair for a handshake.
func (c *certificate) get(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if now := time.Now(); now.Sub(c.looked) >= glance {
		c.looked = now
		c.glance()
	}
	return c.pair, nil
}

// glance reloads changed files. If only one of the files is already new, they do not match, and the next check tries again.
func (c *certificate) glance() {
	seen, err := c.changed()
	if err == nil && seen == c.seen {
		return
	}
	if err == nil {
		err = c.load()
	}
	if err != nil {
		c.failed(err)
		return
	}
	c.seen = seen
}

// settings returns the TLS configuration of the listener.
func (c *certificate) settings() *tls.Config {
	return &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: c.get, NextProtos: []string{"h2", "http/1.1"}}
}
