package api

import (
	"crypto/tls"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"
)

// TLSConfig is the server's certificate. Changed files are taken over without a restart.
type TLSConfig struct {
	CertFile string `yaml:"cert_file"` // PEM: the chain, the server's own first; "": plain HTTP
	KeyFile  string `yaml:"key_file"`  // PEM
}

// Validate reports a certificate without key, and a key without certificate.
func (c TLSConfig) Validate() error {
	if (c.CertFile == "") != (c.KeyFile == "") {
		return errors.New("cert_file and key_file: one without the other")
	}
	return nil
}

// glance is between two looks at the files.
const glance = time.Second

// certificate is what the files hold.
type certificate struct {
	cfg    TLSConfig
	failed func(error) // told of files that cannot be taken over

	mu     sync.Mutex
	pair   *tls.Certificate
	seen   [2]time.Time // when the files were changed
	looked time.Time
}

// loadCertificate reads the files; those that do not fit are an error here, and later leave the pair that there is.
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

// glance takes changed files over. Files of which one is already new and the other not yet do not fit: they are looked at
// again.
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

// settings are what a listener of the server needs; nil for plain HTTP.
func (c *certificate) settings() *tls.Config {
	return &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: c.get, NextProtos: []string{"h2", "http/1.1"}}
}
